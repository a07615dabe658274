"""A bridge: a command line as an agent, whose requests a worker takes as any other's."""
