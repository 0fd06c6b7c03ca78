"""Simulate releases: generated records, rehearsals, metrics and the methods that agencies use today."""
