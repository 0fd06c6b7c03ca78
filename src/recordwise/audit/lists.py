"""Tables of our own releases offered as public lists of sizes: none may be taken, and none of another ledger as an earlier release.

Noise scaled by a table that is not private would tell its totals within a factor of 2; scaled by one that this ledger was not
charged for, it would promise a budget that does not cover it (T-SIZE).
"""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet

from recordwise.audit.audit import Finding, Runs
from recordwise.errors import RecordwiseError
from recordwise.mechanisms.gaussian import Gaussian
from recordwise.mechanisms.sized import Sized
from recordwise.noise.randomness import Seeded
from recordwise.plan.code_files import read_code_file
from recordwise.plan.keys import Keys
from recordwise.plan.query import Query, query
from recordwise.plan.sizes import FromRelease
from recordwise.policy.constructors import gaussian_sum
from recordwise.session import Session

CELLS = {"cell": [1, 2]}
SIZE, SOURCE = "value", "public: somebody"
RECORDS = {"id": [1, 2, 3], "cell": [1, 1, 2], "value": [1, 2, 3]}


def audit_lists(folder: Path, how: Runs) -> list[Finding]:
    """Publish a table privately and from a seed, and offer its files, copies and folder as sizes of another release."""
    places = {"private": folder / "listed", "NOT PRIVATE": folder / "seeded"}
    for kind, place in places.items():
        rng = None if kind == "private" else Seeded(1)
        with _opened(folder / "listed.ledger", how) as session:
            session.run(_asked(Keys.of(CELLS), Gaussian(sigma=3)), rng=rng).save(place)
    tried: dict[str, Callable[[], Keys]] = {}
    for kind, place in places.items():
        copy = folder / f"{place.name}.parquet"
        shutil.copy(place / "cell.parquet", copy)
        offered = {"file": copy, "file in its folder": place / "cell.csv"}
        tried |= {f"a {kind} {name} as sizes": _from_file(path) for name, path in offered.items()}
        tried[f"a {kind} table as sizes"] = _from_table(copy)
        tried[f"a {kind} release of another ledger as sizes"] = _from_release(place)
    return [
        Finding.without_numbers(f"refusal of {name}", samples=1, problems=_problems(given, folder, number, how))
        for number, (name, given) in enumerate(tried.items())
    ]


def _from_file(path: Path) -> Callable[[], Keys]:
    def given() -> Keys:
        # CSV files are read as text, and so are their numbers.
        table = read_code_file(path)
        listed: dict[str, list[Any]] = {"cell": [int(each) for each in table["cell"].to_pylist()]}
        listed |= {SIZE: [float(each) for each in table[SIZE].to_pylist()]}
        return Keys.of(listed, size=SIZE, sized_on=SOURCE)

    return given


def _from_table(path: Path) -> Callable[[], Keys]:
    return lambda: Keys.of(pyarrow.parquet.read_table(path).select(["cell", SIZE]), size=SIZE, sized_on=SOURCE)


def _from_release(place: Path) -> Callable[[], Keys]:
    return lambda: Keys.of(CELLS, size=FromRelease(release=str(place), column=SIZE))


def _problems(given: Callable[[], Keys], folder: Path, number: int, how: Runs) -> tuple[str, ...]:
    try:
        with _opened(folder / f"sized{number}.ledger", how) as session:
            session.run(_asked(given(), Sized(Gaussian(sigma=3), floor=1)))
    except RecordwiseError:
        return ()
    return ("was taken as a public list",)


def _asked(keys: Keys, mechanism: Any) -> Query:
    return query().group_by("cell", keys=keys).sum("value", mechanism, alias=SIZE)


def _opened(ledger: Path, how: Runs) -> Session:
    roles: dict[str, Any] = {"unit": "id", "measures": {"value": 1}, "columns": {"cell": "integer"}}
    # Wide enough for every release here, so that nothing but the list can be refused.
    stated: dict[str, Any] = {"tuned_on": "public", "budget": gaussian_sum("value", sigma="0.1"), "dataset": "listed"}
    return Session(RECORDS, ledger=ledger, engine=how.engine, spark=how.spark, **roles, **stated)
