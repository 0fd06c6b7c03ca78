"""A large table of made-up establishments, written in batches by DuckDB, so that making it does not count as using memory."""

from pathlib import Path

import duckdb
from sqlglot import exp, parse_one

SELECT = """
SELECT ((i * 7919) % {rows}) AS id, lpad(CAST(hash(i) % 3000 AS VARCHAR), 5, '0') AS county,
       lpad(CAST(hash(i + 1) % 20 AS VARCHAR), 2, '0') AS naics,
       CAST(4 / pow((hash(i + 2) % 1000000 + 1) / 1000000.0, 0.8) AS BIGINT) AS emp,
       CAST(160 / pow((hash(i + 2) % 1000000 + 1) / 1000000.0, 0.8) AS BIGINT) + CAST(hash(i + 3) % 20 AS BIGINT) AS pay
FROM range({rows}) AS r(i)
"""


def write_rows(path: Path, rows: int) -> None:
    """Ids in a scrambled order, sizes with a long tail."""
    if rows % 7919 == 0:
        raise ValueError("the ids would repeat")
    with duckdb.connect(
        ":memory:", config={"threads": 2, "memory_limit": "500MB", "preserve_insertion_order": False}
    ) as connection:
        select = parse_one(SELECT.format(rows=rows), read="duckdb")
        assert isinstance(select, exp.Select)
        connection.sql(select.sql(dialect="duckdb")).write_parquet(str(path), compression="zstd")
