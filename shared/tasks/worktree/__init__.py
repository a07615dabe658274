"""A task's branch: its checkout, its checks, its merge."""
