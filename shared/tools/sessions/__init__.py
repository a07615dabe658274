"""Conversations as people know them: what is in view, what was saved, which there are, and their threads."""
