"""Hunts for what could tell of records beside the noisy numbers: errors, boxes, the shape and order of files, their metadata."""

import copy
import dataclasses
import json
import pickle
import re
import traceback
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sqlglot

import recordwise as rw
import recordwise.release.draw as publish
import recordwise.session.publisher as publisher
from audit.drawn_laws_of_two import joint_divergence
from build import employers, few, keys, question, records
from build import session as opened
from recordwise.engines import DuckDB
from recordwise.engines.duckdb.connection import Connection
from recordwise.errors import RecordwiseError
from recordwise.noise import Seeded
from recordwise.plan import Plan, Schema
from recordwise.plan.plan import Sensitive
from recordwise.policy import Measure, group_loss, group_loss_by_cell
from recordwise.release.formats import known_formats

SECRET = "98765432123"
ROLES: dict[str, Any] = {"measures": {"value": 1}, "tuned_on": "past"}
ASKED = rw.query().group_by("cell", keys=rw.Keys.of({"cell": ["a", "b"]})).sum("value", rw.Gaussian(sigma=3))
BROKEN_FILES = {
    "text for a number": f"id,cell,value\n1,a,{SECRET}x\n2,b,3\n".encode(),
    "too many fields": f"id,cell,value\n1,a,{SECRET},{SECRET}\n".encode(),
    "an open quote": f'id,cell,value\n1,"a{SECRET},3\n'.encode(),
    "an open quote in the header": f'id,"cell,value\n1,a{SECRET},3\n'.encode() + b"x" * 200_000,
    "no UTF-8": f"id,cell,value\n1,a{SECRET}".encode() + b"\xff\xfe,3\n",
    "a huge number": f"id,cell,value\n1,a,{SECRET * 30}\n".encode(),
    "a repeated id": f"id,cell,value\n{SECRET},a,3\n{SECRET},b,3\n".encode(),
}


def everything_of(error: BaseException) -> str:
    """Whatever a print-out, a log, an error tracker or another process could see of an error."""
    texts, here = [], error
    seen: list[BaseException] = []
    while here is not None and here not in seen:
        seen.append(here)
        texts += ["".join(traceback.format_exception(here)), repr(here), repr(vars(here)), repr(here.args)]
        here = here.__cause__ or here.__context__  # type: ignore[assignment]
    return "".join(texts)


def assert_silent(attempt: Callable[[], object]) -> None:
    with pytest.raises(RecordwiseError) as refused:
        attempt()
    assert SECRET not in everything_of(refused.value)


@pytest.mark.parametrize("name", BROKEN_FILES)
def test_an_error_about_a_file_holds_nothing_of_its_records(name: str, tmp_path: Path) -> None:
    path = tmp_path / "records.csv"
    path.write_bytes(BROKEN_FILES[name])

    def attempt() -> None:
        with employers(path, "cell", **ROLES) as session:
            session.run(ASKED)

    assert_silent(attempt)


@pytest.mark.parametrize("ask", [Connection.run, Connection.fetch, partial(Connection.fetch_numbers, at_most=9)])
def test_an_error_of_the_engine_holds_nothing_of_the_records(ask: Callable[..., object]) -> None:
    quoting = sqlglot.parse_one(f"SELECT CAST(value AS TINYINT) FROM (SELECT {SECRET} AS value)", dialect="duckdb")
    connection = Connection(files=[], memory_limit="100MB", threads=1)
    # The engine's own message does quote it, or nothing would be tested here.
    with pytest.raises(duckdb.Error, match=SECRET):
        connection.duckdb.sql(quoting.sql(dialect="duckdb")).fetchall()
    assert_silent(lambda: ask(connection, quoting))
    connection.close()


def test_an_error_of_somebody_else_s_code_holds_nothing_of_the_records(monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table({"id": [1, 2], "cell": [SECRET, "b"], "value": [int(SECRET), 2]})

    def quoting(*given: Any, **_: Any) -> Any:
        raise ValueError(f"{given} {SECRET}")

    domain = rw.Domain(columns=("cell",), size=5, keys=lambda at: {"cell": [str(i) for i in at]}, positions=quoting)
    chosen = rw.query().group_by("cell", keys=rw.Keys.select_from(domain, rho=1, threshold=3)).count(rw.Gaussian(rho=1))
    with employers(table, "cell", **ROLES) as session:
        assert_silent(lambda: session.run(chosen))
        assert_silent(lambda: session.run_external(quoting, split={"value": 50 * 10**9}, rho=1))
        monkeypatch.setattr(publisher, "prepare_table", quoting)
        assert_silent(lambda: session.run(ASKED))
        monkeypatch.undo()
        monkeypatch.setattr(publish, "draw_table", quoting)
        assert_silent(lambda: session.run(ASKED))
    for name in ("totals", "split_table"):
        with employers(table, "cell", **ROLES) as session:
            monkeypatch.setattr(DuckDB, name, quoting)
            assert_silent(lambda: session.run(ASKED) and session.run_external(len, split={"value": 5}, rho=1))
            monkeypatch.undo()


def test_a_box_tells_nothing_to_anybody_who_prints_copies_compares_or_sends_it() -> None:
    box = Sensitive(SECRET)
    for shown in (repr(box), str(box), f"{box}", f"{box!r:>40}", json.dumps({"a": box}, default=str), repr([box])):
        assert SECRET not in shown
    for attempt in (pickle.dumps, copy.copy, copy.deepcopy, hash, lambda each: each == box, lambda each: each != box):
        with pytest.raises(TypeError) as refused:
            attempt(box)
        assert SECRET not in everything_of(refused.value)
    assert not hasattr(box, "__dict__")


def test_totals_of_an_engine_tell_nothing_when_printed_and_cannot_be_taken_apart_by_copying() -> None:
    schema = Schema.of(unit="id", measures={"value": 1}, columns={"cell": "text"})
    table = pa.table({"id": [1], "cell": ["a"], "value": [int(SECRET)]})
    with DuckDB(table, schema) as engine:
        (found,) = engine.totals(Plan(schema=schema, queries=(ASKED,)))
    assert SECRET not in repr(found)
    with pytest.raises(TypeError):
        dataclasses.asdict(found)


def folder_of(
    table: pa.Table,
    folder: Path,
    *,
    asked: Any = None,
    seed: int = 11,
    formats: Sequence[str] = ("parquet", "csv"),
    basic: bool = False,
    **how: Any,
) -> Path:
    with opened(table, **how) as session:
        release = session.run(asked if asked is not None else question(), rng=Seeded(seed))
    # Some formats refuse what is not private; here the seed is what makes two releases comparable.
    return (dataclasses.replace(release, private=True).basic() if basic else release).save(folder, formats=formats)


def contents(folder: Path) -> dict[str, bytes]:
    """Every file but release.json; the end of the ledger's chain, which holds the time, is taken off the page."""
    end = json.loads((folder / "release.json").read_text())["ledger"]["digest"].encode()
    files = (path for path in sorted(folder.iterdir()) if path.name != "release.json")
    return {path.name: path.read_bytes().replace(end, b"") for path in files}


def described(folder: Path) -> dict[str, Any]:
    """release.json without what is made of the noisy numbers themselves."""
    told = json.loads((folder / "release.json").read_text())
    return {name: part for name, part in told.items() if name not in ("digest", "ledger", "accuracy", "sha256")}


def shape(path: Path) -> Any:
    """All that a Parquet file says about itself but its numbers and how well they compress."""
    file = pq.ParquetFile(path)
    groups = [file.metadata.row_group(i).num_rows for i in range(file.metadata.num_row_groups)]
    return file.schema_arrow, file.metadata.metadata, file.metadata.created_by, file.metadata.format_version, groups


@pytest.mark.costly
def test_records_that_no_public_cell_holds_change_not_a_byte_of_any_file(tmp_path: Path) -> None:
    inside = records()
    outside = inside.slice(0, 7).set_column(inside.column_names.index("county"), "county", pa.array(["99"] * 7))
    outside = outside.set_column(0, "id", pa.array(range(9000, 9007)))
    first = folder_of(inside, tmp_path / "a", max_outside="accept")
    second = folder_of(pa.concat_tables([inside, outside]), tmp_path / "b", max_outside="accept")
    assert contents(first) == contents(second)
    assert described(first) == described(second)


def test_the_order_of_the_records_changes_not_a_byte_of_any_file(tmp_path: Path) -> None:
    table = records()
    shuffled = table.take(pa.array(np.random.default_rng(1).permutation(table.num_rows)))
    assert contents(folder_of(table, tmp_path / "a")) == contents(folder_of(shuffled, tmp_path / "b"))


ANY = [name for name in known_formats() if name != "cbp"]
PATTERNS = (
    rw.query()
    .group_by("county", "naics", keys=keys())
    .count(rw.Gaussian(rho="0.1"), alias="est")
    .sum("emp", rw.UnitSplit(at=50, rho="0.1"), alias="emp")
)


@pytest.mark.parametrize("formats, asked", [(ANY, None), (["parquet", "cbp"], PATTERNS)], ids=["any", "cbp"])
@pytest.mark.costly
def test_no_file_of_any_format_tells_of_records_that_no_cell_holds_or_of_their_order(
    formats: Sequence[str], asked: Any, tmp_path: Path
) -> None:
    """Research and basic tables; the times of writing that some programs put into files are taken off."""
    inside = records()
    outside = inside.slice(0, 7).set_column(inside.column_names.index("county"), "county", pa.array(["99"] * 7))
    outside = outside.set_column(0, "id", pa.array(range(9000, 9007)))
    together = pa.concat_tables([inside, outside])
    shuffled = together.take(pa.array(np.random.default_rng(1).permutation(together.num_rows)))
    first, second = (
        folder_of(table, tmp_path / name, asked=asked, formats=formats, basic=True, max_outside="accept")
        for name, table in (("a", inside), ("b", shuffled))
    )
    found, other = contents(first), contents(second)
    assert set(known_formats()) == {*ANY, "cbp"}
    assert len({Path(name).suffix for name in found}) >= 4
    assert {name for name in found if untimed(name, found[name]) != untimed(name, other[name])} == set()
    assert described(first) == described(second)


SAS = rb"\d\d[A-Z]{3}\d\d:\d\d:\d\d:\d\d"
TIMES = {".xpt": SAS, ".v8xpt": SAS, ".dta": rb"\d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d"}
"""The times of writing that SAS and Stata files hold."""


def untimed(name: str, content: bytes) -> bytes:
    pattern = TIMES.get(Path(name).suffix)
    return content if pattern is None else re.sub(pattern, b"", content)


@pytest.mark.parametrize("left", few([0, 499, 1, 250], 2))
@pytest.mark.costly
def test_files_have_the_same_shape_whoever_is_in_the_data(left: int, tmp_path: Path) -> None:
    """From the full table to one without records: the same files, columns, types, rows, row groups, metadata and keys."""
    full, fewer = (
        folder_of(table, tmp_path / name) for name, table in (("a", records()), ("b", records().slice(0, left)))
    )
    assert [path.name for path in sorted(full.iterdir())] == [path.name for path in sorted(fewer.iterdir())]
    assert described(full) == described(fewer)
    assert {"labels", "parts", "policies", "sizes", "variances"} == set(described(full)["page"])
    assert (full / "policy.json").read_bytes() == (fewer / "policy.json").read_bytes()
    for path in sorted(full.glob("*.parquet")):
        assert shape(path) == shape(fewer / path.name)
        one, other = (pq.read_table(folder / path.name) for folder in (full, fewer))
        for name in ("county", "naics_2", "naics_3"):
            if name in one.column_names:
                assert one[name].equals(other[name])
        lines = [(folder / path.name).with_suffix(".csv").read_bytes().count(b"\n") for folder in (full, fewer)]
        assert lines[0] == lines[1]


def test_selected_keys_come_sorted_whatever_the_order_of_the_records(tmp_path: Path) -> None:
    asked = rw.query().group_by("county", "naics", keys=rw.Keys.select(rho=1, delta="0.01")).count(rw.Gaussian(rho=1))
    for seed in range(3):
        table = records().take(pa.array(np.random.default_rng(seed).permutation(500)))
        saved = pq.read_table(folder_of(table, tmp_path / str(seed), asked=asked) / "county_by_naics.parquet")
        found = list(zip(saved["county"].to_pylist(), saved["naics"].to_pylist()))
        assert found == sorted(found)
        assert len(found) == 9


def test_without_a_seed_a_release_is_private_and_never_the_same_twice(tmp_path: Path) -> None:
    asked = rw.query().group_by("county", "naics", keys=keys()).count(rw.Gaussian(rho="0.001"))
    with opened(records()) as session:
        first, second = (session.run(asked) for _ in range(2))
    assert first.private
    assert second.private
    assert not first.table["count"].equals(second.table["count"])


SIGNED = rw.RootTransform(degree=2, offset=1, sigma="0.3", signed=True)


@pytest.mark.parametrize("sizes", [(5, 5), (9, 2), (100, 100)])
def test_a_group_that_changes_both_parts_of_a_signed_sum_pays_for_both(sizes: tuple[int, int]) -> None:
    """The net change of +5 and -5 is 0, and a loss taken from it would be 0; what the two parts disclose adds up."""
    gain, cost = sizes
    true = joint_divergence(SIGNED, gain, cost)
    by_part = group_loss_by_cell([gain, cost], SIGNED.loss_at_shift)
    policy = SIGNED.policy(Measure("value", Fraction(1), True))
    single = group_loss([float(policy.loss({"value": gain})), float(policy.loss({"value": -cost}))])
    assert SIGNED.loss_at_shift(gain - cost) < true <= by_part <= single
