"""Tests of the terminal chat."""
