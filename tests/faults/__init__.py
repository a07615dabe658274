"""Faults against real processes and a real server, and the promises that must hold all the same."""
