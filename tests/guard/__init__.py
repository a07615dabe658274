"""What confines agents, against hostile inputs and real processes."""
