"""The page and what stands behind it."""
