"""Tools about what a project knows: notes, memory, prompts."""
