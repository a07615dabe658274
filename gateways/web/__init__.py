"""The page, the HTTP API and the doors for clients of others: one more gateway on the bus."""
