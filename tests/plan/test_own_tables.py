"""A table that we published is no public list, whatever it is called and whatever format it is in, as far as it can be told."""

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import recordwise as rw
from build import employers
from recordwise.errors import KeysError, ParameterError, PlanFileError
from recordwise.plan.sources import read_code_file

CELLS = {"county": ["001", "003"]}
PLAN = """
dataset = "test"
source = "records.parquet"
ledger = "plan.ledger"
tuned_on = "synthetic"

[schema]
unit = "id"
measures = { emp = 1 }
columns = { county = "text" }

[keys.cells]
KEYS

[[queries]]
group_by = ["county"]
keys = "cells"
sum.emp = { kind = "Sized", floor = 100, mechanism = { kind = "Gaussian", sigma = 0.1 } }
"""
LISTS = {
    "keys and sizes": 'file = "FILE"\nsize = "sum_emp"\nsized_on = "public: last year"',
    "sizes alone": 'rows = { county = ["001", "003"] }\nsize = { file = "FILE", column = "sum_emp" }\nsized_on = "public: us"',
    "a column of a product": 'product = { county = { file = "FILE", column = "county" } }',
}


def published(place: Path, *, rng: Any = None) -> Path:
    """A folder with the table county in every format that holds it."""
    records = {"id": [1, 2, 3], "county": ["001", "003", "003"], "emp": [5, 7, 9]}
    asked = rw.query().group_by("county", keys=CELLS).sum("emp", rw.Gaussian(sigma=20))
    with employers(records, "county", tuned_on="public") as session:
        release = session.run(asked, rng=rng)
    formats = ("parquet", "csv") if rng is not None else ("parquet", "csv", "sdmx-csv")
    return release.save(place, formats=formats)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    place = tmp_path_factory.mktemp("published")
    return {"private": published(place / "a"), "seeded": published(place / "b", rng=rw.noise.Seeded(1))}


TOLD = {"private": "private but not a public list.*FromRelease", "seeded": "NOT PRIVATE.*never a public list"}


@pytest.mark.parametrize("kind", TOLD)
@pytest.mark.parametrize("name", ["county.parquet", "county.csv"])
@pytest.mark.parametrize("use", LISTS)
@pytest.mark.costly
def test_no_plan_takes_a_table_of_ours_as_a_public_list(
    folders: dict[str, Path], tmp_path: Path, kind: str, name: str, use: str
) -> None:
    (tmp_path / "plan.toml").write_text(PLAN.replace("KEYS", LISTS[use].replace("FILE", str(folders[kind] / name))))
    with pytest.raises(PlanFileError, match=TOLD[kind]):
        rw.load_plan(tmp_path / "plan.toml")


@pytest.mark.parametrize("kind", TOLD)
def test_a_hierarchy_does_not_either(folders: dict[str, Path], kind: str) -> None:
    for codes in (folders[kind] / "county.parquet", pq.read_table(folders[kind] / "county.parquet")):
        with pytest.raises(ParameterError, match=TOLD[kind]):
            rw.Hierarchy.of("places", codes, levels=["county"], source="public: us")


@pytest.mark.parametrize("kind", TOLD)
def test_python_refuses_the_same_from_parquet(folders: dict[str, Path], kind: str) -> None:
    table = pq.read_table(folders[kind] / "county.parquet")
    given = {"size": "sum_emp", "sized_on": "public: last year"}
    with pytest.raises(KeysError, match=TOLD[kind]):
        rw.Keys.of(table.select(["county", "sum_emp"]), **given)
    with pytest.raises(KeysError, match=TOLD[kind]):
        rw.Keys.of(CELLS).sized(table, **given)
    with pytest.raises(KeysError, match=TOLD[kind]):
        rw.query().group_by("county", keys=table.select(["county"]))


def copies(folder: Path, place: Path) -> dict[str, Path]:
    """The files of a release under other names and in other places, with what tells each of them."""
    found = {"parquet elsewhere": shutil.copy(folder / "county.parquet", place / "sizes.parquet")}
    shutil.copytree(folder, place / "copy")
    found["renamed beside release.json"] = shutil.copy(place / "copy" / "county.csv", place / "copy" / "public.csv")
    (place / "link.csv").symlink_to(folder / "county.csv")
    found["a link"] = place / "link.csv"
    shutil.copytree(folder, place / "packaged")
    (place / "packaged" / "release.json").unlink()
    found["beside datapackage.json alone"] = place / "packaged" / "county.csv"
    shutil.copytree(folder, place / "first")
    (place / "first" / "datapackage.json").unlink()
    stated = json.loads((place / "first" / "release.json").read_text())
    (place / "first" / "release.json").write_text(json.dumps({n: v for n, v in stated.items() if n != "sha256"}))
    found["as the first version lists its tables"] = place / "first" / "county.csv"
    return {name: Path(path) for name, path in found.items()}


@pytest.mark.parametrize("kind", TOLD)
def test_a_copy_is_told_by_its_label_or_by_the_folder_it_is_in(
    folders: dict[str, Path], tmp_path: Path, kind: str
) -> None:
    for name, path in copies(folders[kind], tmp_path).items():
        with pytest.raises(KeysError, match=TOLD[kind]):
            pytest.fail(f"{name} was read: {read_code_file(path).num_rows} rows")


def test_a_file_that_is_not_private_is_told_wherever_it_is_and_a_private_csv_file_is_not(
    folders: dict[str, Path], tmp_path: Path
) -> None:
    """The limit that docs/limits.md states."""
    shutil.copy(folders["seeded"] / "county.csv", tmp_path / "seeded.csv")
    with pytest.raises(KeysError, match="NOT PRIVATE"):
        read_code_file(tmp_path / "seeded.csv")
    shutil.copy(folders["private"] / "county.csv", tmp_path / "private.csv")
    assert read_code_file(tmp_path / "private.csv").num_rows == 2


def test_a_list_of_ones_own_in_the_folder_of_a_release_is_read(folders: dict[str, Path], tmp_path: Path) -> None:
    shutil.copytree(folders["private"], tmp_path / "copy")
    (tmp_path / "copy" / "places.csv").write_text("county,emp\n001,5\n003,8\n")
    assert read_code_file(tmp_path / "copy" / "places.csv").num_rows == 2
    for text in ("{", "[1]", '{"sha256": 3}', '{"recordwise_release": 1, "sha256": [1], "accuracy": null}'):
        (tmp_path / "copy" / "release.json").write_text(text)
        (tmp_path / "copy" / "datapackage.json").write_text(text)
        assert read_code_file(tmp_path / "copy" / "places.csv").num_rows == 2
