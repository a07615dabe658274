"""Tools, called as the loop calls them."""
