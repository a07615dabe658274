"""Tasks as people look at them, watch them and try them out."""
