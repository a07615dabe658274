"""Tools about agents: rows, profiles, consulting them, changing oneself."""
