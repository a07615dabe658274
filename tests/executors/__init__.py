"""Tests of what carries out coding tasks."""
