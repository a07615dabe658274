"""A conversation: what was said in it, what is being done there now, and which there are."""
