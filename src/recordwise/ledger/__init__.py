"""The budget of a dataset and every charge against it.

A charge is committed before noise is drawn; events are never removed, and their meaning never changes. Imports policy.

In reading order:

- ``chain``: an append-only hash chain of events in one SQLite file
- ``entries``: what the events say: charges and what became of them, looks, bands and periods
- ``ledger``: admission under a budget, charges and what is left
"""
