"""The durable turn: post, hear, claim, step, finish, beat (docs/bus.md)."""
