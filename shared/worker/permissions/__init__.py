"""The gate before each call, and the questions that it puts to people."""
