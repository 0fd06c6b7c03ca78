"""The papers' figures and tables again: one folder each for ``python -m experiments NAME``, built on public names only.

A folder has a docstring, whose first line is what ``--list`` shows, and a ``run.py`` with ``RUNS``, ``STEPS`` and
``reproduce(*, runs, seed, tell)``, which returns a ``Reproduction`` (``experiments/frame``).
"""
