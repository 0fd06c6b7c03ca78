"""Compute the loss of a record, the same in every number system.

In reading order:

- ``evaluator``: the operations that policies need
- ``numpy``: one record exactly; tables rounded outward
- ``tables``: records of any library as measures and columns
- ``sql``: losses inside DuckDB or Spark
- ``javascript``: losses in a browser
"""
