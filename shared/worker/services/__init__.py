"""What one worker does for all, under a lease."""
