"""Models that answer: one small base, its implementations side by side."""
