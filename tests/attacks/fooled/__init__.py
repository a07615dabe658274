"""Fooled agents: a model that calls every tool with everything hostile, and what must not come of it."""
