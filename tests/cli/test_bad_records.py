"""Records and plans that are wrong in every way we know of: one clear message, nothing spent, nothing of a record in it."""

import datetime
import gzip
import sqlite3
from contextlib import closing

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from recordwise.ledger.ledger import Ledger

SECRET, TOWN = 98765432123, "SECRETTOWN"
PLAN = """\
dataset = "small"
source = "t.parquet"
ledger = "l"
tuned_on = "synthetic"
#top
[schema]
unit = "id"
measures.emp = 1
measures.profit = { step = 1, signed = true, bound = 1_000_000_000 }
measures.rest = { derive = "profit - 45 * emp" }
columns.town = "text"
columns.size = "integer"
columns.opened = "date"
#schema
[[queries]]
where = "EXTRACT(YEAR FROM opened) >= 1900"
group_by = ["town"]
keys = { rows = { town = ["a", "b"] } }
count = { kind = "Gaussian", rho = 0.1 }
sum.emp = { kind = "Gaussian", sigma = 10 }
sum.profit = { kind = "Gaussian", sigma = 10 }
sum.rest = { kind = "Gaussian", sigma = 10 }
#query
[[queries]]
group_by = ["size"]
keys = { rows = { size = [1, 2] } }
count = { kind = "Gaussian", rho = 0.1 }
"""
DAY = datetime.date(2020, 2, 29)
ROWS = {"id": [1, 2, 3], "emp": [5, 7, 9], "profit": [-5, 0, 5], "town": ["a", "b", "a"], "size": [1, 2, 1]}
ROWS |= {"opened": [DAY] * 3}
COLLAPSE = '[schema.collapse]\nemp = "sum"\nprofit = "sum"\ntown = "same"\nsize = "same"\nopened = "same"\n'


def parquet(**columns):
    return lambda folder: pq.write_table(pa.table(ROWS | columns), folder / "t.parquet")


def written(name, content):
    def write(folder):
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())

    return write


def csv(lines, name="t.csv", encoding="utf-8"):
    text = "\n".join(["id,emp,profit,town,size,opened", *lines]) + "\n"
    return written(name, text.encode(encoding) if not name.endswith(".gz") else gzip.compress(text.encode(encoding)))


def sqlite(*rows):
    def write(folder):
        with closing(sqlite3.connect(folder / "t.db")) as made:
            made.execute(
                "CREATE TABLE firms (id INTEGER, emp INTEGER, profit INTEGER, town, size INTEGER, opened TEXT)"
            )
            made.executemany("INSERT INTO firms VALUES (?, ?, ?, ?, ?, ?)", rows)
            made.commit()

    return write


def hive(folder):
    for place in ("state=06/year=1", "state=06"):
        (folder / "t" / place).mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table(ROWS), folder / "t" / place / f"{place.count('/')}.parquet")


GOOD = "1,5,-5,a,1,2020-02-29"
ZONED = pa.array([datetime.datetime(2020, 2, 29)] * 3, pa.timestamp("us", tz="Europe/Oslo"))
CSV, DB, FEATHER = (
    ('"t.parquet"', '"t.csv"'),
    ('"t.parquet"', '"t.db"\ntable = "firms"'),
    ('"t.parquet"', '"t.feather"'),
)
RECORDS = {
    "negative": (parquet(emp=[5, -SECRET, 9]), (), "'emp' is negative in 1 row"),
    "beyond a bound, below 0": (parquet(profit=[0, -SECRET, 0]), (), "'profit' is beyond its public bound in 1 row"),
    "NaN": (parquet(profit=[0.0, float("nan"), 1.0]), (), "'profit' is not a number (NaN)"),
    "infinite": (parquet(profit=[0.0, float("-inf"), 1.0]), (), "'profit' is infinite"),
    "off the lattice": (parquet(emp=[1.0, 98765.432123, 2.0]), (), "off the lattice"),
    "missing measure": (parquet(emp=[5, None, 9]), (), "'emp' is NULL in 1 row"),
    "missing id": (parquet(id=[1, None, 3]), (), "'id' is NULL in 1 row"),
    "missing group": (parquet(town=["a", None, "b"]), (), "'town' is NULL in 1 row"),
    "missing date": (parquet(opened=[DAY, None, DAY]), (), "'opened' is NULL in 1 row"),
    "repeated id": (parquet(id=[SECRET, SECRET, 3]), (), "repeats"),
    "a time with a zone": (parquet(opened=ZONED), (), "a time with a time zone"),
    "a date as text, written another way": (parquet(opened=["29.02.2020"] * 3), (), "'opened' cannot be read"),
    "a date that is none": (parquet(opened=["2021-02-29"] * 3), (), "'opened' cannot be read"),
    "half a number of an integer column": (parquet(size=[1.0, 98765.5, 2.0]), (), "'size'"),
    "a float as text in an integer column": (parquet(size=["1.0", "2", "1"]), (), "'size' cannot be read"),
    "text for a measure": (parquet(emp=["5", TOWN, "9"]), (), "'emp' cannot be read as a number"),
    "a column that is missing": (
        parquet(),
        (("columns.town", "columns.towns"), ('"town"', '"towns"'), ("{ town", "{ towns")),
        "no column towns",
    ),
    "keys that match nothing": (
        parquet(town=[TOWN] * 3),
        (("#top", "max_outside = 0.01"),),
        "are outside its published cells",
    ),
    "rows of a unit that differ": (
        parquet(id=[1, 1, 3]),
        (("#schema\n", COLLAPSE),),
        "differs between the rows of a unit",
    ),
    "a sum of rows beyond the bound": (
        parquet(id=[1, 1, 3], town=["a"] * 3, size=[1] * 3, profit=[987_654_321, 987_654_322, 0]),
        (("#schema\n", COLLAPSE),),
        "'profit' is beyond its public bound in 1 unit",
    ),
    "a missing value among the rows of a unit": (
        parquet(id=[1, 1, 3], town=["a"] * 3, size=[1] * 3, emp=[SECRET, None, 1]),
        (("#schema\n", COLLAPSE),),
        "'emp' is NULL in 1 row",
    ),
    "a ragged line": (csv([GOOD, f"2,7,0,b,2,2020-02-29,{TOWN}"]), (CSV,), "line 3 has more or fewer fields"),
    "an open quote": (csv([GOOD, f'2,7,0,"{TOWN},2,2020-02-29']), (CSV,), "line 3"),
    "another encoding": (
        csv([GOOD, f"2,7,0,é{TOWN},2,2020-02-29"], encoding="latin-1"),
        (CSV,),
        "line 3 holds text that is not UTF-8",
    ),
    "a decimal comma that was not stated": (
        csv(['1,"5,0",0,a,1,2020-02-29']),
        (CSV,),
        "'emp' cannot be read as a number",
    ),
    "another delimiter": (written("t.csv", f"id;emp\n1;{SECRET}\n"), (CSV,), "no column"),
    "a header in quotes with another delimiter": (written("t.csv", f'"id";"emp"\n1;{SECRET}\n'), (CSV,), "delimiter"),
    "a gzipped file that is none": (written("t.csv.gz", TOWN), (('"t.parquet"', '"t.csv.gz"'),), "does not start with"),
    "no header line": (
        written("t.csv", f"1,{SECRET},0,{TOWN},1,2020-02-29\n"),
        (CSV,),
        "must hold the names of the columns",
    ),
    "an empty CSV": (written("t.csv", ""), (CSV,), "is empty"),
    "no Parquet": (written("t.parquet", TOWN), (), "Parquet"),
    "no Arrow": (written("t.feather", TOWN), (FEATHER,), "no Arrow file"),
    "no database": (written("t.db", TOWN * 20), (DB,), "no database of DuckDB or SQLite"),
    "no such table": (sqlite(), (('"t.parquet"', '"t.db"\ntable = "firm"'),), "no such table"),
    "a number where a database holds text": (sqlite((1, 1, 1, SECRET, 1, "2020-02-29")), (DB,), "'town' holds numbers"),
    "no Stata": (written("t.dta", TOWN), (('"t.parquet"', '"t.dta"'),), "cannot be read"),
    "folders that state different columns": (hive, (('"t.parquet"', '"t"'),), "different columns"),
    "no such file": (lambda folder: None, (), "there is no such file"),
    "a kind of file that is not known": (written("t.xlsx", TOWN), (('"t.parquet"', '"t.xlsx"'),), "Known:"),
}
PLANS = {
    "a form that is not linear": (("profit - 45 * emp", "profit * emp"), "not linear"),
    "a form of what is not there": (("profit - 45 * emp", "profit - 45 * staff"), "'staff'"),
    "a form that is too large": (("45 * emp", "4500000000000 * emp"), "2^62"),
    "a form of a form": (("#schema", 'measures.more = { derive = "rest - emp" }'), "not a measure that records hold"),
    "a condition on a form": (("EXTRACT(YEAR FROM opened) >= 1900", "rest > 3"), "rest"),
    "a sign that is none": (("signed = true", 'signed = "yes"'), "signed"),
    "a transform without a sign": (
        ('sum.profit = { kind = "Gaussian", sigma = 10 }', 'sum.profit = { kind = "LogTransform", offset = 9, sigma = 1 }'),
        "Use signed=True",
    ),
    "a ratio to what may be negative": (("#query", 'ratio.r = { of = "emp", to = "profit" }'), "may be negative"),
    "a ratio to what is not asked": (("#query", 'ratio.r = { of = "emp", to = "town" }'), "'town'"),
    "a combination of nothing": (("#query", 'combine.c = "emp + staff"'), "'staff'"),
    "a rule for missing values that is none": (("measures.emp = 1", 'measures.emp = { step = 1, null = "often" }'), "null"),
    "a date compared as text": (("EXTRACT(YEAR FROM opened) >= 1900", "opened >= '2020-01-01'"), "opened"),
    "a part of a text": (("FROM opened", "FROM town"), "needs a column of type date"),
    "a part that is none": (("EXTRACT(YEAR", "EXTRACT(DECADE"), "EXTRACT of something other than a part"),
    "a rule for rows that is none": (("#schema", COLLAPSE.replace('"sum"', '"mean"')), "choose from sum, max, min, same"),
    "a rule for text that adds up": (("#schema", COLLAPSE.replace('town = "same"', 'town = "sum"')), "collapse of 'town'"),
    "no rule for a column": (("#schema", COLLAPSE.replace('town = "same"\n', "")), "no rule for 'town'"),
    "integers as keys of text": (('town = ["a", "b"]', "town = [1001, 1003]"), "town"),
    "text as keys of integers": (("size = [1, 2]", 'size = ["01", "2"]'), "size"),
    "a share that is none": (("#top", "max_outside = 2"), "max_outside"),
    "a decimal sign that is none": (("[schema]", '[csv]\ndecimal = "x"\n[schema]'), "decimal"),
    "an encoding that is none": (("[schema]", '[csv]\nencoding = "klingon"\n[schema]'), "encoding"),
}  # fmt: skip


def refused(run, folder, *words):
    """The message of a refusal: one, short, with nothing of the records, and nothing spent."""
    result = run(*words)
    assert result.exit_code == 2, (result.exit_code, result.output)
    lines = [line for line in result.stderr.splitlines() if not line.startswith("recordwise: reading records")]
    told = " ".join(" ".join(lines).split())
    assert told.startswith("recordwise: ")
    assert told.count("recordwise: ") == 1
    assert len(told) < 700
    for part in (str(SECRET), TOWN, "987", "29.02", "Traceback"):
        assert part not in result.output
    assert not (folder / "out").exists()
    assert (
        not (folder / "l").exists()
        or [event.kind for event in Ledger.existing(folder / "l").history() if event.kind == "charged"] == []
    )
    return told


def plan_in(folder, *edits):
    text = PLAN
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    (folder / "plan.toml").write_text(text)
    return folder / "plan.toml"


@pytest.mark.costly
def test_the_plan_itself_is_released(tmp_path, run):
    """Without a mistake nothing is refused; a column that no query uses may hold anything."""
    parquet()(tmp_path)
    edits = [("#schema", 'columns.note = "integer"')]
    pq.write_table(pa.table(ROWS | {"note": [TOWN] * 3}), tmp_path / "t.parquet")
    result = run("release", plan_in(tmp_path, *edits), "--out", tmp_path / "out", "--yes")
    assert result.exit_code == 0, result.output
    assert TOWN not in result.output


@pytest.mark.parametrize("case", RECORDS)
@pytest.mark.costly
def test_bad_records_are_refused_with_one_message_and_no_value(tmp_path, run, case):
    make, edits, message = RECORDS[case]
    make(tmp_path)
    plan = plan_in(tmp_path, *edits)
    assert message in refused(run, tmp_path, "release", plan, "--out", tmp_path / "out", "--yes")


@pytest.mark.parametrize("case", PLANS)
@pytest.mark.costly
def test_a_bad_plan_is_refused_at_its_line_before_a_record_is_read(tmp_path, run, case):
    edit, message = PLANS[case]
    parquet()(tmp_path)
    plan = plan_in(tmp_path, edit)
    for words in (("check", plan), ("release", plan, "--out", tmp_path / "out", "--yes")):
        told = refused(run, tmp_path, *words)
        assert message in told
        assert "line " in told


UNREAD = (
    "a column that is missing",
    "a time with a zone",
    "no such file",
    "no Parquet",
    "no Arrow",
    "no database",
    "no Stata",
)


@pytest.mark.parametrize("case", [*UNREAD, "no such table", "another delimiter", "a kind of file that is not known"])
@pytest.mark.costly
def test_check_finds_what_needs_no_record(tmp_path, run, case):
    make, edits, message = RECORDS[case]
    make(tmp_path)
    plan = plan_in(tmp_path, *edits)
    assert message in refused(run, tmp_path, "check", plan)
    result = run("check", plan, "--no-source")
    assert result.exit_code == 0, result.output


def test_a_first_plan_takes_no_record_for_a_header(tmp_path, run):
    for line in (f"1,{SECRET},0,{TOWN},1,2020-02-29", f"{TOWN},,x", f"{TOWN};2020-02-29"):
        (tmp_path / "t.csv").write_text(f"{line}\n{line}\n")
        told = refused(run, tmp_path, "init", tmp_path / "t.csv", "--header", "--out", tmp_path / "plan.toml")
        assert "must hold the names of the columns" in told
        assert not (tmp_path / "plan.toml").exists()
