"""The bus: messages, key names, Redis, presence, and the embedded server."""
