"""What is remembered: what was said, and the facts, entities, strategies and goals that were drawn from it."""
