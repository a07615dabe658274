"""A coding task's turn, from its command file to its receipt."""
