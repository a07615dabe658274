"""Where people and programs come in; they know only the visitor's side of the bus."""
