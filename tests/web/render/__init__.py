"""What others wrote, as a page may show it."""
