"""The budget of a dataset and every charge against it.

A charge is committed before noise is drawn; events are never removed, and their meaning never changes. Imports policy.

In reading order:

- ``chain``: an append-only hash chain of events in one SQLite file
- ``periods``: the periods of a series as the events state them
- ``looks``: looks at confidential records, by command and plan
- ``charges``: what became of a charge, and the lock of whoever draws it
- ``ledger``: admission under a budget, charges and what is left
"""
