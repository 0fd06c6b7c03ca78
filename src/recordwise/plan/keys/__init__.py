"""The cells of a query: which are published, with what public sizes, in which levels.

In reading order:

- ``cells``: public cells: rows, a product of columns, or functions
- ``keys``: cells listed in advance with their public sizes, or selected privately
- ``codes``: codes that a user gives, in the type of their column
- ``hierarchies``: levels from public lists of codes
- ``bands``: bands of sizes, in the columns that records hold
"""
