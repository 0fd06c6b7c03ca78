"""Decide whether one policy is at least another for every possible record.

In reading order:

- ``regions``: the parts of the universe on which every condition is constant
- ``curves``: one measure: exact values, lines above and below, suprema
- ``shares``: several measures, each bounded by itself
- ``boxes``: several measures, by branch and bound
- ``prove``: proved, refuted with a record, or undecided
"""
