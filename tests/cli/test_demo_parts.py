"""The parts of ``recordwise demo`` and ``init``, each on a few numbers."""

import importlib
import importlib.util
import sys
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv

from recordwise.cli import screen
from recordwise.errors import ParameterError, SourceError
from recordwise.plan.file import first
from recordwise.plan.sources import Csv, Database, Postgres
from recordwise.policy.meaning import power_zcdp

Patch = pytest.MonkeyPatch
demo: Any = importlib.import_module("recordwise.cli.demo")


# The plans of two years.


def test_the_first_year_is_sized_by_a_list_and_the_second_by_the_first(monkeypatch: Patch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name if name == "xlsxwriter" else None)
    one, two = demo.plan_text(2025), demo.plan_text(2026)
    for name, column, released in (
        ("count", "establishments", "count"),
        ("emp", "employees", "sum_emp"),
        ("payann", "payroll", "sum_payann"),
    ):
        assert f'size.{name} = {{ file = "sizes.csv", column = "{column}" }}\n' in one
        assert f'size.{name} = {{ release = "2025", column = "{released}" }}\n' in two
    assert 'sized_on = "public: what another office expects in each cell"\n' in one
    assert "sized_on" not in two
    assert "earlier" not in one
    assert '\nearlier = ["2025"]\n' in two
    assert 'formats = ["parquet", "csv"]' in one
    assert 'formats = ["parquet", "csv", "xlsx"]' in two
    for text, year in ((one, "2025"), (two, "2026")):
        assert f'source = "establishments-{year}.parquet"' in text
        assert not any(word in text for word in ("YEAR", "SIZES", "EARLIER", "FORMATS"))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert 'formats = ["parquet", "csv"]' in demo.plan_text(2026)


def test_new_folders_lie_as_deep_as_they_are_named(tmp_path: Path) -> None:
    assert demo.new_folder(tmp_path / "a" / "b") == tmp_path / "a" / "b"
    assert (tmp_path / "a" / "b").is_dir()


# What it gives and costs, on a few establishments.


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Five establishments in three cells of two counties and two industries."""
    table = pa.table(
        {
            "county": ["A1", "A1", "A1", "A2", "A2"],
            "industry": ["11", "11", "21", "11", "11"],
            "emp": np.array([600, 500, 99, 60, 40], np.int32),
            "payann": np.array([6000, 5000, 990, 600, 400], np.int64),
        }
    )
    pq.write_table(table, tmp_path / "establishments-2026.parquet")
    csv.write_csv(pa.table({"state": ["A", "A"], "county": ["A1", "A2"]}), tmp_path / "places.csv")
    csv.write_csv(pa.table({"sector": ["1", "2"], "industry": ["11", "21"]}), tmp_path / "industries.csv")
    return tmp_path


def test_some_records_are_spread_evenly_over_the_file(folder: Path, monkeypatch: Patch) -> None:
    found = demo.some_records(folder)
    assert found["emp"].tolist() == [600.0, 500.0, 99.0, 60.0, 40.0]
    assert found["payann"].dtype == np.float64
    assert found["county"].to_pylist() == ["A1", "A1", "A1", "A2", "A2"]
    assert list(found) == ["emp", "payann", "county", "industry"]
    monkeypatch.setattr(demo, "SOME", 3)
    assert demo.some_records(folder)["emp"].tolist() == [600.0, 99.0, 40.0]
    monkeypatch.setattr(demo, "SOME", 2)
    assert demo.some_records(folder)["payann"].tolist() == [6000.0, 400.0]


def test_the_flat_noise_costs_the_middle_establishment_what_the_plan_does(folder: Path) -> None:
    """Losses of emp / 100 and of 0.01 each, in the middle 1: of 99 employees, 99^2 / (2 sd^2) = 1."""

    def policy(loss: Any) -> Any:
        return SimpleNamespace(loss=lambda columns: loss(columns["emp"]))

    parts = [
        SimpleNamespace(alias="sum_emp", policy=policy(lambda emp: emp / 100)),
        SimpleNamespace(alias="count", policy=policy(lambda emp: 1e9)),
        SimpleNamespace(alias="sum_emp", policy=policy(lambda emp: 0.01)),
    ]
    file: Any = SimpleNamespace(plan=SimpleNamespace(parts=lambda: parts))
    assert demo.flat_noise(folder, file) == pytest.approx(99 / np.sqrt(2), rel=1e-12)


LEVELS = ("state_by_total", "county_by_total", "state_by_sector", "county_by_sector", "county_by_industry")


def released(statuses: dict[str, dict[tuple[str, str], str]]) -> Any:
    """A release whose basic tables have these statuses."""
    tables = []
    for level in LEVELS:
        place, activity = level.split("_by_")
        keys = list(statuses[level])
        data = pa.table(
            {
                place: [key[0] for key in keys],
                activity: [key[1] for key in keys],
                "sum_emp_status": list(statuses[level].values()),
            }
        )
        tables.append(SimpleNamespace(name=f"establishments_{level}_basic", data=data))
    return SimpleNamespace(basic_tables=tables)


def test_cells_are_counted_by_their_true_size_and_what_is_reliable(folder: Path, monkeypatch: Patch) -> None:
    """County A1 has 1,199 employees, 1,100 in one industry and 99 in the other; A2 has 100 in one.

    Flat noise of sd 16.5 on each of the cells of county by industry: reliable where 16.5 * sqrt(below) <= 0.165 * employees.
    """
    good, bad = "reliable", "unreliable"
    release = released(
        {
            "state_by_total": {("A", "00"): good},
            "county_by_total": {("A1", "00"): good, ("A2", "00"): bad},
            "state_by_sector": {("A", "1"): good, ("A", "2"): bad},
            "county_by_sector": {("A1", "1"): good, ("A1", "2"): good, ("A2", "1"): bad, ("A2", "2"): good},
            "county_by_industry": {("A1", "11"): bad, ("A1", "21"): bad, ("A2", "11"): good, ("A2", "21"): bad},
        }
    )
    monkeypatch.setattr(demo, "flat_noise", lambda folder, file: 16.5)
    found = demo.reliability(folder, None, release, 5)  # type: ignore[arg-type]
    assert found == [
        # 1,299 employees in four cells below: 33 of noise, up to 214 allowed.
        {"level": "state by total", "size": 2, "cells": 1, "reliable": 1, "flat": 1},
        # A2: sqrt(2) * 16.5 is more than 16.5.
        {"level": "county by total", "size": 1, "cells": 1, "reliable": 0, "flat": 0},
        {"level": "county by total", "size": 2, "cells": 1, "reliable": 1, "flat": 1},
        {"level": "state by sector", "size": 0, "cells": 1, "reliable": 0, "flat": 0},
        {"level": "state by sector", "size": 2, "cells": 1, "reliable": 1, "flat": 1},
        {"level": "county by sector", "size": 0, "cells": 1, "reliable": 1, "flat": 0},
        {"level": "county by sector", "size": 1, "cells": 1, "reliable": 0, "flat": 1},
        {"level": "county by sector", "size": 2, "cells": 1, "reliable": 1, "flat": 1},
        {"level": "county by industry", "size": 0, "cells": 1, "reliable": 0, "flat": 0},
        {"level": "county by industry", "size": 1, "cells": 1, "reliable": 1, "flat": 1},
        {"level": "county by industry", "size": 2, "cells": 1, "reliable": 0, "flat": 1},
    ]


def test_losses_of_both_years_are_spread_over_establishments(folder: Path) -> None:
    """One year costs employees, the other a thousand times that: 1,001 times 40, 60, 99, 500 and 600."""
    releases: Any = [
        SimpleNamespace(policy=SimpleNamespace(loss=lambda columns, times=times: times * columns["emp"]))
        for times in (1, 1000)
    ]
    found = demo.spread_of_losses(folder, releases)
    # Of five, the 99th percentile is 0.96 of the way from the fourth to the fifth.
    assert found == {"half below": 1001 * 99, "one in a hundred above": pytest.approx(1001 * 596, rel=1e-12)}


@pytest.mark.costly
def test_examples_lose_in_each_year_and_in_both(monkeypatch: Patch) -> None:
    def policy(times: float) -> Any:
        return SimpleNamespace(policy=SimpleNamespace(loss=lambda record: times * record["emp"]))

    record = {"emp": Fraction(4), "payann": 140}
    plans: Any = (
        SimpleNamespace(examples={"other": {}}, plan="first"),
        SimpleNamespace(examples={"shop": record}, plan="second"),
    )
    asked: list[Any] = []

    def window(given: Any, measure: str) -> Any:
        asked.append((given, measure))
        return "window"

    monkeypatch.setattr(
        "recordwise.plan.cost.value_policy", lambda plan: SimpleNamespace(window=window) if plan == "second" else None
    )
    explaining = importlib.import_module("recordwise.planning.explain")
    monkeypatch.setattr(explaining, "window_text", lambda found: f"as told by a {found}")
    releases: Any = (policy(0.25), policy(0.5))
    (found,) = demo.losses(plans, releases)
    assert found["power"] == power_zcdp(3.0)
    assert found == {
        "name": "shop",
        "emp": 4.0,
        "payann": 140.0,
        "losses": [1.0, 2.0],
        "both": 3.0,
        "power": found["power"],
        "presence": found["presence"],
        "payroll": "as told by a window",
    }
    assert asked == [(record, "payann")]
    monkeypatch.setattr("recordwise.plan.cost.value_policy", lambda plan: None)
    assert demo.losses(plans, releases)[0]["payroll"] == "-"


@dataclass(frozen=True)
class Changed:
    """A change between two releases, by table."""

    tables: dict[str, pa.Table]

    def __getitem__(self, name: str) -> pa.Table:
        return self.tables[name]


def test_cells_clearly_changed_whose_interval_leaves_out_zero() -> None:
    ends = {"sum_emp_change_low": [1.0, 0.0, -5.0, -3.0, 2.0], "sum_emp_change_high": [9.0, 4.0, -1.0, 0.0, 3.0]}
    change: Any = Changed({"t": pa.table(ends), "none": pa.table({name: [0.0] for name in ends})})
    assert demo.changed_cells(change) == {"t": [3, 5], "none": [0, 1]}


def test_the_finest_table_is_compared_with_the_year_before() -> None:
    asked: list[Any] = []
    whole = Changed({"establishments_county_by_industry": "fine", "other": "coarse"})  # type: ignore[dict-item]
    later = SimpleNamespace(change=lambda before: asked.append(before) or whole)
    found: Any = demo.finest_change(("before", later))  # type: ignore[arg-type]
    assert found == replace(whole, tables={"establishments_county_by_industry": "fine"})  # type: ignore[dict-item]
    assert asked == ["before"]


FOUND: dict[str, Any] = {
    "seconds": 1.5,
    "reliable": [
        {"level": "state by total", "size": 2, "cells": 1000, "reliable": 970, "flat": 121},
        {"level": "county by total", "size": 0, "cells": 8, "reliable": 2, "flat": 0},
    ],
    "losses": [
        {
            "name": "shop",
            "emp": 4000.0,
            "losses": [0.5, 1.25],
            "both": 1.75,
            "presence": "hidden",
            "power": 0.256,
            "payroll": "within 9%",
        }
    ],
    "spread": {"half below": 0.125, "one in a hundred above": 2.5},
    "changed": {"establishments_county_by_industry": [1234, 5678]},
    "workbook": True,
}


@pytest.mark.parametrize("workbook", [True, False])
@pytest.mark.parametrize("missing", [(), ("starlette",), ("uvicorn",)])
def test_one_screen_says_all_of_it(
    workbook: bool, missing: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: Patch
) -> None:
    monkeypatch.setattr(screen, "on_terminal", lambda: False)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name in missing else name)
    monkeypatch.setattr(demo, "own_command", lambda: "bin/recordwise")
    demo.show(Path("out"), 20_000, FOUND | {"workbook": workbook})
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if not line] == ["", "", ""]
    text = " ".join(" ".join(lines).split())
    kinds = "CSV, Parquet and a workbook" if workbook else "CSV, Parquet (with recordwise[formats] also a workbook)"
    last = (
        "loss out/2026/policy.json emp=4 payann=140 county=A002 industry=445"
        if missing
        else "studio out/plan-2026.toml"
    )
    assert text == (
        "Reliable cells by level and by true number of employees (in brackets: one flat table with one noise) "
        "level below 100 100 to 999 1,000 or more "
        "state by total - - 97% (12%) of 1,000 "
        "county by total 25% (0%) of 8 - - "
        "The noise is the one that `recordwise plan recommend` found for a goal: employees of four in five cells of county by "
        "industry with 100 or more within a third of the truth, and losses in proportion to size. The flat noise costs the "
        "middle establishment the same. True sizes are known only because all of it is made up. "
        "What establishments lose over both years (zCDP rho), and what that means "
        "establishment employees 2025 2026 both who knows all else finds out its payroll can be told "
        "shop 4,000 0.5 1.25 1.75 hidden (26%) within 9% "
        "Payroll in thousand dollars. Half of all establishments lose less than 0.125, one in a hundred more than 2.5: those "
        "that are most of their cell. "
        "Two years of 20,000 establishments in 1.5 seconds "
        f"out/2026: tables that add up, with a status for each number, as {kinds}; open report.html. "
        "out/change: employment clearly changed in 1,234 of 5,678 cells of county by industry. Try next: "
        "$ bin/recordwise explain out/plan-2026.toml --to out/explained.html "
        "\\ --records out/establishments-2026.parquet --data synthetic "
        "$ bin/recordwise ask out/2026 emp --where sector=62 --by state "
        f"$ bin/recordwise {last}"
    )


def test_what_to_try_next_is_typed_as_the_program_was_started(tmp_path: Path, monkeypatch: Patch) -> None:
    """As make demo does: with the Python of a folder that is not on the PATH."""
    monkeypatch.chdir(tmp_path)
    for name in ("own/bin/python", "own/bin/recordwise", "other/recordwise", "a b/python"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "own/bin/python"))
    monkeypatch.setattr(sys, "argv", [str(tmp_path / "recordwise/__main__.py"), "demo"])
    monkeypatch.setenv("PATH", str(tmp_path / "other"))
    assert demo.own_command() == "own/bin/recordwise"
    monkeypatch.setenv("PATH", str(tmp_path / "own/bin"))
    assert demo.own_command() == "recordwise"
    monkeypatch.setattr(sys, "executable", str(tmp_path / "a b/python"))
    assert demo.own_command() == "'a b/python' -m recordwise"
    monkeypatch.setattr(sys, "argv", ["own/bin/recordwise", "demo"])
    assert demo.own_command() == "recordwise"
    monkeypatch.chdir(tmp_path / "other")
    monkeypatch.setattr(sys, "argv", [str(tmp_path / "own/bin/recordwise"), "demo"])
    monkeypatch.setenv("PATH", "")
    assert demo.own_command() == str(tmp_path / "own/bin/recordwise")


def test_two_years_are_published_one_after_the_other(tmp_path: Path, monkeypatch: Patch) -> None:
    done: list[Any] = []
    monkeypatch.setattr(demo, "write_inputs", lambda folder, rows: done.append(("inputs", folder.name, rows)))
    monkeypatch.setattr(
        demo, "published", lambda folder, year, tell: done.append(year) or (f"plan {year}", f"out {year}")
    )
    change = SimpleNamespace(save=lambda path, formats: done.append((path.name, formats)))
    monkeypatch.setattr(demo, "finest_change", lambda releases: done.append(releases) or change)
    monkeypatch.setattr(demo, "reliability", lambda folder, plan, release, rows: [plan, release, rows])
    monkeypatch.setattr(demo, "losses", lambda plans, releases: [plans, releases])
    monkeypatch.setattr(demo, "spread_of_losses", lambda folder, releases: releases)
    monkeypatch.setattr(demo, "changed_cells", lambda given: given is change)
    shown: list[Any] = []
    monkeypatch.setattr(demo, "show", lambda *given: shown.append(given))
    out = tmp_path / "out"
    demo.demo(establishments=7, out=out, as_json=False, debug=True)
    outs, plans = ("out 2025", "out 2026"), ("plan 2025", "plan 2026")
    assert done == [("inputs", "out", 7), 2025, 2026, outs, ("change", ["csv"])]
    ((folder, rows, found),) = shown
    assert (folder, rows, found.pop("seconds") < 60) == (out, 7, True)
    assert found == {
        "folder": str(out),
        "reliable": ["plan 2026", "out 2026", 7],
        "losses": [plans, outs],
        "spread": outs,
        "changed": True,
        "workbook": False,
    }


# A first plan.


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("emp", ("emp", "", "")),
        ("emp=5", ("emp", "=", "5")),
        ("a=b", ("a=b", "", "")),
        ("a=b=5", ("a=b", "=", "5")),
        ("other", ("other", "", "")),
    ],
)
def test_a_number_is_cut_off_at_its_last_sign(text: str, wanted: tuple[str, str, str]) -> None:
    assert demo._cut(text, ["emp", "a=b"]) == wanted


def test_keys_are_files_or_codes_of_columns() -> None:
    assert demo._key_lists(["001, 003,,"], ["county"]) == ([], {"county": ("001", "003")})
    assert demo._key_lists(["county=001", "naics=44,45"], ["county", "naics"]) == (
        [],
        {"county": ("001",), "naics": ("44", "45")},
    )
    for name in ("a.csv", "a.PARQUET", "a.pq"):
        assert demo._key_lists([name], []) == ([Path(name)], {})
    assert demo._key_lists([], ["county"]) == ([], {})


@pytest.mark.parametrize(
    ("given", "by", "words"),
    [
        (["001"], [], "does not say of which column .* Write --keys NAME=001"),
        (["001"], ["county", "naics"], "does not say of which column .* Write --keys county=001"),
        (["=001"], ["county"], "does not say of which column"),
        (["a.csv", "b.csv"], ["county"], "must be one file, or codes"),
        (["a.csv", "001"], ["county"], "must be one file, or codes"),
    ],
)
def test_keys_of_which_it_is_not_clear_whose_are_refused(given: list[str], by: list[str], words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        demo._key_lists(given, by)


def test_wishes_are_what_was_said(monkeypatch: Patch, tmp_path: Path) -> None:
    found = [SimpleNamespace(name=name) for name in ("id", "county", "emp", "pay")]
    said: dict[str, Any] = {"unit": ["id"], "sum": ["emp=5", "pay"], "by": ["county"], "keys": ["001,003"]}
    wishes = demo.wishes_of(said | {"tuned_on": ["public"]}, ["pay=0.5"], [], None, tmp_path / "plan.toml", found)
    assert wishes == first.Wishes(
        unit=("id",),
        sums={"emp": "5", "pay": ""},
        steps={"pay": "0.5"},
        by=("county",),
        keys={"county": ("001", "003")},
        tuned_on="public",
    )
    nothing = dict.fromkeys(("unit", "sum", "by", "keys", "tuned_on"))
    assert demo.wishes_of(nothing, [], [], None, tmp_path / "plan.toml", found) == first.Wishes()
    said = nothing | {"keys": [str(tmp_path / "cells.csv")]}
    assert demo.wishes_of(said, [], [], None, tmp_path / "plan.toml", found).key_file == "cells.csv"
    monkeypatch.setattr(first, "code_list", lambda path, out, names: (path, out, tuple(names)))
    monkeypatch.setattr(first, "with_sizes", lambda wishes, sizes, out: (wishes, sizes, out))
    out = Path("plan.toml")
    listed, sizes, beside = demo.wishes_of(nothing, [], [Path("a.csv")], Path("s.csv"), out, found)
    assert listed.code_lists == ((Path("a.csv"), out, ("id", "county", "emp", "pay")),)
    assert (sizes, beside) == (Path("s.csv"), out)


class Asked:
    """Answers to questions, in turn; what was asked is kept."""

    def __init__(self, *answers: str) -> None:
        self.answers, self.seen = list(answers), list[tuple[str, str, bool]]()

    def __call__(self, question: str, *, default: str, show_default: bool, prompt_suffix: str) -> str:
        assert prompt_suffix == " "
        self.seen.append((question, default, show_default))
        return self.answers.pop(0)


NOTHING: dict[str, list[str] | None] = dict.fromkeys(("unit", "sum", "by", "keys", "tuned_on"))


def answered(monkeypatch: Patch, said: dict[str, Any], *answers: str, asked: bool = True) -> tuple[Any, list[str]]:
    prompt = Asked(*answers)
    monkeypatch.setattr(demo.typer, "prompt", prompt)
    monkeypatch.setattr(first, "roles_of", lambda found, wishes: SimpleNamespace(unit=("id", *wishes.by)))
    columns = [SimpleNamespace(name="id"), SimpleNamespace(name="emp")]
    found = demo.ask_missing(NOTHING | said, columns, asked=asked)
    names = {question: name for name, question in demo.QUESTIONS.items()}
    for question, default, shown in prompt.seen:
        by = said.get("by") or []
        assert (default, shown) == ((",".join(["id", *by]), True) if names[question] == "unit" else ("", False))
    return found, [names[question] for question, _, _ in prompt.seen]


def test_what_was_not_said_is_asked_for(monkeypatch: Patch, capsys: pytest.CaptureFixture[str]) -> None:
    found, names = answered(monkeypatch, {}, "id", " emp=5 , pay,", "county, naics", "county=1,2 naics=3", "public")
    assert capsys.readouterr().out == "The columns: id, emp.\n"
    assert names == ["unit", "sum", "by", "keys", "tuned_on"]
    assert found == {
        "unit": ["id"],
        "sum": ["emp=5", "pay"],
        "by": ["county", "naics"],
        "keys": ["county=1,2", "naics=3"],
        "tuned_on": ["public"],
    }
    # Codes are asked for only of columns, and neither where lists say them.
    found, names = answered(monkeypatch, {}, "id", "", " ", "public")
    assert (names, found["by"], found["sum"]) == (["unit", "sum", "by", "tuned_on"], None, None)
    found, names = answered(monkeypatch, {}, "id", "", "public", asked=False)
    assert names == ["unit", "sum", "tuned_on"]
    found, names = answered(monkeypatch, {"unit": ["id"], "by": ["county"]}, "emp", "1,2", "past")
    assert (names, found["keys"]) == (["sum", "keys", "tuned_on"], ["1,2"])
    found, names = answered(monkeypatch, {"by": ["county"], "keys": ["1"]}, "id", "", "past")
    assert (names, found["keys"]) == (["unit", "sum", "tuned_on"], ["1"])


def test_a_source_is_named_by_its_file_table_or_address(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("a\n")
    assert demo.named_source(str(path), None, None) == str(path)
    assert demo.named_source(str(path), None, "cp1252") == Csv(str(path), encoding="cp1252")
    assert demo.named_source("a.db", "t", None) == Database("a.db", table="t")
    address = "postgresql://me@host/base"
    assert demo.named_source(address, "t", None) == Postgres(address, table="t")
    for secret in (
        "postgresql://me:secret@host/base",
        "postgresql://host/base?password=x",
        "postgres://h/b?a=1&password=x",
    ):
        with pytest.raises(SourceError, match="contains a password"):
            demo.named_source(secret, "t", None)
    with pytest.raises(SourceError, match=r"'catalog\.table'.*there is no such file"):
        demo.named_source("catalog.table", None, None)
