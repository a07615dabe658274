"""The durable turn: each script, and what is built on them."""
