"""What the agents and the gateways share; docs/architecture.md says who may import whom."""

import os

# pydantic would look for plugins in the metadata of every installed package, at each start; none is used here.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
