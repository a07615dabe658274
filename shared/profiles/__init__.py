"""What makes an agent, as data."""
