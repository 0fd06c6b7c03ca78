"""Simulate releases: generated records, rehearsals, metrics and baselines.

In reading order:

- ``generate``: records for any schema, from public lists alone
- ``rehearse``: the whole way from records to files, thrown away afterwards
- ``evaluate``: a metric over simulated releases, by group of cells
- ``baselines``: clamping, earlier releases, multiplicative noise
- ``older_rules``: suppression, coarsening, rounding and ranges over all tables of a query
"""
