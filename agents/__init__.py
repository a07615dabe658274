"""The agents: each a folder with a profile and a prompt; `python -m agents` runs the cluster."""
