"""The cluster as it is used: real processes on a real server, and a scripted model provider."""
