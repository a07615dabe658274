"""Models against a server that speaks their protocol."""
