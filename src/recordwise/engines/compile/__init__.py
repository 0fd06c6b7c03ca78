"""Compile a plan to SQL trees that every engine runs.

In reading order:

- ``expressions``: predicates, groups and pieces over the view of records
- ``records``: the view of checked records, and the checks that validate it
- ``totals``: the statements that compute exact totals
- ``owner``: histograms of losses, value counts and contributors, for the owner
- ``firms``: what each firm loses together
"""
