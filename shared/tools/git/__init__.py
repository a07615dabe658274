"""Tools about git."""
