"""Ways of carrying out a coding task: one base, and what stands behind it beside the built-in loop."""
