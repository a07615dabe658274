"""Tools by which a person takes back or gives trust."""
