"""Text for people: sanitised, wrapped, in columns, with times in words."""
