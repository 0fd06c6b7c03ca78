"""What firms lose together, by cell, beside one plain aggregate scan of the same records, in one run: ratios, not seconds.

    python -m benchmarks.firms [--rows 8000000]

Also by how much the loss by cell is below the square of the sum of roots, over firms with several establishments.
"""

import argparse
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.planning import SHAPES, best


def queries() -> dict[str, Any]:
    """Counts and sums for county x three-digit industry and, with a share each, its finer levels."""
    import recordwise as rw
    from recordwise.synthetic import public_keys

    keys = rw.Keys.of(public_keys())
    by = rw.query().group_by("county", rw.prefix("naics", 3), keys=keys)
    levels = rw.query().group_by("county", keys=keys).levels(rw.prefix("naics", (2, 3)))
    log, split = rw.LogTransform(offset=100, sigma="0.2"), rw.UnitSplit(at=50, rho="0.1")
    return {
        "count and split sum": by.count(rw.Gaussian(rho="0.05")).sum("emp", split),
        "count and logarithm": by.count(rw.Gaussian(rho="0.05")).sum("emp", log),
        "two levels": levels.count(rw.Gaussian(rho="0.05")).sum("emp", log),
    }


def reductions(session: Any, asked: Any) -> tuple[float, float]:
    """Median and 99th percentile of 1 - (loss by cell)/(square of the sum of roots), over firms of several establishments."""
    import numpy as np
    from sqlglot import parse_one

    from recordwise.engines.compile.firms import FIRM_ID, firm_values_tree, several_tree
    from recordwise.engines.compile.owner import amounts_tree, value_name
    from recordwise.engines.owner import firm_tables
    from recordwise.plan import Plan
    from recordwise.policy.evaluate.sql import terms_sql

    engine, schema = session._engine, session.schema
    tables = firm_tables([Plan(schema=schema, queries=(asked,))])
    cells = (
        firm_values_tree(tables, 1, schema, several="several", dialect="duckdb").select(f'"{FIRM_ID}"').sql("duckdb")
    )
    loss = terms_sql(session.policy_of(asked).rho, "duckdb").sql("duckdb")
    amounts = amounts_tree(schema).sql("duckdb")
    single = f"SELECT firm_id, sum(sqrt({loss})) AS roots FROM ({amounts}) GROUP BY firm_id"
    joined = f'({cells}) c JOIN ({single}) s ON c."{FIRM_ID}" = s.firm_id'
    text = f"SELECT c.{value_name(0)} / (s.roots * s.roots) AS share FROM {joined}"
    with engine._reading(schema) as passes:
        passes.store.store_pairs("several", several_tree(schema))
        found = passes.store.of_records(parse_one(text, read="duckdb")).column("share").to_numpy()
        passes.store.drop("several")
    saved = 1 - np.asarray(found)
    return float(np.median(saved)), float(np.quantile(saved, 0.99))


def measure(path: str) -> None:
    import duckdb

    import recordwise as rw

    columns = {"county": "text", "naics": "text"}
    with rw.Session(path, unit="estab_id", measures={"emp": 1}, columns=columns, firm="firm_id") as session:
        session.validate()
        connection = duckdb.connect(config={"memory_limit": "700MB"})
        plain = best(lambda: connection.execute(SHAPES.format(path=path)).fetchall())
        print(f"{'plain scan':42s} 1.00")
        for name, asked in queries().items():
            policy = session.policy_of(asked)
            roots = best(lambda policy=policy: session.owner.firm_loss_summary(policy)) / plain
            cells = best(lambda asked=asked: session.owner.firm_loss_summary(asked)) / plain
            median, most = reductions(session, asked)
            print(f"{name + ', by roots':42s} {roots:.2f}")
            print(f"{name + ', by cell':42s} {cells:.2f}   lower by {median:.1%} in the median, {most:.1%} at p99")


def main() -> None:
    from recordwise.synthetic import write_establishments

    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=8_000_000)
    rows = parser.parse_args().rows
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "establishments.parquet"
        write_establishments(path, rows)
        measure(str(path))


if __name__ == "__main__":
    main()
