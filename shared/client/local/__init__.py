"""The cluster that runs on this machine, from this home."""
