"""What an agent may do: policies, requests for permission, what a yes is bound to."""
