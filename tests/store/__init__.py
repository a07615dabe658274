"""The Store: one suite for both implementations, and what is special to each."""
