"""Output formats: those of recordwise, and one that an installed package adds."""

import json
import sys
import types
from dataclasses import replace
from importlib.metadata import EntryPoint

import polars as pl
import pyarrow as pa
import pytest

import recordwise as rw
from build import generous, question, records, session
from recordwise.errors import ParameterError
from recordwise.noise import Seeded
from recordwise.release.content import Content
from recordwise.release.formats import Format, formats_named, known_formats, registry
from recordwise.release.formats.csv import Csv
from recordwise.release.formats.parquet import Parquet
from recordwise.release.tables import NOT_PRIVATE, PRIVATE
from recordwise.release.verify import verify

EVERY = ("parquet", "csv", "json_lines")


@pytest.fixture(scope="module")
def release(tmp_path_factory) -> rw.Release:
    ledger = tmp_path_factory.mktemp("ledger") / "small.ledger"
    with session(records(), ledger=ledger, budget=generous()) as opened:
        return opened.run(question())


OWN = ["parquet", "csv", "xlsx", "sas", "sas8", "stata", "sdmx-csv", "long", "cbp", "r"]


def test_the_formats_of_recordwise_are_known_by_name() -> None:
    assert list(known_formats()) == OWN
    assert all(isinstance(each, Format) for each in known_formats().values())


@pytest.mark.parametrize(
    "names, words",
    [
        (("parquet", "ods"), "unknown format: 'ods'. Choose from parquet, csv, xlsx"),
        (("csv",), "must include 'parquet'"),
        ((), "must include 'parquet'"),
        (("parquet", "r"), "'r', which reads the files of 'csv'. Add 'csv'"),
        (("parquet", "parquet"), "name a format twice"),
    ],
)
def test_formats_that_cannot_be_are_refused_before_a_file_is_written(names, words, release, tmp_path) -> None:
    with pytest.raises(ParameterError, match=words):
        release.save(tmp_path / "out", formats=names)
    assert list(tmp_path.iterdir()) == []


def without_first_row(content: Content) -> Content:
    (described,) = content.tables
    table = replace(described.table, data=described.data.slice(1))
    return replace(content, tables=(replace(described, table=table),))


@pytest.mark.parametrize("kind", [Parquet, Csv])
@pytest.mark.parametrize("label", [PRIVATE, NOT_PRIVATE])
def test_a_file_keeps_its_table_and_its_privacy_label(kind, label, release, tmp_path) -> None:
    content, path = (
        replace(release.content().only("county_by_naics2"), privacy_label=label),
        tmp_path / f"t.{kind.extension}",
    )
    kind().write(content, path)
    assert kind().privacy_label(path) == label
    assert kind().same(content, path)
    assert not kind().same(without_first_row(content), path)


def test_a_format_that_cannot_hold_a_column_is_refused(release, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(Csv, "problem", lambda self, content: "cannot store column 'n_sd' of type double")
    with pytest.raises(ParameterError, match="'csv', which cannot store column 'n_sd' of type double"):
        release.save(tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_a_format_of_an_installed_package_is_written_and_verified(own_package, tmp_path) -> None:
    ledger = tmp_path / "small.ledger"
    with session(records(), ledger=ledger, budget=generous()) as opened:
        folder = opened.run(question()).save(tmp_path / "out", formats=EVERY)
    file = folder / "county_by_naics2.jsonl"
    assert file.name in (folder / "report.html").read_text(encoding="utf-8")
    assert verify(ledger, against=[folder]) == []
    rw.read(folder)
    lines = file.read_text().splitlines()
    file.write_text("\n".join([lines[0], *lines[2:]]) + "\n")
    assert verify(ledger, against=[folder]) == [f"{folder}: {file.name} differs from the Parquet file next to it"]
    file.write_text("\n".join([json.dumps({"privacy_label": NOT_PRIVATE}), *lines[1:]]) + "\n")
    assert verify(ledger, against=[folder]) == [
        f"{folder}: {file.name} carries a different privacy label than the ledger"
    ]


def test_a_format_of_an_installed_package_says_that_a_seeded_release_is_not_private(own_package, tmp_path) -> None:
    with session(records(), budget=generous()) as opened:
        folder = opened.run(question(), rng=Seeded(1)).save(tmp_path / "out", formats=EVERY)
    for file in folder.glob("*.jsonl"):
        assert json.loads(file.read_text().splitlines()[0]) == {"privacy_label": NOT_PRIVATE}


class Taken(Csv):
    name = "taken"


@pytest.mark.parametrize(
    "name, value, words",
    [
        ("nothing", "no_such_module:X", "loading no_such_module:X failed with ModuleNotFoundError"),
        ("words", "string:ascii_letters", "string:ascii_letters is not an output format of that name"),
        ("taken", "own_formats:TAKEN", "its name or its extension '.csv' is already in use"),
        ("csv", "recordwise.release.formats.registry:OWN", "is not an output format of that name"),
    ],
)
def test_a_package_that_registers_something_else_is_named(name, value, words, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "own_formats", types.SimpleNamespace(TAKEN=Taken()))
    monkeypatch.setattr(
        registry, "_installed", lambda folders: [EntryPoint(name=name, value=value, group="recordwise.formats")]
    )
    with pytest.raises(ParameterError) as caught:
        formats_named(["parquet"])
    assert f"the output format '{name}' of an installed package" in str(caught.value)
    assert words in str(caught.value)


def test_a_release_of_one_table_and_each_table_are_arrow_streams(release) -> None:
    for table in release.tables:
        assert pa.table(table).equals(release[table.name])
    with pytest.raises(ParameterError, match="one of several"):
        pa.table(release)
    assert pl.DataFrame(replace(release, tables=release.tables[:1])).equals(pl.from_arrow(release.tables[0].data))


def test_a_name_that_is_no_table_is_refused_with_those_that_are(release) -> None:
    with pytest.raises(ParameterError, match=r"'other'. Its tables are county_by_naics2, county_by_naics3\."):
        release["other"]
