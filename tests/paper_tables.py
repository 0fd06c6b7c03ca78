"""Tables 1 and 2 of the splitting paper, value by value."""

import pyarrow as pa

TABLE_1 = pa.table(
    {
        "id": [1, 2, 3, 4, 5, 6, 7],
        "industry": ["Retail", "Retail", "Retail", "Retail", "Technology", "Services", "Hospitality"],
        "emp": [5, 5, 10, 1000, 10_000, 5, 5],
    }
)
TABLE_2A = pa.table(
    {
        "id": [1, 2, 3, 4, 5],
        "industry": ["Agriculture", "Agriculture", "Mining", "Mining", "Retail"],
        "emp": [150, 50, 100, 50, 20],
        "payroll": [10_000_000, 15_000_000, 10_000_000, 10_000_000, 1_000_000],
    }
)
SPLIT_AT = {"emp": 50, "payroll": 5_000_000}
TABLE_2B = [
    (1, "Agriculture", 50, 5_000_000),
    (1, "Agriculture", 50, 5_000_000),
    (1, "Agriculture", 50, 0),
    (2, "Agriculture", 50, 5_000_000),
    (2, "Agriculture", 0, 5_000_000),
    (2, "Agriculture", 0, 5_000_000),
    (3, "Mining", 50, 5_000_000),
    (3, "Mining", 50, 5_000_000),
    (4, "Mining", 50, 5_000_000),
    (4, "Mining", 0, 5_000_000),
    (5, "Retail", 20, 1_000_000),
]
"""Table 2(b): the rows of Table 2(a) split at SPLIT_AT."""
