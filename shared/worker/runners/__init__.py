"""One turn of each kind."""
