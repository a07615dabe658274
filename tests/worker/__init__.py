"""The worker, in parts."""
