"""The peers' job without any privacy: plain DuckDB.

python peer_duckdb.py RECORDS KEYS OUT
"""

import sys

import duckdb

records, keys, out = sys.argv[1:]
duckdb.sql(
    f"""COPY (SELECT k.county, k.naics3, coalesce(n, 0) AS n, coalesce(emp, 0) AS emp, coalesce(payann, 0) AS payann,
                     coalesce(payqtr1, 0) AS payqtr1
        FROM '{keys}' AS k LEFT JOIN (
            SELECT county, left(naics, 3) AS naics3, COUNT(*) AS n, SUM(emp) AS emp, SUM(payann) AS payann, SUM(payqtr1) AS payqtr1
            FROM '{records}' GROUP BY ALL) AS s USING (county, naics3) ORDER BY ALL) TO '{out}' (FORMAT parquet)"""
)
