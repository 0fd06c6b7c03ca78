"""A rehearsal goes the whole way with records that fit any schema, and touches nothing of the plan it rehearses."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import recordwise as rw
from planning.rehearsed_plans import SELECTED, write_plans
from recordwise.errors import KeysError, OutputError, ParameterError
from recordwise.planning import Rehearsal, rehearse
from recordwise.planning.simulate.generate import write_records
from recordwise.release.page.history import history_of

ROWS = 3_000


@pytest.fixture(scope="module")
def plans(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return write_plans(tmp_path_factory.mktemp("plans"))


@pytest.fixture(scope="module")
def made(plans: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Rehearsal:
    return rehearse(plans[0], out=tmp_path_factory.mktemp("out") / "made", rows=ROWS)


@pytest.mark.parametrize("number", [0, 1])
def test_generated_records_are_valid_for_every_kind_of_schema(
    plans: tuple[Path, Path], tmp_path: Path, number: int
) -> None:
    file = rw.load_plan(plans[number])
    write_records(file, tmp_path / "records.parquet", ROWS)
    schema = file.plan.schema
    with rw.Session(
        tmp_path / "records.parquet",
        unit=schema.unit,
        measures={each.name: each for each in schema.measures},
        columns={each.name: each for each in schema.columns},
        firm=schema.firm,
        collapse=dict(schema.collapse) if schema.collapse else None,
        hierarchies=schema.hierarchies,
        tuned_on="synthetic",
    ) as session:
        session.validate()
        covered = session.owner.preflight(*file.plan.queries)
    assert all(each.records > 0 for each in covered)


def test_every_public_cell_is_found_and_measures_are_skewed_and_signed(
    plans: tuple[Path, Path], tmp_path: Path
) -> None:
    write_records(rw.load_plan(plans[0]), tmp_path / "records.parquet", ROWS)
    table = pq.read_table(tmp_path / "records.parquet").to_pydict()
    pairs = set(zip(table["county"], table["naics"]))
    assert pairs == {(c, n) for c in ("01001", "02013", "13001") for n in ("441110", "441120", "722511")}
    assert {day.year for day in table["opened"]} == {2020, 2021}
    assert {day.month for day in table["opened"]} == {2, 11}
    assert set(table["public"]) == {True, False}
    assert set(table["size"]) == {1, 2, 3}
    assert "trust" in table["form"]
    emp, profit = np.array(table["emp"]), np.array(table["profit"])
    assert emp.max() > 20 * np.median(emp) > 0
    assert profit.min() < 0 < profit.max()
    assert np.all(profit % 10 == 0)
    assert None in table["exports"]
    assert max(table["payann"]) <= 50_000
    assert len(set(table["id"])) == ROWS > len(set(table["owner"]))


def test_units_with_several_rows_collapse_to_the_sizes_that_are_public(
    plans: tuple[Path, Path], tmp_path: Path
) -> None:
    rows = write_records(rw.load_plan(plans[1]), tmp_path / "records.parquet", ROWS)
    table = pq.read_table(tmp_path / "records.parquet")
    assert rows == table.num_rows > 1.2 * ROWS
    units, first = np.unique(table.column("plant").to_numpy(), return_index=True)
    assert len(units) == ROWS
    counties, counts = np.unique(np.array(table.column("county").to_pylist())[first], return_counts=True)
    assert list(counties) == ["01001", "01003", "02013", "02016", "13001"]
    # Five public sizes of 225 in all, at ROWS records: five standard deviations of a binomial share.
    shares = np.array([90, 10, 100, 5, 20]) / 225
    assert np.all(np.abs(counts / ROWS - shares) < 5 * np.sqrt(shares / ROWS))


def test_the_same_seed_gives_the_same_records_in_any_batches(
    plans: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = rw.load_plan(plans[1])
    write_records(file, tmp_path / "whole.parquet", 500, seed=3)
    monkeypatch.setattr("recordwise.planning.simulate.generate.BATCH", 77)
    write_records(file, tmp_path / "parts.parquet", 500, seed=3)
    write_records(file, tmp_path / "other.parquet", 500, seed=4)
    whole, parts, other = (pq.read_table(tmp_path / f"{name}.parquet") for name in ("whole", "parts", "other"))
    assert whole.select(["plant", "county", "last"]).equals(parts.select(["plant", "county", "last"]))
    assert not whole.equals(other)


@pytest.mark.costly
def test_a_rehearsal_goes_the_whole_way(made: Rehearsal) -> None:
    assert made.records == ROWS
    names = set(made.files)
    assert {"report.html", "release.json", "policy.json", "datapackage.json", "states.parquet", "states.csv"} <= names
    assert all(size > 0 for size in made.files.values())
    assert {"generating records", "reading records and drawing noise", "writing files"} <= set(made.seconds)
    for each in made.columns:
        assert sum(each.statuses.values()) == pytest.approx(1)
    assert sum(each.records for each in made.losses) == ROWS
    assert [each.maximum for each in made.losses] == sorted(each.maximum for each in made.losses)
    assert all(each.median <= each.p99 <= each.maximum for each in made.losses)


def test_nothing_of_the_plan_is_touched(made: Rehearsal, plans: tuple[Path, Path]) -> None:
    folder = plans[0].parent
    assert sorted(path.name for path in folder.iterdir()) == [
        "everything.toml",
        "monthly.toml",
        "places.csv",
        "sizes.csv",
    ]


def test_a_rehearsal_cannot_be_taken_for_a_release(made: Rehearsal) -> None:
    page = (made.folder / "report.html").read_text()
    assert 'class="not-private"' in page
    assert "REHEARSAL, not a release: All there is" in page
    form = json.loads((made.folder / "release.json").read_text())
    assert form["rehearsal"] == {"records": "generated", "private": False, "ledger": "thrown away"}
    assert form["dataset"].startswith("REHEARSAL")
    loaded = rw.read(made.folder)
    assert not loaded.private
    with pytest.raises(ParameterError, match="NOT PRIVATE"):
        history_of(loaded, [loaded])
    # A layout without a place for the label is not written.
    assert any("sdmx-csv has no place for the label" in note for note in made.notes())
    assert not [name for name in made.files if "sdmx" in name]


def test_a_rehearsal_is_no_size_for_a_release(made: Rehearsal, plans: tuple[Path, Path], tmp_path: Path) -> None:
    lines = plans[1].read_text().splitlines()
    start = lines.index('file = "sizes.csv"')
    sized = f'size = {{ release = "{made.folder}", column = "count" }}'
    text = "\n".join([*lines[:start], 'product = { county = ["01001"] }', sized, *lines[start + 3 :]])
    (tmp_path / "plan.toml").write_text(text)
    with pytest.raises(KeysError, match="NOT PRIVATE"):
        rehearse(tmp_path / "plan.toml", out=tmp_path / "out", rows=100)


@pytest.mark.costly
def test_given_records_are_used_and_their_noise_cannot_be_repeated(plans: tuple[Path, Path], tmp_path: Path) -> None:
    write_records(rw.load_plan(plans[1]), tmp_path / "past.parquet", 400)
    made = [
        rehearse(plans[1], out=tmp_path / f"made{number}", records=tmp_path / "past.parquet", seed=seed)
        for number, seed in enumerate((None, None, 5, 5))
    ]
    assert made[0].given
    assert made[0].records == 400
    assert made[0].source_rows > 400
    assert "fitting basic tables" in made[0].seconds
    assert "county_basic.parquet" in made[0].files
    assert not any(each.release.private for each in made)
    digests = [each.release.digest for each in made]
    assert digests[0] != digests[1]
    assert digests[2] == digests[3]


def test_bad_arguments_are_refused_before_anything_is_written(plans: tuple[Path, Path], tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="already exists"):
        rehearse(plans[1], out=tmp_path)
    with pytest.raises(ParameterError, match="rows"):
        rehearse(plans[1], out=tmp_path / "out", rows=0)
    (tmp_path / "release").mkdir()
    (tmp_path / "release" / "release.json").touch()
    with pytest.raises(OutputError, match="the folder of a release"):
        rehearse(plans[1], out=tmp_path / "release" / "sub", records="past.parquet", data="past")
    assert not (tmp_path / "release" / "sub").exists()
    with pytest.raises(ParameterError, match="generated records"):
        rehearse(plans[1], out=tmp_path / "out", rows=10, records="past.parquet")
    assert not (tmp_path / "out").exists()


def test_an_interrupt_leaves_nothing_behind(
    plans: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    monkeypatch.setattr(sys.modules[rehearse.__module__], "losses_by_size", interrupted)
    with pytest.raises(KeyboardInterrupt):
        rehearse(plans[1], out=tmp_path / "out", rows=100)
    assert list(tmp_path.rglob("*")) == [tmp_path / "temporary"]


def test_what_a_release_could_not_fit_is_told_and_left_out(tmp_path: Path) -> None:
    """Keys are selected, no measure is declared, and nothing is public about the column."""
    (tmp_path / "plan.toml").write_text(SELECTED)
    made = rehearse(tmp_path / "plan.toml", out=tmp_path / "out", rows=3_000)
    assert any("saved without basic tables" in note for note in made.notes())
    assert [each.name for each in made.losses] == ["all records"]
    assert made.release.tables[0].data.num_rows > 2
    assert not made.coverage


def test_a_single_record_is_told_in_the_singular(made: Rehearsal) -> None:
    one = replace(made, records=1, source_rows=1)
    assert one.summary().startswith("1 generated record, ")
    assert "of 1 record in " in repr(one)
    assert f"of {ROWS:,} records in " in repr(made)
