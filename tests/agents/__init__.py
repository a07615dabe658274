"""The agents as data, and as processes."""
