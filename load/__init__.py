"""How much it bears: rows, cells, queries, processes. ``python -m load [NAME...]``; figures in docs/trust.md."""
