"""The commands of `promptdock tasks`."""
