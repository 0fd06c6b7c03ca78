"""The package as a whole: imports are quick and load nothing optional, and its rooms are those of docs/architecture.md."""

import json
import os
import re
import statistics
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest

from benchmarks import rooms
from benchmarks.startup import FIRST

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src"
PAGE = (ROOT / "docs" / "architecture.md").read_text()
EXTRAS = {"pandas", "polars", "matplotlib", "opendp", "pyspark", "numba", "pyreadstat", "adbc_driver_postgresql"}
LATE = {"duckdb", "pyarrow", "sqlglot", "typer", "rich"}


def run(code: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    return result.stdout


@pytest.mark.parametrize("module", ["recordwise", "recordwise.policy"])
@pytest.mark.process
def test_importing_loads_no_extra(module: str) -> None:
    loaded = set(json.loads(run(f"import json, sys, {module}; print(json.dumps(sorted(sys.modules)))")))
    assert not loaded & EXTRAS
    if module == "recordwise":
        assert not loaded & LATE


@pytest.mark.process
def test_importing_takes_less_than_a_quarter_of_a_second() -> None:
    """Processor time of the import alone, beyond the bare start of Python: the median of several runs."""
    code = "import time; start = time.process_time(); import recordwise; print(time.process_time() - start)"
    assert statistics.median(float(run(code)) for _ in range(5)) < 0.25


@pytest.mark.process
def test_importing_loads_no_room_and_no_library() -> None:
    """What takes time is loaded by the first name that is used: the import itself brings the standard library alone."""
    code = "import json, sys, recordwise; print(json.dumps(sorted(sys.modules)))"
    loaded = set(json.loads(run(code)))
    assert {name for name in loaded if name.startswith("recordwise")} == {"recordwise"}
    assert not {name.partition(".")[0] for name in loaded} & {"numpy", "scipy", "flint", "jinja2", "cryptography"}


LATE_PANDAS = pytest.mark.skipif(
    int(version("pyarrow").partition(".")[0]) < 26,
    reason="older Arrow imports pandas by itself, wherever it is installed",
)


@LATE_PANDAS
@pytest.mark.process
def test_a_first_small_release_loads_nothing_it_does_not_use() -> None:
    """A person waits for imports: the noise of a few cells needs no compiled kernel, and a release that is not saved no page."""
    loaded = set(json.loads(run(f"{FIRST}\nimport json\nprint(json.dumps(sorted(sys.modules)))")))
    assert {"recordwise.session.session", "duckdb", "flint"} <= loaded
    assert not {name.partition(".")[0] for name in loaded} & {*EXTRAS, "scipy", "jinja2"}
    unused = (
        "numpy.random",
        "recordwise.engines.compile.owner",
        "recordwise.engines.owner",
        "recordwise.engines.spark",
        "recordwise.mechanisms.fat_tailed",
        "recordwise.mechanisms.key_selection",
        "recordwise.mechanisms.transformed",
        "recordwise.noise.stated",
        "recordwise.plan.file.",
        "recordwise.policy.dominance",
        "recordwise.policy.evaluate.sql",
        "recordwise.policy.groups",
        "recordwise.policy.render",
        "recordwise.release.content",
        "recordwise.release.files",
        "recordwise.release.formats",
        "recordwise.release.page",
        "recordwise.release.staging",
    )
    assert [name for name in loaded if name.startswith(unused)] == []


COLLECTED = """
import gc
born = gc.get_freeze_count()
{before}
import recordwise as rw
rw.Session
print(gc.isenabled(), gc.get_freeze_count() > born, gc.get_count()[0] < 10_000)
"""


@pytest.mark.parametrize(
    ("before", "after"),
    [("", "True False True"), ("gc.disable()", "False False False"), ("gc.freeze()", "True True True")],
)
@pytest.mark.process
def test_imports_leave_the_garbage_collector_as_it_was(before: str, after: str) -> None:
    """It rests while names are imported, unless it rests already or objects are frozen."""
    assert run(COLLECTED.format(before=before)).strip() == after


SAVED = """
import json, sys, tempfile
import duckdb, recordwise as rw
counties = {"state": ["1", "1", "2"], "county": ["001", "002", "005"]}
places = rw.Hierarchy.of("place", counties, levels=["state", "county"], source="public: a list")
with tempfile.TemporaryDirectory() as folder:
    records = folder + "/records.parquet"
    row = "'c' || i AS id, '00' || (1 + i % 2) AS county, i AS emp"
    duckdb.sql("SET enable_progress_bar = false")
    duckdb.sql(f"COPY (SELECT {row} FROM range(20) AS t(i)) TO '{records}' (FORMAT parquet)")
    asked = rw.query().group_by("county", keys=places.keys("county")).count(rw.Gaussian(rho="0.1"))
    asked = asked.sum("emp", rw.UnitSplit(at=50, rho="0.1")).ratio("emp", "count")
    where = {"ledger": folder + "/ledger", "tuned_on": "synthetic"}
    roles = {"unit": "id", "measures": {"emp": 1}, "columns": {"county": "text"}, "hierarchies": [places]}
    with rw.Session(records, **roles, **where) as session:
        session.run(asked).save(folder + "/out", formats=["parquet", "csv"])
print(json.dumps(sorted(sys.modules)))
"""


@LATE_PANDAS
@pytest.mark.process
def test_a_release_from_a_file_that_is_saved_imports_neither_pandas_nor_scipy() -> None:
    """Arrow imports pandas, wherever it is installed, to make a column of a list or an array of a column."""
    modules = set(json.loads(run(SAVED)))
    loaded = {name.partition(".")[0] for name in modules}
    assert {"duckdb", "pyarrow", "jinja2"} <= loaded
    assert not loaded & {*EXTRAS, "scipy"}
    assert not modules & {"numpy.ma", "numpy.random"}


def test_the_package_is_typed() -> None:
    assert (SOURCE / "recordwise" / "py.typed").exists()


def rows_of_the_page() -> list[set[str]]:
    """The rooms of each row of the table: a line without a number continues the row above it."""
    rows: list[set[str]] = []
    for number, room in re.findall(r"^\| (\d?) *\| `(\w+)(?:/|\.py)` \|", PAGE, re.MULTILINE):
        if number:
            assert int(number) == len(rows) + 1
            rows.append(set())
        rows[-1].add(room)
    return rows


def test_the_rows_of_the_page_are_those_import_linter_enforces() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(each["layers"] for each in contracts if each["type"] == "layers")
    assert rows_of_the_page() == [set(re.split(r" [|:] ", layer)) for layer in layers]


def test_the_rooms_of_the_page_are_those_of_the_package() -> None:
    found = {path.stem for path in (SOURCE / "recordwise").iterdir() if (path.is_dir() or path.suffix == ".py")}
    assert set().union(*rows_of_the_page()) == {name for name in found if not name.startswith("__")}


@pytest.mark.costly
def test_calls_change_room_at_most_half_as_often_as_before_the_rooms_were_redrawn() -> None:
    counted = rooms.counts()
    for name, before in rooms.BEFORE.items():
        assert 2 * counted[name].total() <= before, name


def test_modules_named_on_the_page_exist() -> None:
    for name in re.findall(r"`((?:\w+/)+(?:\w+\.py)?)`", PAGE):
        assert any((folder / name).exists() for folder in (ROOT, SOURCE / "recordwise")), name
