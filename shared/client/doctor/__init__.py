"""What `promptdock doctor` examines."""
