"""Tools about the cluster: its state, and what runs by itself."""
