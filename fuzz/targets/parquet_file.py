"""A Parquet file: a damaged one is refused, or read as another program reads it; never the end of the process."""

import io
from fractions import Fraction
from pathlib import Path
from random import Random
from tempfile import mkdtemp
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import recordwise as rw
from fuzz.mutation import cut, flip, overwrite, splice, truncate
from fuzz.target import ACCEPTED, WrongError
from fuzz.targets.csv_file import NOISE
from recordwise.engines import DuckDB
from recordwise.plan import Column, Plan, Schema

SCHEMA = Schema.of(
    unit="id", measures={"emp": 1, "pay": "0.25"}, columns={"county": Column(name="county", null="category")}
)
PLAN = Plan(schema=SCHEMA, queries=(rw.query().count(NOISE).sum("emp", NOISE).sum("pay", NOISE),))


class ParquetTable:
    def __init__(self) -> None:
        self._path = Path(mkdtemp()) / "records.parquet"

    def seeds(self) -> list[bytes]:
        return [self.fresh(Random(f"seed {number}")) for number in range(24)]

    def fresh(self, rng: Random) -> bytes:
        rows = rng.choice((0, 1, 3, 40, 400))
        table = pa.table(
            {
                "id": pa.array(rng.sample(range(10 * rows), rows), rng.choice((pa.int64(), pa.int32()))),
                "emp": pa.array(
                    [rng.randrange(1000) for _ in range(rows)],
                    rng.choice((pa.int64(), pa.int16(), pa.uint64(), pa.float64())),
                ),
                "pay": pa.array([rng.randrange(4000) / 4 for _ in range(rows)], pa.float64()),
                "county": pa.array([rng.choice(("01", "é", None)) for _ in range(rows)], pa.string()),
            }
        )
        out = io.BytesIO()
        codec = rng.choice(("none", "snappy", "zstd", "gzip"))
        pq.write_table(table, out, compression=codec, row_group_size=rng.choice((7, 1000)), use_dictionary=rng.random() < 0.5,
                       data_page_version=rng.choice(("1.0", "2.0")), write_page_checksum=rng.random() < 0.3)  # fmt: skip
        return out.getvalue()

    def mutate(self, rng: Random, data: bytes, other: bytes) -> bytes:
        """Damage in the data, and, more often than chance would have it, in the footer."""
        for _ in range(rng.choice((1, 1, 2, 4))):
            change = rng.choice((flip, flip, overwrite, cut, splice, truncate))
            if rng.random() < 0.5 and len(data) > 8:
                length = min(int.from_bytes(data[-8:-4], "little"), len(data) - 8)
                start = len(data) - 8 - length
                data = data[:start] + change(rng, data[start:-8], other, ()) + data[-8:]
            else:
                data = change(rng, data, other, ())
        return data

    def check(self, data: bytes) -> str:
        self._path.write_bytes(data)
        with rw.Session(self._path, unit="id", measures={"emp": 1, "pay": "0.25"}) as session:
            session.policy_of(rw.query().count(NOISE))
        with DuckDB(self._path, SCHEMA, threads=1) as engine:
            (found,) = engine.totals(PLAN)
        ours = tuple(int(values[0]) for values in found.exact.reveal().totals.values())
        if (known := self._reference()) is not None and ours != known:
            raise WrongError("the totals differ from those another reader of Parquet finds")
        return ACCEPTED

    def _reference(self) -> tuple[int, ...] | None:
        """Arrow's reading of the same file; where it reads none, there is nothing to compare with."""
        try:
            table = pq.read_table(self._path, columns=["id", "emp", "pay"], partitioning=None)
            rows: list[dict[str, Any]] = table.to_pylist()
        except (pa.ArrowException, OSError, ValueError):
            return None
        return len(rows), sum(int(row["emp"]) for row in rows), sum(int(Fraction(row["pay"]) * 4) for row in rows)
