"""What is told outside of the cluster: which events there are, addresses that hold secrets, and how each is sent."""
