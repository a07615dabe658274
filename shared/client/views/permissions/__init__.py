"""Permissions: what is asked, what is allowed for good, and what a profile says."""
