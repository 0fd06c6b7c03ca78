"""Deliberate bugs, one at a time, and whether the tests notice. ``python -m mutants --help``; results in docs/trust.md."""
