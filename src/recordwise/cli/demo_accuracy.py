"""Compares the demo's tables with the truth, which is possible only because its establishments are synthetic."""

from pathlib import Path
from typing import Any

import pyarrow as pa

TRUTH = """
SELECT county, left(naics, 3) AS naics3, count(*) AS true_count, sum(emp)::BIGINT AS true_emp, sum(payann)::BIGINT AS true_payann
FROM read_parquet($records) GROUP BY ALL
"""
BY_SIZE = """
SELECT CASE WHEN true_emp < 100 THEN 0 WHEN true_emp < 1000 THEN 1 WHEN true_emp < 10000 THEN 2 ELSE 3 END AS size,
       count(*) AS cells,
       median(abs("count" - true_count) / true_count) AS "count",
       median(abs(emp - true_emp) / true_emp) AS emp,
       median(abs(emp_slow - true_emp) / true_emp) AS emp_slow,
       median(abs(payann - true_payann) / true_payann) AS payann,
       median(abs(payann_slow - true_payann) / true_payann) AS payann_slow
FROM published JOIN truth USING (county, naics3) WHERE true_emp > 0 AND true_payann > 0 GROUP BY size ORDER BY size
"""
SIZES = ("1 to 99", "100 to 999", "1,000 to 9,999", "10,000 and more")
VARIABLES = ("count", "emp", "emp_slow", "payann", "payann_slow")


def accuracy_by_size(records: Path, published: pa.Table) -> list[dict[str, Any]]:
    """The median relative error of each variable, for small and large cells."""
    import duckdb

    connection = duckdb.connect()
    connection.register("published", published)
    truth = connection.sql(TRUTH, params={"records": str(records)}).to_arrow_table()
    connection.register("truth", truth)
    rows: list[dict[str, Any]] = connection.sql(BY_SIZE).to_arrow_table().to_pylist()
    connection.close()
    return [
        {"size": SIZES[row["size"]], "cells": row["cells"], "errors": {name: row[name] for name in VARIABLES}}
        for row in rows
    ]
