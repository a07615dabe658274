"""Measurements: what the durable turn costs beside plain publish and answer, and what a worker costs."""
