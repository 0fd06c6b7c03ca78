"""Compiles a plan to SQL trees that every engine runs: the view of checked records, the totals, and the owner's summaries."""
