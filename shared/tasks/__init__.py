"""What becomes of a task: its state, its worktree, its receipt."""
