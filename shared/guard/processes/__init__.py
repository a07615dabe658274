"""Processes: started with our code alone, bounded, known by id and start."""
