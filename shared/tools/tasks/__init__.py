"""Tools about tasks."""
