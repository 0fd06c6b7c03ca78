"""Records stored in files, databases and frames: their types, and one copy into DuckDB.

Reads names and types when a source is named, and every record once when it is needed.

In reading order:

- ``columns``: the columns of a source with their declared types
- ``declared``: columns that a source declares itself
- ``files``: Arrow, Parquet and CSV files, and frames without types
- ``stat``: SAS, Stata and SPSS files
- ``database``: tables of DuckDB and SQLite files
- ``postgres``: PostgreSQL tables
- ``copy``: the one copy into a table of our own
"""
