"""What an agent may do and touch: permissions, approvals, the jail, the sandbox, git."""
