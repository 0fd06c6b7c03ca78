"""Sources that an engine could read in two ways: parts of different types, contradicting folders, false statistics."""

import struct
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from recordwise.audit.audit import Finding, Runs
from recordwise.errors import RecordwiseError
from recordwise.mechanisms.gaussian import Gaussian
from recordwise.noise.randomness import Seeded
from recordwise.plan.query import query
from recordwise.session import Session

FIRST: dict[str, pa.Array] = {"id": pa.array([1, 2]), "cell": pa.array(["a", "b"]), "value": pa.array([7, 8])}
SECOND: dict[str, pa.Array] = FIRST | {"id": pa.array([3, 4])}
BAD_PARTS: dict[str, dict[str, pa.Array]] = {
    "ids in a second type": SECOND | {"id": pa.array(["1", "4"])},
    "values with a fraction in a second part": SECOND | {"value": pa.array([1.6, 2.0])},
    "values as text in a second part": SECOND | {"value": pa.array(["1_000", "0x10"])},
    "no values in a second part": {name: column for name, column in SECOND.items() if name != "value"},
    "a column in two cases in a second part": SECOND | {"VALUE": SECOND["value"]},
}
HELD, STATED = 70_007, 5


def audit_sources(folder: Path, how: Runs) -> list[Finding]:
    """Open each of them; compare what is published of a file with true and with false statistics under the same noise."""
    found = []
    _write(FIRST, folder / "good" / "a.parquet")
    _write(SECOND, folder / "good" / "b.parquet")
    _published(folder / "good", how)
    for number, (name, second) in enumerate(BAD_PARTS.items()):
        place = folder / f"parts{number}"
        _write(FIRST, place / "a.parquet")
        _write(second, place / "b.parquet")
        found.append(_refusal(name, place, how))
    place = folder / "named"
    _write(FIRST, place / "cell=z" / "p.parquet")
    found.append(_refusal("a folder that contradicts its files", place, how))
    return [*found, _statistics(folder / "stated", how)]


def _write(columns: dict[str, pa.Array], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pyarrow.parquet.write_table(pa.table(columns), path, compression="none", use_dictionary=False)


def _refusal(name: str, source: Path, how: Runs) -> Finding:
    try:
        _published(source, how)
    except RecordwiseError:
        return Finding.without_numbers(f"refusal of {name}", samples=1, problems=())
    return Finding.without_numbers(f"refusal of {name}", samples=1, problems=("was accepted",))


def _statistics(folder: Path, how: Runs) -> Finding:
    """A record of a cell that its file states not to hold, and of none that it states to hold."""
    columns = FIRST | {"cell": pa.array(["b", "b"]), "value": pa.array([HELD, HELD])}
    true, false = folder / "true.parquet", folder / "false.parquet"
    _write(columns, true)
    _write(columns, false)
    _falsify(false)
    same = _published(true, how) == _published(false, how)
    problems = () if same else ("statistics in a file decide what is counted",)
    return Finding.without_numbers("false statistics in a file", samples=2, problems=problems)


def _falsify(path: Path) -> None:
    """Let the footer state other least and largest values than the columns hold."""
    written = path.read_bytes()
    (length,) = struct.unpack("<I", written[-8:-4])
    footer = written[-8 - length : -8].replace(struct.pack("<q", HELD), struct.pack("<q", STATED))
    path.write_bytes(written[: -8 - length] + footer.replace(b"\x01b", b"\x01a") + written[-8:])


def _published(source: Path, how: Runs) -> list[dict[str, list[Any]]]:
    """Sums by a condition on the cell, by one on the value, and by a group, with noise that is the same in every run.

    Each is a pass of its own: conditions of queries in one pass are decided by what it found, not by the file.
    """
    mechanism = Gaussian(sigma=3)
    asked = [query().where(f"cell = '{cell}'").sum("value", mechanism) for cell in "ab"]
    asked += [query().where(f"value < {STATED + 1}").count(mechanism)]
    asked += [query().group_by("cell", keys=["a", "b"]).count(mechanism)]
    roles: dict[str, Any] = {"unit": "id", "measures": {"value": 1}, "columns": {"cell": "text"}}
    stated: dict[str, Any] = {"tuned_on": "synthetic", "ledger": source.with_suffix(".ledger"), "outside": "accept"}
    with Session(source, engine=how.engine, spark=how.spark, **roles, **stated) as session:
        return [session.run(each, rng=Seeded(1)).table.to_pydict() for each in asked]
