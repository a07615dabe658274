"""The client on a real server, and what it needs none for."""
