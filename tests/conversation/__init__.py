"""Window, recall and prompt."""
