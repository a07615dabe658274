"""Commands about the cluster itself."""
