"""Hostile inputs against the real thing: each has its safe outcome, and a canary shows whether it held."""
