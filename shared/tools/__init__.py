"""Tools: typed async functions, their registry, and the executor through which all of them run."""
