"""Recommended plans really released: goals reached, and losses beside those of a careful plan made by hand (ours, of no paper)."""
