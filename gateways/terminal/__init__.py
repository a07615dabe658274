"""The terminal: a chat whose finished text goes to the scrollback and whose live area is small."""
