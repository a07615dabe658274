"""Tools: typed async functions, their registry, and the one door through which all of them run."""
