"""The cells of a query: which are published, with what public sizes, in which levels.

In reading order:

- ``cells``: public cells: rows, a product of columns, or functions
- ``keys``: cells listed in advance, or selected privately
- ``hierarchies``: levels from public lists of codes
- ``sizes``: public sizes of cells
- ``bands``: bands of sizes, in the columns that records hold
"""
