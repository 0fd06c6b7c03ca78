"""Two levels that determine each other, measures whose columns come in another order in each part, steps other than 1.

Every number is computed again from the records, by numpy and fractions.
"""

import csv
from contextlib import ExitStack
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import recordwise as rw
from build import employers
from recordwise.errors import SourceError
from recordwise.noise import Seeded
from recordwise.plan import Column
from recordwise.plan.keys.hierarchies import Hierarchy

COUNTIES = ["01001", "01003", "06001", "06003", "06005", "17001"]
NAMES = {"01": "Alabama", "06": "California", "17": "Illinois"}
LIST = {
    "code": [county[:2] for county in COUNTIES],
    "name": [NAMES[county[:2]] for county in COUNTIES],
    "county": COUNTIES,
}
PLACES = Hierarchy.of("county", pa.table(LIST), levels=["code", "name", "county"], source="public: a list")
CHANCE = np.random.default_rng(1)
COUNTY, EMP = CHANCE.choice(COUNTIES, 60), CHANCE.integers(0, 50, 60)
RECORDS = {
    "id": np.arange(60),
    "county": COUNTY,
    "code": [county[:2] for county in COUNTY],
    "name": [NAMES[county[:2]] for county in COUNTY],
    "emp": EMP,
}
EXACT = {county: int(EMP[county == COUNTY].sum()) for county in COUNTIES}


def state_total(code: str) -> int:
    return sum(total for county, total in EXACT.items() if county.startswith(code))


def by_least_squares(answers: dict[str, list[float]], variances: dict[str, float]) -> Any:
    """The counties' totals that fit the answers of all three tables best, from the normal equations."""
    states = [[float(county.startswith(code)) for county in COUNTIES] for code in NAMES]
    rows = np.array([*states, *states, *np.eye(6).tolist()])
    weights = np.concatenate([np.full(len(answers[key]), 1 / variances[key]) for key in ("code", "name", "county")])
    right = np.concatenate([answers[key] for key in ("code", "name", "county")])
    return np.linalg.solve(rows.T @ (rows * weights[:, None]), rows.T @ (weights * right))


@pytest.mark.parametrize("how", ["levels of a list", "columns of the records"])
@pytest.mark.costly
def test_a_state_by_its_code_and_by_its_name_is_one_state_in_tables_and_fits(how: str, tmp_path: Path) -> None:
    noise, roles = rw.Gaussian(sigma=4), {"code": "text", "name": "text", "county": "text"}
    if how == "levels of a list":
        asked = [rw.query().levels("code", "name", "county", share=["1/4", "1/4", "1/2"]).at(PLACES.keys("county"))]
        more: dict[str, Any] = {"hierarchies": [PLACES], "columns": {"county": "text"}}
        source = pa.table({name: RECORDS[name] for name in ("id", "county", "emp")})
    else:
        given = rw.Keys.of(pa.table(LIST))
        asked = [rw.query().group_by("code", "name", keys=given), rw.query().group_by("name", keys=given)]
        asked += [rw.query().group_by("code", "name", "county", keys=given)]
        more, source = {"columns": roles}, pa.table(RECORDS)
    with employers(source, ledger=tmp_path / "l", **more) as opened:
        release = opened.run(*(each.sum("emp", noise, alias="emp") for each in asked), rng=Seeded(3))
    tables = dict(zip(("code", "name", "county"), release.tables))
    assert [len(table.data) for table in release.tables] == [3, 3, 6]
    for key, table in tables.items():
        truth = [EXACT[county] for county in COUNTIES] if key == "county" else [state_total(code) for code in NAMES]
        sd = np.array(table.data.column("emp_sd"))
        assert (np.abs(np.array(table.data.column("emp")) - truth) < 6 * sd).all()
    if how == "columns of the records":
        assert tables["code"].data.select(["code", "name"]).to_pylist() == [
            {"code": code, "name": name} for code, name in NAMES.items()
        ]
        # Nothing says that a state has no records in a county that is not listed, unless the keys are complete.
        raw = release.consistent(method="ols").tables[2].data
        assert raw.column("emp_best").to_pylist() == raw.column("emp").to_pylist()
    complete = how == "columns of the records"
    fitted = dict(zip(tables, release.consistent(method="ols", complete=complete).tables))
    columns = {key: np.array(table.data.column("emp_fit")) for key, table in fitted.items()}
    variances = {key: float(table.data.column("emp_sd")[0].as_py()) ** 2 for key, table in tables.items()}
    best = by_least_squares({key: table.data.column("emp").to_pylist() for key, table in tables.items()}, variances)
    assert columns["county"] == pytest.approx(best, rel=1e-9)
    states = [sum(best[place] for place, county in enumerate(COUNTIES) if county[:2] == code) for code in NAMES]
    assert columns["code"] == pytest.approx(states, rel=1e-9)
    assert columns["name"] == pytest.approx(states, rel=1e-9)
    folder = release.save(tmp_path / "out")
    page = (folder / "report.html").read_text()
    assert all(table.name in page for table in release.tables)
    again = rw.read(folder).consistent(method="ols", complete=complete).tables
    assert [np.array(table.data.column("emp_fit")) == pytest.approx(columns[key]) for key, table in zip(tables, again)]


# Parts of a source whose columns are in another order.


MEASURES = ("emp", "pay", "hours")
PARTS: list[dict[str, Any]] = [
    {
        "id": np.arange(4) + 4 * part,
        "county": ["a", "b", "a", "b"],
        "emp": np.array([1, 2, 3, 4]) + part,
        "pay": np.array([100, 200, 300, 400]) * (part + 1),
        "hours": np.array([7, 8, 9, 10]) * 10**4 + part,
    }
    for part in range(3)
]
ORDERS = [
    ("id", "county", "emp", "pay", "hours"),
    ("hours", "pay", "emp", "county", "id"),
    ("pay", "id", "hours", "county", "emp"),
]


def written(folder: Path, kind: str) -> Path:
    """A file for each part, with its columns in an order of its own."""
    folder.mkdir()
    for number, (part, order) in enumerate(zip(PARTS, ORDERS)):
        table = pa.table({name: part[name] for name in order})
        match kind:
            case "parquet":
                pq.write_table(table, folder / f"{number}.parquet")
            case "csv":
                pyarrow.csv.write_csv(table, folder / f"{number}.csv")
            case _:
                pyarrow.feather.write_feather(table, str(folder / f"{number}.feather"))
    return folder


@pytest.mark.parametrize("kind", ["parquet", "csv", "feather"])
def test_a_measure_is_found_by_its_name_in_every_part(kind: str, tmp_path: Path) -> None:
    """CSV and Arrow files whose columns are in another order are refused; a number of another measure is never taken."""
    folder = written(tmp_path / "parts", kind)
    source = folder if kind == "parquet" else sorted(map(str, folder.iterdir()))
    asked = rw.query().group_by("county", keys={"county": ["a", "b"]}).count(rw.Gaussian(sigma="0.05"), alias="n")
    for name in MEASURES:
        asked = asked.sum(name, rw.Gaussian(sigma="0.05"), alias=name)
    with ExitStack() as stack:
        if kind != "parquet":
            stack.enter_context(pytest.raises(SourceError, match=r"different (header lines|columns)"))
        session = stack.enter_context(
            employers(source, "county", ledger=tmp_path / "l", measures=dict.fromkeys(MEASURES, 1))
        )
        found = session.run(asked).table
    if kind != "parquet":
        return
    for place in range(2):
        assert found.column("n")[place].as_py() == 6
        for name in MEASURES:
            assert found.column(name)[place].as_py() == sum(int(part[name][place::2].sum()) for part in PARTS), name


# Steps other than 1.


STEPS = ["0.01", "5", "1/3", "2.5"]


@pytest.mark.parametrize("step", STEPS)
def test_a_sum_is_on_the_steps_of_its_measure_in_tables_files_and_page(step: str, tmp_path: Path) -> None:
    """Noise of three steps; values minus the exact sums are whole numbers of steps, and the sd is that of three of them."""
    size, rng = Fraction(step), np.random.default_rng(2)
    counties, multiples = [f"c{n:02}" for n in range(40)], rng.integers(0, 10**4, 200)
    numbers = [float(size * int(each)) if size.denominator > 1 else int(size * int(each)) for each in multiples]
    records = pa.table({"id": np.arange(200), "county": [counties[n % 40] for n in range(200)], "m": numbers})
    asked = rw.query().group_by("county", keys={"county": counties}).sum("m", rw.Gaussian(sigma=3 * size), alias="m")
    with employers(records, "county", measures={"m": step}, ledger=tmp_path / "l") as session:
        release = session.run(asked)
    truth = [int(multiples[n::40].sum()) for n in range(40)]
    table = release.table
    values, low, high, sd = (np.array(table.column(f"m{end}"), float) for end in ("", "_low", "_high", "_sd"))
    noise = values / float(size) - truth
    assert np.abs(noise - np.rint(noise)).max() < 1e-6
    assert 0 < np.abs(noise).max() < 25
    assert sd == pytest.approx(np.full(40, 3 * float(size)), rel=1e-6)
    # A normal interval of .95 is 1.96 sd wide on each side, on the lattice at most half a step more.
    reach = (high - low) / 2 / float(size)
    assert (reach >= 5).all()
    assert (reach <= 1.96 * 3 + 1).all()
    assert np.mean((low <= np.array(truth) * float(size) + 1e-9) & (high >= np.array(truth) * float(size) - 1e-9)) > 0.7
    assert release.policy.loss({"m": size}) == pytest.approx(1 / 18)
    assert release.policy.loss({"m": 90 * size}) == pytest.approx(450)
    folder = release.save(tmp_path / "out", formats=["parquet", "csv"])
    (wide,), (text,) = (sorted(folder.glob(f"*.{end}")) for end in ("parquet", "csv"))
    assert pq.read_table(wide).column("m").to_pylist() == table.column("m").to_pylist()
    with text.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["m"]) for row in rows] == pytest.approx(values, abs=0.005)
    assert f'"step":"{size}"' in (folder / "release.json").read_text().replace(" ", "")
    assert rw.read(folder).table.column("m").to_pylist() == table.column("m").to_pylist()


@pytest.mark.parametrize("missing", [("place",), ("kind",), ("place", "kind"), ()])
def test_only_columns_whose_null_is_a_category_may_be_empty_by_the_dictionary(
    missing: tuple[str, ...], tmp_path: Path
) -> None:
    names = ("place", "kind", "size")
    columns = {name: Column(name=name, null="category" if name in missing else "refuse") for name in names}
    rows: dict[str, list[Any]] = {name: ["x", None] if name in missing else ["x", "y"] for name in names}
    asked = rw.query().group_by(*names, keys=rw.Keys.of(pa.table(rows))).count(rw.Gaussian(sigma="0.05"), alias="n")
    records = pa.table({"id": [1, 2, 3], **{name: [*cells, "x"] for name, cells in rows.items()}})
    with employers(records, measures={}, columns=columns, ledger=tmp_path / "l") as session:
        release = session.run(asked)
    assert release.table.column("n").to_pylist() == [2, 1]
    (table,) = release.content().tables
    told = {entry.name: entry.missing for entry in table.columns}
    assert {name for name in names if told[name].startswith("empty: the value is missing")} == set(missing)
