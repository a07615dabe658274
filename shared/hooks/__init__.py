"""Hooks: what is triggered, what is looked at first, and the words that go to an agent. No turn is run here."""
