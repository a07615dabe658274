"""Settings, as they are read from outside."""
