"""The loop, its transcript, and that any prefix of a journal goes on alike."""
