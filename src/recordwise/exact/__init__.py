"""Exact and outward-rounded numbers, and functions for policies and noise laws.

The lowest row: imports errors alone.

In reading order:

- ``numbers``: parameters as fractions, fractions as floats rounded outward
- ``arithmetic``: one set of operations for numpy, Arb and fractions
- ``functions``: increasing functions of a value as public expressions
- ``text``: every format of a number that a reader sees
"""
