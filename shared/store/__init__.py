"""Rows that stay: the records, one narrow base, and its implementations side by side."""
