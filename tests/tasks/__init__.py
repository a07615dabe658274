"""Worktrees, repositories and receipts, on real git repositories."""
