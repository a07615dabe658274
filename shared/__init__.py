"""What the agents and the gateways share; docs/architecture.md says who may import whom."""
