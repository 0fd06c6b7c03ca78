"""The DuckDB engine: one exact pass on a locked connection.

In reading order:

- ``connection``: a connection that reads only those files, and whose errors reveal nothing
- ``engine``: binding, checking and reading records
"""
