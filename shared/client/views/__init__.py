"""What surfaces read and show alike."""
