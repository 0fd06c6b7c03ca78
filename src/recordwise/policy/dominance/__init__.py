"""Decides whether one policy is at least another for every possible record: proved, refuted with a record, or undecided."""
