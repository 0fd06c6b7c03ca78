"""Answers of ``rw.read(...)`` on real regions, and how often every kind of interval holds (ours, of no paper)."""
