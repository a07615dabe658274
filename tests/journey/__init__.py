"""From one sentence to a merged change, whole and hurt."""
