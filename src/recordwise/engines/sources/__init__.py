"""TODO engines.sources."""
