"""What several suites stand on: real servers of ours on loopback."""
