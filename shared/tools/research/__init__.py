"""Tools that read source: symbols, routes, conflicts, reports with citations."""
