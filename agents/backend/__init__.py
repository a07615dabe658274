"""Backend: its profile, its prompt, and the process that runs it."""
