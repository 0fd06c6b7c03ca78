"""Convert SQL text to the query that the builder makes.

In reading order:

- ``gate``: short plain text, one statement, nothing hidden
- ``grammar``: predicates, groups and linear forms that are understood
- ``parse``: one SELECT to one query
"""
