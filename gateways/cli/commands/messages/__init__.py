"""What people and agents say to each other: sent, followed, looked up."""
