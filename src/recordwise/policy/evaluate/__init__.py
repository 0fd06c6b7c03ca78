"""Computes the loss of a record: exactly for one record, rounded outward in numpy for tables, and as SQL and JavaScript."""
