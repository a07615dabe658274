"""The parts of a conversation's turn: who speaks in it, how it begins, what joins it, how it ends."""
