"""TODO engines.compile."""
