"""TODO ledger."""
