"""The benchmarks run, and count what they say."""
