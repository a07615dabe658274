"""A conversation's turn, and what stays of it."""
