"""The bus: one contract on two implementations, and what connections do when they break."""
