"""Tests: names read as sentences about behaviour."""
