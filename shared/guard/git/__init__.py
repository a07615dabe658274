"""git, hardened: every command of ours goes through here."""
