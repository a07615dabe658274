"""Tools about projects, repositories and workspaces."""
