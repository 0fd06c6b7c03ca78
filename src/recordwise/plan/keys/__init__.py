"""The cells of a query: which are published, with what public sizes, in which levels.

In reading order:

- ``keys``: cells listed in advance
- ``selection``: cells selected privately, or from a public domain
- ``hierarchies``: levels from public lists of codes
- ``sizes``: public sizes of cells
- ``bands``: bands of sizes, in the columns that records hold
"""
