"""The peers' job with Tumult Analytics: one session, four queries, zCDP, public keys. Run in its own environment.

python peer_tumult.py RECORDS KEYS OUT
"""

import os
import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as sql
from tmlt.analytics import AddOneRow, KeySet, QueryBuilder, RhoZCDPBudget, Session

BOUNDS = {"emp": 50, "payann": 2000, "payqtr1": 500}

records, keys, out = sys.argv[1:]
os.environ["PYSPARK_PYTHON"] = sys.executable
spark = SparkSession.builder.master("local[*]").config("spark.driver.memory", "6g").getOrCreate()
rows = spark.read.parquet(records).select(
    "county",
    sql.substring("naics", 1, 3).alias("naics3"),
    *(sql.col(name).cast("long").alias(name) for name in BOUNDS),
)
session = Session.from_dataframe(RhoZCDPBudget(0.4), "establishments", rows, protected_change=AddOneRow())
cells = KeySet.from_dataframe(spark.read.parquet(keys))
grouped = QueryBuilder("establishments").groupby(cells)
queries = {"n": grouped.count(), **{name: grouped.sum(name, low=0, high=bound) for name, bound in BOUNDS.items()}}
first, *rest = (session.evaluate(query, RhoZCDPBudget(0.1)) for query in queries.values())
found = first
for answer in rest:
    found = found.join(answer, on=["county", "naics3"])
found.write.parquet(out)
spark.stop()
