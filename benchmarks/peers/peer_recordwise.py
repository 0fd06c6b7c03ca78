"""The peers' job with recordwise: one query, validated, charged to a ledger, with errors and intervals, saved as a folder.

python peer_recordwise.py RECORDS KEYS OUT
"""

import sys

import pyarrow.parquet as pq

import recordwise as rw

BOUNDS = {"emp": 50, "payann": 2000, "payqtr1": 500}

records, keys, out = sys.argv[1:]
session = rw.Session(
    records,
    unit="estab_id",
    measures=dict.fromkeys(BOUNDS, 1),
    columns={"county": "text", "naics": "text"},
    ledger=f"{out}.ledger",
    tuned_on="synthetic",
)
query = rw.query().group_by("county", rw.prefix("naics", 3), keys=rw.Keys.of(pq.ParquetFile(keys).read()))
query = query.count(rw.Gaussian(rho=0.1))
for name, bound in BOUNDS.items():
    query = query.sum(name, rw.UnitSplit(at=bound, rho=0.1))
session.run(query).save(out, formats=["parquet"])
