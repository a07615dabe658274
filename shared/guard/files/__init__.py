"""Files: the jail, roots, locks, and files that are there whole or not at all."""
