"""TODO engines.duckdb."""
