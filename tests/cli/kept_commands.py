"""What commands print about small fixed releases and plans, word by word and number by number, as text and as JSON."""

import contextlib
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

from typer.testing import CliRunner

import build
from cli.conftest import PLAN
from recordwise.cli import app, screen
from recordwise.synthetic import write_establishments
from release.rich_releases import plain, rich
from studio.small_plan import write_plan

Told = Iterator[tuple[str, Any]]
TIMES = re.compile(r"\d+(?:\.\d+)? (?:s|ms|MB|GB|seconds|minutes)\b")
REFUSED = re.compile(r"Usage: .*(Invalid value for '[^']+').*")
"""Typer's words for a value out of bounds, which change from version to version."""


@contextlib.contextmanager
def furnished(write: Callable[[Path], None]) -> Iterator[None]:
    """In a new folder, with what a subject needs in it."""
    before = Path.cwd()
    with TemporaryDirectory() as place:
        write(Path(place))
        os.chdir(place)
        try:
            with patch.object(screen, "on_terminal", lambda: False):
                yield
        finally:
            os.chdir(before)


def told(lines: list[str]) -> Told:
    """What each command prints, and how it ends."""
    for line in lines:
        words = [each.replace("~", " ") for each in line.split()]
        result = CliRunner().invoke(app, words)
        bare = re.sub(r"\x1b\[[0-9;]*m|[─━]+", " ", result.stdout + result.stderr)
        text = TIMES.sub("#", re.sub(r"\S*/(?=[\w.]+)", "", bare))
        yield line, [result.exit_code, REFUSED.sub(r"\1", " ".join(text.split()))]


def write_releases(folder: Path) -> None:
    for name, release in {"rich": rich(), "later": rich(2), "plain": plain(), "plain2": plain(2)}.items():
        replace(release, private=True).save(folder / name)
    (folder / "zones.csv").write_text("county,region,share\n01001,west,1\n0103,west,0.5\n0103,east,0.5\n")
    (folder / "codes.csv").write_text("code,region\n01,a\n13,a\n02,b\n")
    (folder / "walk.csv").write_text("before,now\n01001,x\n0103,x\n")
    (folder / "groups.csv").write_text("code,region\n01,south\n13,south\n")
    (folder / "firm.csv").write_text(
        "county,naics,kind,emp,pay,net\n01001,311,open,40,900.5,-7\n0103,311,new,4,90.5,3\n"
    )


QUESTIONS = [
    "ask plain emp",
    "ask plain emp --json",
    "ask plain n --by county",
    "ask plain n --by county --csv",
    "ask plain n --by county --json",
    "ask plain n --by zones.csv",
    "ask plain n --by codes.csv --codes state",
    "ask plain emp --where state=01,13 --where sector=31-33 --complete",
    "ask plain emp --where state~=~'01'~and~not~naics~in~('311') --nonnegative",
    "ask plain emp --where state=01 --share-of all",
    "ask plain emp --where sector=31-33 --by state --share-of all --each --json",
    "ask plain n --by state --share-of state=01",
    "ask plain2 n --by state --growth-from plain",
    "ask plain2 n --growth-from plain --json",
    "ask plain emp --by county --rank 2",
    "ask plain emp --by county --rank 2 --json",
    "ask plain n --by state --replicates drawn.csv",
    "ask rich emp --query 1 --by state --verify",
    "ask rich staff --by kind",
    "ask rich sum_pay",
    "ask rich net --by sector",
    "ask plain nothing",
    "ask plain n --where state",
    "ask plain n --each --share-of all",
    "ask plain n --rank 0",
    "ask nowhere n",
    "loss rich/policy.json emp=4 pay=140.5 net=-3 kind=open",
    "loss rich/policy.json emp=4 pay=140.5 net=-3 kind=new --json",
    "loss rich/policy.json emp=4 pay=140.5 net=-3 kind=shut --delta 1e-6 --formula",
    "loss rich/policy.json emp=4000 pay=140000 net=300 kind=open --paper",
    "loss rich/policy.json --firm firm.csv",
    "loss rich/policy.json --firm firm.csv --json",
    "loss rich/policy.json emp=4",
    "loss rich/policy.json emp=4 pay=0.5 net=1 kind=open",
    "loss rich/policy.json emp=4 pay=1 net=1 kind=open --delta 0",
    "loss plain/policy.json emp=0 pay=0 net=0",
    "loss plain/policy.json emp=1 pay=0.5 net=-1 --json",
    "change plain plain2 --out changes",
    "change plain plain2 --json",
    "change rich later --out changed --groups state=groups.csv --format csv --format xlsx",
    "change plain plain2 --crosswalk county=walk.csv --out walked --json",
    "change plain plain",
    "postprocess plain --out fitted --complete",
    "postprocess plain --out fitted2 --method nnls --zero-counts --draws 20 --json",
    "postprocess plain --out fitted3 --method sequential --priority patterns_state_by_total",
    "postprocess plain --out fitted4 --records weighted --of n --value emp --complete",
    "postprocess plain --out fitted5 --method unknown",
    "export plain --format csv --out tables.csv --table patterns_state_by_total",
    "export plain --format xlsx --out all.xlsx",
    "export plain --format stata --out one.dta --table patterns_state_by_total",
    "export plain --format stata --out two.dta --table nothing",
    "export plain --format nothing --out three",
]


def of_questions() -> Told:
    """Commands about saved releases."""
    with furnished(write_releases):
        yield from told(QUESTIONS)


def write_plans(folder: Path) -> None:
    write_establishments(folder / "establishments.parquet", 400)
    (folder / "plan.toml").write_text(PLAN + '\n[examples]\n"corner shop" = { emp = 4, payann = 140 }\n')
    (folder / "own").mkdir()
    write_plan(folder / "own", rows=300)
    (folder / "records.csv").write_text("id,county,emp,pay\n1,001,4,10.5\n2,003,7,20\n3,001,0,0\n")
    (folder / "bad.toml").write_text(PLAN.replace("rho = 0.5", "rho = -1").replace("naics =", "nacis ="))
    build.write_records(folder / "records.parquet", rows=40)


GENERATED = "--data synthetic"
PLANS = [
    "check plan.toml",
    "check plan.toml --formula --no-source",
    "check plan.toml --json",
    "check own/plan.toml",
    "check bad.toml",
    "check nowhere.toml",
    "explain plan.toml --rows 200",
    "explain plan.toml --rows 200 --json",
    "explain own/plan.toml --rows 100 --to page.md",
    f"plan compare plan.toml {GENERATED}",
    f"plan compare plan.toml {GENERATED} --statistic emp --threshold 20 --threshold 60 --rho 0.1 --firms --realized",
    f"plan compare plan.toml {GENERATED} --statistic sum_emp --clamp 50 --rho 1 --json",
    f"plan compare plan.toml {GENERATED} --relative-error 0.1 --at-total 900 --confidence 0.8 --at-least count=5 --statistic emp",
    f"plan compare plan.toml {GENERATED} --variance 400 --offset 10 --statistic emp",
    f"plan evaluate plan.toml {GENERATED} --draws 2 --seed 3",
    f"plan evaluate plan.toml {GENERATED} --draws 2 --seed 3 --by county --metric absolute_error --json",
    f"plan evaluate plan.toml {GENERATED} --draws 2 --against clamped --clamp-to emp=9 --clamp-to payann=99 --rho 1",
    "init records.csv --header --unit id --sum emp=5 --sum pay --step pay=0.5 --by county --keys 001,003 --out first.toml",
    "init records.parquet --unit id --sum emp --sum pay=90 --by county --by naics --out second.toml",
    "check first.toml",
    "init nowhere.csv --out third.toml",
    "audit --list",
    "audit --cells 1999",
]
SEARCHES = [
    f"plan recommend plan.toml {GENERATED} --within sum_emp=0.2 --within count=0.1 --within sum_payann=0.4 --rank-by p99 --json",
    f"plan recommend plan.toml {GENERATED} --within 0.3 --keep-mechanisms --share 0.75",
    f"plan recommend plan.toml {GENERATED} --within 0.2 --clamps --confidence 0.7 --share 0.5",
    f"plan recommend plan.toml {GENERATED} --within 0.2 --by-table --share 0.5",
    f"plan frontier plan.toml {GENERATED} --median 0.05 --p99 1 --json",
    f"plan frontier plan.toml {GENERATED} --loss-at emp=4,payann=140:3 --out better.toml",
]


def of_plans() -> Told:
    """Commands about plans, before anything is spent."""
    with furnished(write_plans):
        yield from told(PLANS)
        for name in ("first.toml", "second.toml", "page.md"):
            yield name, Path(name).read_text().splitlines()


def of_searches() -> Told:
    """Commands that look for better plans."""
    with furnished(write_plans):
        yield from told(SEARCHES)
        for name in ("better.toml",):
            yield name, Path(name).read_text().splitlines() if Path(name).exists() else "not written"


SUBJECTS = {"questions": of_questions, "plans": of_plans, "searches": of_searches}
