"""The peers' job with OpenDP: one query of its Polars interface, zCDP, public keys. Run in its own environment.

python peer_opendp.py RECORDS KEYS OUT
"""

import sys

import opendp.prelude as dp
import polars as pl

BOUNDS = {"emp": 50, "payann": 2000, "payqtr1": 500}

records, keys, out = sys.argv[1:]
dp.enable_features("contrib")
rows = pl.scan_parquet(records).select(
    pl.col("county").cast(pl.String),
    pl.col("naics").cast(pl.String).str.slice(0, 3).alias("naics3"),
    *(pl.col(name).cast(pl.Int64) for name in BOUNDS),
)
context = dp.Context.compositor(
    data=rows,
    privacy_unit=dp.unit_of(contributions=1),
    privacy_loss=dp.loss_of(rho=0.4),
    split_evenly_over=1,
    margins=[dp.polars.Margin(by=[], max_length=100_000_000)],
)
sums = [pl.col(name).fill_null(0).dp.sum((0, bound)).alias(f"sum_{name}") for name, bound in BOUNDS.items()]
query = context.query().group_by("county", "naics3").agg(dp.len(signed=True), *sums).with_keys(pl.scan_parquet(keys))
query.release().collect().write_parquet(out)
