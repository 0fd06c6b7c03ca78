"""The keys of a query: which cells are published, with what public sizes, in which levels."""
