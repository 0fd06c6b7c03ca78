"""Records stored elsewhere (PostgreSQL, SAS files, data frames): their declared types, and one copy into DuckDB."""
