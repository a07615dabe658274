"""Tests of the command line: real processes on a real cluster."""
