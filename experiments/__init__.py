"""The papers' figures and tables again: one folder each for ``python -m experiments NAME``, built on public names only."""
