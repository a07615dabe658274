"""The sandbox of commands: bubblewrap or Landlock, seccomp, control groups, addresses."""
