"""The papers' figures and tables again: one folder each for ``recordwise reproduce NAME``, built on public names only."""
