"""The DuckDB engine: exact totals in one pass over the records, on a connection locked to the files it was given."""
