"""Reliable cells of two years of county tables: best shares and sized noise next to equal shares and one noise."""
