"""Sizes of cells in plan files: read, written, and taken from an earlier release (T-SIZE)."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import recordwise as rw
from build import employers
from recordwise.cli import app
from recordwise.errors import PlanFileError
from recordwise.plan.cost import plan_policy
from recordwise.plan.file.write import plan_text
from recordwise.plan.plan import Plan
from recordwise.plan.schema import Schema

CELLS = {"county": ["001", "001", "003"], "naics": ["1111", "4451", "1111"]}
SIZES = {"emp": [40.0, 399.5, 3000.0], "n": [4.0, 30.0, 90.0]}
SOURCE = "public: county tables"
SCHEMA = Schema.of(unit="id", measures={"emp": 1}, columns={"county": "text", "naics": "text"})
SIZED = rw.Sized(rw.Gaussian(sigma="0.1"), floor=100, low=rw.UnitSplit(at="0.05", rho="0.1"), low_below=300)


def written(query: rw.Query, folder: Path) -> Plan:
    """The plan that a written query reads back as."""
    text = plan_text([query], SCHEMA, dataset="test", source="records.parquet", ledger="a.ledger", tuned_on="synthetic")
    return rw.load_plan(text.save(folder / "plan.toml")).plan


@pytest.mark.parametrize("size", ["emp", {"emp": "emp", "count": "n"}], ids=["one", "each"])
def test_written_sizes_read_back_with_the_same_bands_and_policy(size: Any, tmp_path: Path) -> None:
    keys = rw.Keys.of(
        {**CELLS, **(SIZES if isinstance(size, dict) else {"emp": SIZES["emp"]})}, size=size, sized_on=SOURCE
    )
    query = rw.query().group_by("county", keys=keys).levels(rw.prefix("naics", 2), "naics")
    query = query.count(rw.Sized(rw.Gaussian(sigma="0.1"), floor=10)).sum("emp", SIZED)
    plan = written(query, tmp_path)
    own = Plan(schema=SCHEMA, queries=(query,))
    assert plan_policy(plan) == plan_policy(own)
    assert plan_policy(own).bands()
    (read,) = plan.queries[0].key_lists
    assert read == keys


LEFT = rw.policy.gaussian_sum("emp", sigma=25)
BUDGET = rw.policy.gaussian_sum("emp", sigma=20) + LEFT


def release(folder: Path, rng: Any = None) -> Path:
    records: dict[str, list[Any]] = {"id": list(range(60)), "emp": [number % 40 for number in range(60)]}
    records |= {name: [values[number % 3] for number in range(60)] for name, values in CELLS.items()}
    pq.write_table(pa.table(records), folder / "records.parquet")
    with employers(
        str(folder / "records.parquet"), ledger=folder / "plan.ledger", budget=BUDGET, dataset="test"
    ) as opened:
        query = rw.query().group_by("county", "naics", keys=rw.Keys.of(CELLS)).sum("emp", rw.Gaussian(sigma=20))
        return opened.run(query, rng=rng).save(folder / "year1")


def test_a_written_plan_names_the_release_its_sizes_are_from(tmp_path: Path) -> None:
    given = rw.FromRelease(release=str(tmp_path / "year1"), column="sum_emp")
    keys = rw.Keys.of(CELLS, size={"emp": given})
    other = rw.Keys.of(CELLS, size={"emp": rw.FromRelease(release=str(tmp_path / "year2"), column="sum_emp")})
    assert keys != other
    plan = written(rw.query().group_by("county", "naics", keys=keys).sum("emp", SIZED), tmp_path)
    (read,) = plan.queries[0].key_lists
    assert read == keys
    assert dict(read.sizes.waiting) == {"emp": given}


PLAN = """
dataset = "test"
source = "records.parquet"
ledger = "plan.ledger"
tuned_on = "synthetic"

[[budget]]
measure = "emp"
mechanism = { kind = "Gaussian", sigma = 20 }

[[budget]]
measure = "emp"
mechanism = { kind = "Gaussian", sigma = 25 }

[schema]
unit = "id"
measures = { emp = 1 }
columns = { county = "text", naics = "text" }

[keys.cells]
rows = { county = ["001", "001", "003"], naics = ["1111", "4451", "1111"] }
size = { release = "year1", column = "sum_emp" }

[[queries]]
group_by = ["county", "naics"]
keys = "cells"
sum.emp = { kind = "Sized", floor = 100, mechanism = { kind = "Gaussian", sigma = 0.1 } }
"""


def run(*words: Any) -> Any:
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.mark.costly
def test_a_plan_sized_by_an_earlier_release_is_checked_and_released_within_its_budget(tmp_path: Path) -> None:
    """At sizes of at most 400 sigma would be 10 or 20; the bands are raised until the budget of sigma 25 covers them."""
    release(tmp_path)
    (tmp_path / "plan.toml").write_text(PLAN)
    checked = run("check", tmp_path / "plan.toml")
    assert checked.exit_code == 0, checked.output
    assert "Promise over time: noise is scaled by sizes from an earlier release" in " ".join(checked.output.split())
    assert f"Sizes of cells: release {rw.read(tmp_path / 'year1').digest}" in " ".join(checked.output.split())
    made = run("release", tmp_path / "plan.toml", "--out", tmp_path / "year2", "--yes")
    assert made.exit_code == 0, made.output
    found = rw.read(tmp_path / "year2")
    assert LEFT.dominates(found.policy)
    assert "the unconditional promise is the budget" in found.to_json()["sized_noise"]
    page = (tmp_path / "year2" / "report.html").read_text()
    for printed in (page, " ".join(made.output.split())):
        assert found.to_json()["sized_noise"] in printed
    again = run("release", tmp_path / "plan.toml", "--out", tmp_path / "again", "--yes")
    assert again.exit_code != 0
    assert "Traceback" not in again.output


@pytest.mark.parametrize(
    ("ledger", "told"), [("other.ledger", "was not charged to this ledger"), ("plan.ledger", None)]
)
@pytest.mark.parametrize("command", ["check", "release"])
@pytest.mark.costly
def test_check_and_release_refuse_sizes_that_another_ledger_was_charged_for(
    command: str, ledger: str, told: str | None, tmp_path: Path
) -> None:
    words = ["--out", tmp_path / "year2", "--yes"] if command == "release" else []
    (tmp_path / "plan.toml").write_text(PLAN.replace("plan.ledger", ledger))
    release(tmp_path)
    found = run(command, tmp_path / "plan.toml", *words)
    assert found.exit_code == (0 if told is None else 2), found.output
    assert told is None or told in " ".join(found.output.split())
    assert (tmp_path / "year2").exists() == (told is None and command == "release")


@pytest.mark.parametrize("command", ["check", "release"])
def test_a_release_that_is_not_private_or_not_there_is_refused_before_anything_is_spent(
    command: str, tmp_path: Path
) -> None:
    words = ["--out", tmp_path / "year2", "--yes"] if command == "release" else []
    (tmp_path / "plan.toml").write_text(PLAN)
    release(tmp_path, rng=rw.noise.Seeded(3))
    refused = run(command, tmp_path / "plan.toml", *words)
    assert refused.exit_code != 0
    assert "NOT PRIVATE" in refused.output
    (tmp_path / "plan.toml").write_text(PLAN.replace('"year1"', '"year0"'))
    missing = run(command, tmp_path / "plan.toml", *words)
    assert missing.exit_code != 0
    assert "Traceback" not in missing.output + refused.output
    assert not (tmp_path / "year2").exists()


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (', column = "sum_emp" }', " }", "'column' is missing"),
        ('size = { release = "year1", column = "sum_emp" }', 'size = "emp"', "'sized_on' must say"),
        ('size = { release = "year1", column = "sum_emp" }', "size = 3", "size"),
        ('size = { release = "year1", column = "sum_emp" }', 'sized_on = "public: x"', "no size was given"),
    ],
)
def test_wrong_sizes_in_a_plan_are_named_with_their_line(old: str, new: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(PLAN.replace(old, new))
    with pytest.raises(PlanFileError, match=told):
        rw.load_plan(tmp_path / "plan.toml")
