"""Converts SQL text to the same query that the builder makes."""
