"""``recordwise demo``: two years of ten made-up states, from records to published tables; and ``recordwise init``."""

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recordwise.cli.failing import AsJson, Debug, ends_well
from recordwise.progress import is_terminal

if TYPE_CHECKING:
    from recordwise.cli.screen import Tell
    from recordwise.plan.file.read import PlanFile
    from recordwise.release.change import Change
    from recordwise.release.release import Release


PLAN = Path(__file__).parent / "demo_plan.toml"
YEARS = (2025, 2026)
DEFAULT_ROWS = 1_000_000
DEFAULT_FOLDER = "demo-release"
STEPS = 9
Rows = Annotated[
    int | None,
    typer.Option(help="Number of establishments to generate for each year (default 1,000,000).", show_default=False),
]
Out = Annotated[Path | None, typer.Option(help=f"A new folder (default {DEFAULT_FOLDER}).", show_default=False)]


@ends_well
def demo(establishments: Rows = None, out: Out = None, as_json: AsJson = False, debug: Debug = False) -> None:
    """Publish two years of ten made-up states, and explain the result."""
    import json

    from recordwise.cli.screen import progress

    started, rows = time.monotonic(), read_number(establishments)
    folder = new_folder(out)
    with progress(STEPS, quiet=as_json) as tell:
        tell(f"generating {rows:,} establishments for each of two years")
        write_inputs(folder, rows)
        plans, releases = zip(*(published(folder, year, tell) for year in YEARS))
        tell("comparing the years")
        change = finest_change(releases)
        change.save(folder / "change", formats=["csv"])
        reliable = reliability(folder, plans[1], releases[1], rows)
    found = {
        "folder": str(folder),
        "seconds": round(time.monotonic() - started, 1),
        "reliable": reliable,
        "losses": losses(plans, releases),
        "spread": spread_of_losses(folder, releases),
        "changed": changed_cells(change),
        "workbook": any((folder / str(YEARS[1])).glob("*.xlsx")),
    }
    if as_json:
        typer.echo(json.dumps(found))
    else:
        show(folder, rows, found)


def read_number(establishments: int | None) -> int:
    """Return how many establishments a year has, a million unless given."""
    from recordwise.errors import ParameterError

    if establishments is not None and establishments < 1:
        raise ParameterError(parameter="--establishments", problem="must be at least 1")
    return establishments or DEFAULT_ROWS


def new_folder(out: Path | None) -> Path:
    """Return the requested new folder, or the first unused default name."""
    from recordwise.errors import OutputError

    if out is not None and out.exists():
        raise OutputError(folder=str(out), problem="already exists", advice="Choose a new folder.")
    number, folder = 1, out or Path(DEFAULT_FOLDER)
    while folder.exists():
        number += 1
        folder = Path(f"{DEFAULT_FOLDER}-{number}")
    folder.mkdir(parents=True)
    return folder


# What an agency would provide: records, public lists, and a plan for each year.


def write_inputs(folder: Path, rows: int) -> None:
    """Write records, code lists with names, public sizes and both plans."""
    import pyarrow.parquet as pq
    from pyarrow import csv

    from recordwise.synthetic.states import public_sizes, state_establishments, states

    for number, year in enumerate(YEARS):
        pq.write_table(state_establishments(rows, year=number), folder / f"establishments-{year}.parquet")
        (folder / f"plan-{year}.toml").write_text(plan_text(year), encoding="utf-8")
    csv.write_csv(states().places, folder / "places.csv")
    csv.write_csv(states().industries, folder / "industries.csv")
    csv.write_csv(public_sizes(rows), folder / "sizes.csv")


SIZES = {"count": ("establishments", "count"), "emp": ("employees", "sum_emp"), "payann": ("payroll", "sum_payann")}
"""For each statistic the column of the public sizes of the first year, and that of last year's release."""


def plan_text(year: int) -> str:
    """Return the plan of a year: sized by a public list, later by last year's release."""
    from importlib.util import find_spec

    before = None if year == YEARS[0] else year - 1
    lines = [
        f'size.{name} = {{ release = "{before}", column = "{released}" }}'
        if before
        else f'size.{name} = {{ file = "sizes.csv", column = "{column}" }}'
        for name, (column, released) in SIZES.items()
    ]
    if not before:
        lines.append('sized_on = "public: what another office expects in each cell"')
    workbook = ', "xlsx"' if before and find_spec("xlsxwriter") else ""
    return (
        PLAN.read_text(encoding="utf-8")
        .replace("EARLIER", f'earlier = ["{before}"]\n' if before else "")
        .replace("SIZES", "\n".join(lines))
        .replace("FORMATS", f'["parquet", "csv"{workbook}]')
        .replace("YEAR", str(year))
    )


def published(folder: Path, year: int, tell: "Tell") -> "tuple[PlanFile, Release]":
    """Return the plan and the saved release of a year."""
    from dataclasses import replace

    from recordwise.cli.release import with_basic
    from recordwise.plan.file.read import load_plan
    from recordwise.planning.check import with_known_sizes
    from recordwise.session import Session

    tell(f"{year}: checking the plan")
    file = with_known_sizes(load_plan(folder / f"plan-{year}.toml"))
    with Session.from_plan(file) as session:
        tell(f"{year}: reading records, charging the ledger, drawing noise")
        done = session.run(*file.plan.queries, confidence=file.confidence)
    tell(f"{year}: making tables that add up, and writing them")
    done = with_basic(done, file)
    done.save(folder / str(year), formats=file.formats)
    return replace(file, plan=file.plan), done


# What it gives: cells that are reliable, next to those of one flat table with one noise.


LEVELS = (("state", "total"), ("county", "total"), ("state", "sector"), ("county", "sector"), ("county", "industry"))
SOME = 20_000
"""So many establishments tell how losses are spread."""
CLASSES = ("below 100", "100 to 999", "1,000 or more")
TRUTH = """
SELECT *, '00' AS country, '00' AS total FROM (
    SELECT county, industry, sum(emp)::BIGINT AS emp FROM read_parquet($records) GROUP BY ALL
) JOIN read_csv($places, all_varchar=true) USING (county) JOIN read_csv($industries, all_varchar=true) USING (industry)
"""
BY_LEVEL = """
SELECT (emp >= 100)::INT + (emp >= 1000)::INT AS size, count(*) AS cells, sum((status = 'reliable')::INT)::BIGINT AS reliable,
       sum(($sd * sqrt(below) <= .165 * emp)::INT)::BIGINT AS flat
FROM (SELECT {place}, {activity}, sum(emp) AS emp FROM truth GROUP BY ALL) JOIN released USING ({place}, {activity})
WHERE emp > 0 GROUP BY size ORDER BY size
"""


def reliability(folder: Path, file: "PlanFile", release: "Release", rows: int) -> list[dict[str, Any]]:
    """Return how many cells of each size are reliable at each level, and how many would be with one flat noise.

    Sizes are the true ones, known only because the establishments are made up.
    """
    import duckdb
    import pyarrow as pa

    sd = flat_noise(folder, file)
    tables = {each.name: each for each in release.basic_tables}
    connection = duckdb.connect()
    inputs = {
        "records": str(folder / f"establishments-{YEARS[1]}.parquet"),
        "places": str(folder / "places.csv"),
        "industries": str(folder / "industries.csv"),
    }
    connection.register("truth", connection.sql(TRUTH, params=inputs).to_arrow_table())
    found = []
    for place, activity in LEVELS:
        own = tables[f"establishments_{place}_by_{activity}_basic"].data
        below = connection.sql(
            f"SELECT {place}, {activity}, count(*) AS below FROM (SELECT DISTINCT county, industry, {place}, {activity} FROM "
            "(SELECT *, '00' AS country FROM read_csv($places, all_varchar=true)), "
            "(SELECT *, '00' AS total FROM read_csv($industries, all_varchar=true))) GROUP BY ALL",
            params={"places": inputs["places"], "industries": inputs["industries"]},
        ).to_arrow_table()
        status = pa.table({place: own[place], activity: own[activity], "status": own["sum_emp_status"]})
        connection.register("released", status.join(below, [place, activity]))
        for row in connection.sql(BY_LEVEL.format(place=place, activity=activity), params={"sd": sd}).fetchall():
            names = ("size", "cells", "reliable", "flat")
            found.append({"level": f"{place} by {activity}"} | dict(zip(names, row)))
    connection.close()
    return found


def flat_noise(folder: Path, file: "PlanFile") -> float:
    """Return the sd of one noise for all cells of the finest table that costs the middle establishment as much.

    For employees: x^2 / (2 sd^2) is then, in the median, what the plan's sums of employees cost.
    """
    import numpy as np

    columns = some_records(folder)
    emp = columns["emp"]
    parts = [part.policy for part in file.plan.parts() if part.alias == "sum_emp"]
    cost = np.sum([np.broadcast_to(each.loss(columns), len(emp)) for each in parts], axis=0)
    return float(np.sqrt(np.median(emp**2) / (2 * np.median(cost))))


def some_records(folder: Path) -> dict[str, Any]:
    """Return some establishments of the last year, evenly spread over the file."""
    import numpy as np
    import pyarrow.parquet as pq

    records = pq.read_table(folder / f"establishments-{YEARS[1]}.parquet")
    some = records.take(np.linspace(0, records.num_rows - 1, min(records.num_rows, SOME)).astype(np.int64))
    amounts = {name: some[name].to_numpy().astype(np.float64) for name in ("emp", "payann")}
    return amounts | {name: some[name].cast("string") for name in ("county", "industry")}


# What it costs: losses of four kinds of establishment over both years.


def losses(plans: "tuple[PlanFile, ...]", releases: "tuple[Release, ...]") -> list[dict[str, Any]]:
    """Return what each example loses in each year and in both, and how closely its payroll is known from the last."""
    from recordwise.plan.cost import value_policy
    from recordwise.planning.explain import window_text
    from recordwise.policy.meaning import power_zcdp, presence_words

    values = value_policy(plans[1].plan)
    found = []
    for name, record in plans[1].examples.items():
        own = [float(each.policy.loss(record)) for each in releases]
        power = power_zcdp(sum(own))
        window = None if values is None else values.window(record, "payann")
        found.append(
            {
                "name": name,
                "emp": float(record["emp"]),
                "payann": float(record["payann"]),
                "losses": own,
                "both": sum(own),
                "power": power,
                "presence": presence_words(power),
                "payroll": "-" if window is None else window_text(window),
            }
        )
    return found


def spread_of_losses(folder: Path, releases: "tuple[Release, ...]") -> dict[str, float]:
    """Return the loss over both years that half of all establishments stay below, and one in a hundred exceeds."""
    import numpy as np

    columns = some_records(folder)
    both = np.sum([each.policy.loss(columns) for each in releases], axis=0)
    middle, high = np.quantile(both, [0.5, 0.99])
    return {"half below": float(middle), "one in a hundred above": float(high)}


FINEST = "establishments_county_by_industry"


def finest_change(releases: "tuple[Release, ...]") -> "Change":
    """Return the change in the finest table, where most budget goes."""
    from dataclasses import replace

    found = releases[1].change(releases[0])
    return replace(found, tables={FINEST: found[FINEST]})


def changed_cells(change: "Change") -> dict[str, list[int]]:
    """Return for each table how many cells clearly changed in employees, and how many there are."""
    import numpy as np

    found = {}
    for name, data in change.tables.items():
        low, high = (data[f"sum_emp_change_{end}"].to_numpy() for end in ("low", "high"))
        found[name] = [int(np.sum((low > 0) | (high < 0))), data.num_rows]
    return found


def show(folder: Path, rows: int, found: dict[str, Any]) -> None:
    """Print one screen."""
    from recordwise.cli import screen
    from recordwise.exact.text import coarse_share_text, figure, share_text, whole_text

    cells = {(each["level"], each["size"]): each for each in found["reliable"]}
    screen.heading(
        "Reliable cells by level and by true number of employees (in brackets: one flat table with one noise)"
    )
    screen.table(
        ["level", *CLASSES],
        [
            [
                level,
                *(
                    f"{coarse_share_text(own['reliable'] / own['cells'])} ({coarse_share_text(own['flat'] / own['cells'])})"
                    f" of {own['cells']:,}"
                    if (own := cells.get((level, size)))
                    else "-"
                    for size in range(len(CLASSES))
                ),
            ]
            for level in dict.fromkeys(each["level"] for each in found["reliable"])
        ],
    )
    screen.paragraph(
        "The noise is the one that `recordwise plan recommend` found for a goal: employees of four in five cells of county by "
        "industry with 100 or more within a third of the truth, and losses in proportion to size. The flat noise costs the middle "
        "establishment the same. True sizes are known only because all of it is made up."
    )
    screen.heading("What establishments lose over both years (zCDP rho), and what that means")
    screen.table(
        [
            "establishment",
            "employees",
            *map(str, YEARS),
            "both",
            "who knows all else finds out",
            "its payroll can be told",
        ],
        [
            [
                each["name"],
                whole_text(each["emp"]),
                *map(figure, each["losses"]),
                figure(each["both"]),
                f"{each['presence']} ({share_text(each['power'])})",
                each["payroll"],
            ]
            for each in found["losses"]
        ],
    )
    spread = found["spread"]
    screen.paragraph(
        f"Payroll in thousand dollars. Half of all establishments lose less than {figure(spread['half below'])}, one in a hundred "
        f"more than {figure(spread['one in a hundred above'])}: those that are most of their cell."
    )
    show_next(folder, rows, found)


def show_next(folder: Path, rows: int, found: dict[str, Any]) -> None:
    """Print what was made, and what to try next."""
    from importlib.util import find_spec

    from recordwise.cli import screen

    changed, every = found["changed"][FINEST]
    screen.heading(f"Two years of {rows:,} establishments in {found['seconds']} seconds")
    workbook = " and a workbook" if found["workbook"] else " (with recordwise[formats] also a workbook)"
    screen.paragraph(
        f"{folder}/{YEARS[1]}: tables that add up, with a status for each number, as CSV, Parquet{workbook}; open report.html. "
        f"{folder}/change: employment clearly changed in {changed:,} of {every:,} cells of county by industry. Try next:"
    )
    plan, program = f"{folder}/plan-{YEARS[1]}.toml", own_command()
    records = f"--records {folder}/establishments-{YEARS[1]}.parquet --data synthetic"
    typer.echo(f"  $ {program} explain {plan} --to {folder}/explained.html \\\n      {records}")
    typer.echo(f"  $ {program} ask {folder}/{YEARS[1]} emp --where sector=62 --by state")
    loss = f"loss {folder}/{YEARS[1]}/policy.json emp=4 payann=140 county=A002 industry=445"
    typer.echo(f"  $ {program} {f'studio {plan}' if find_spec('starlette') and find_spec('uvicorn') else loss}")


def own_command() -> str:
    """Return what to type to start this program: its name where the PATH leads to it, else its path."""
    import shutil

    given = Path(sys.argv[0])
    beside = shutil.which("recordwise", path=str(Path(sys.executable).parent))
    own = str(given.absolute()) if given.stem == "recordwise" and given.is_file() else beside
    found = shutil.which("recordwise")
    if own is None:
        return f"{_from_here(sys.executable)} -m recordwise"
    return "recordwise" if found is not None and os.path.samefile(found, own) else _from_here(own)


def _from_here(path: str) -> str:
    """Return a path as it is typed in the current folder."""
    import shlex

    here = Path(path)
    return shlex.quote(str(here.relative_to(Path.cwd()) if here.is_relative_to(Path.cwd()) else here))


# ``recordwise init FILE``: a first plan with blanks, from the names and declared types of a table.


WARNING = (
    "types and steps were proposed from the records: the plan says that it was tuned on confidential data, and its ledger "
    "notes the look"
)


@ends_well
def init(
    file: Annotated[
        str,
        typer.Argument(help="A file of records, a folder of them, or a PostgreSQL address.", show_default=False),
    ],
    table: Annotated[
        str | None, typer.Option("--table", help="The table, if FILE is a database or an address.")
    ] = None,
    encoding: Annotated[
        str | None, typer.Option("--encoding", help="Of a CSV file that is not UTF-8: cp1252, say.")
    ] = None,
    header: Annotated[
        bool,
        typer.Option("--header", help="The first line of a CSV file holds the names of columns, and is no record."),
    ] = False,
    unit: Annotated[
        list[str] | None,
        typer.Option("--unit", metavar="NAME", help="The id of a record; repeat it for an id of several columns."),
    ] = None,
    sums: Annotated[
        list[str] | None,
        typer.Option(
            "--sum", metavar="NAME[=SIZE]", help="A column to sum, and the value of a usual large record; repeatable."
        ),
    ] = None,
    steps: Annotated[
        list[str] | None,
        typer.Option("--step", metavar="NAME=STEP", help="What its values are whole multiples of, 0.01 say; else 1."),
    ] = None,
    by: Annotated[
        list[str] | None, typer.Option("--by", metavar="NAME", help="A column to group by; repeatable.")
    ] = None,
    keys: Annotated[
        list[str] | None,
        typer.Option(
            "--keys",
            metavar="CODES",
            help="The published codes, 001,003 or county=001,003, or a public file of them; repeatable.",
        ),
    ] = None,
    hierarchy: Annotated[
        list[Path] | None,
        typer.Option("--hierarchy", help="A public file of codes with their coarser levels before them; repeatable."),
    ] = None,
    sizes: Annotated[
        Path | None, typer.Option("--sizes", help="A public file with last year's size of each cell: noise follows it.")
    ] = None,
    tuned_on: Annotated[
        str, typer.Option("--tuned-on", help="What sizes and codes were chosen with: public, synthetic or past.")
    ] = "",
    out: Annotated[Path, typer.Option("--out", help="The plan to write.")] = Path("plan.toml"),
    look: Annotated[bool, typer.Option("--look", help="Read the records to propose types and steps.")] = False,
    debug: Debug = False,
) -> None:
    """Write a first plan for a table of records.

    Roles and types from names and declared types; what is summed, by what and for which codes as you say, in options or
    when asked on a terminal; blanks for the rest.
    """
    from recordwise.cli import screen
    from recordwise.engines.sources.columns import csv_options, declared_columns, is_csv, look_at_columns
    from recordwise.errors import OutputError
    from recordwise.plan.file.first import first_plan, has_blanks, relative_path

    if os.path.lexists(out):
        raise OutputError(folder=str(out), problem="exists already", advice="Name a new file with --out.")
    given = named_source(file, table, encoding)
    headed = header or (is_csv(given) and confirm_header(file))
    address = "://" in file
    source = {"source": file if address else relative_path(Path(file), out)}
    source |= {} if table is None else {"table": table}
    dataset = table.rpartition(".")[2].strip('"') if address and table else Path(file).name.partition(".")[0]
    found = declared_columns(given, headed=headed)
    said = {"unit": unit, "sum": sums, "by": by, "keys": keys, "tuned_on": [tuned_on] if tuned_on else None}

    def checked(given: dict[str, list[str] | None]) -> Any:
        wishes = wishes_of(given, steps or [], hierarchy or [], sizes, out, found)
        wishes.check(found, source["source"])
        return wishes

    if is_terminal(sys.stdin) and not look:
        said = ask_missing(said, found, asked=not (hierarchy or sizes), check=checked)
    wishes = checked(said)
    if look:
        note_look(out.resolve().parent / f"{dataset}.ledger", dataset)
        found = look_at_columns(given, headed=headed)
    text = first_plan(source, found, dataset=dataset, looked=look, csv=csv_options(given), wishes=wishes)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(text, encoding="utf-8")
    if look:
        screen.note(WARNING)
    left = "Fill its blanks, then run" if has_blanks(text) else "It has no blank left. Now run"
    screen.paragraph(f"Wrote {out}. {left}: recordwise check {out}")


QUESTIONS = {
    "unit": "Which column identifies a record? Several columns: with commas.",
    "sum": "What is summed? NAME=SIZE, where SIZE is the value of a usual large record; several with commas, Enter for none.",
    "by": "By which columns are the tables? Several with commas.",
    "keys": "Which codes are published? 001,003 or a public file; for several columns county=001,003 naics=44,45.",
    "tuned_on": "What did you choose sizes and codes with? public, synthetic or past, never the records.",
}


def ask_missing(
    said: dict[str, list[str] | None],
    found: Any,
    *,
    asked: bool,
    check: Callable[[dict[str, list[str] | None]], object] = lambda _: None,
) -> dict[str, list[str] | None]:
    """Ask for what no option said; an empty answer leaves a blank, and one that ``check`` refuses is asked for again."""
    from recordwise.plan.file.first import Wishes, roles_of

    guess = roles_of(found, Wishes(by=tuple(said["by"] or ()))).unit
    answers = dict(said)
    typer.echo(f"The columns: {', '.join(each.name for each in found)}.")
    # What the options say wrongly, no answer mends.
    fine = _problem(check, answers) is None
    for name, question in QUESTIONS.items():
        skipped = name in ("by", "keys") and not asked
        if answers[name] or skipped or (name == "keys" and not answers["by"]):
            continue
        usual = ",".join(guess) if name == "unit" else ""
        while True:
            answer = typer.prompt(question, default=usual, show_default=bool(usual), prompt_suffix=" ").strip()
            apart = answer.split() if name == "keys" else answer.split(",")
            tried = answers | {name: [each.strip() for each in apart if each.strip()] or None}
            problem = _problem(check, tried)
            if problem is None or not fine:
                break
            typer.echo(problem)
        answers, fine = tried, problem is None
    return answers


def _problem(check: Callable[[dict[str, list[str] | None]], object], said: dict[str, list[str] | None]) -> str | None:
    """Return what is wrong with answers, or None."""
    from recordwise.errors import RecordwiseError

    try:
        check(said)
    except RecordwiseError as error:
        return str(error)
    return None


def wishes_of(
    said: dict[str, list[str] | None], steps: list[str], lists: list[Path], sizes: Path | None, out: Path, found: Any
) -> Any:
    """Return what the owner said, in the words of a plan; public lists are read, no record is."""
    from recordwise.plan.file.first import Wishes, code_list, relative_path, with_sizes

    names = [each.name for each in found]
    files, codes = _key_lists(said["keys"] or [], said["by"] or [])
    wishes = Wishes(
        unit=tuple(said["unit"] or ()),
        sums=_numbers(said["sum"] or [], names, "--sum"),
        steps=_numbers(steps, names, "--step"),
        by=tuple(said["by"] or ()),
        keys=codes,
        key_file=relative_path(files[0], out) if files else "",
        tuned_on=(said["tuned_on"] or [""])[0],
        code_lists=tuple(code_list(path, out, names) for path in lists),
    )
    return wishes if sizes is None else with_sizes(wishes, sizes, out)


def _numbers(given: list[str], names: list[str], option: str) -> dict[str, str]:
    """Return the number of each column, which is named once."""
    from recordwise.errors import ParameterError

    found: dict[str, str] = {}
    for name, _, number in (_cut(each, names) for each in given):
        if name in found:
            raise ParameterError(parameter=option, problem=f"names '{name}' twice")
        found[name] = number
    return found


def _cut(text: str, names: list[str]) -> tuple[str, str, str]:
    """Cut NAME=NUMBER at its sign, unless all of it is a column."""
    return (text, "", "") if text in names else text.rpartition("=") if "=" in text else (text, "", "")


def _key_lists(given: list[str], by: list[str]) -> tuple[list[Path], dict[str, tuple[str, ...]]]:
    """Return the files of keys, and the codes of each column."""
    from recordwise.errors import ParameterError

    files = [Path(each) for each in given if each.lower().endswith((".csv", ".parquet", ".pq"))]
    codes: dict[str, tuple[str, ...]] = {}
    for each in (each for each in given if Path(each) not in files):
        named, sign, listed = each.partition("=")
        name = named if sign else by[0] if len(by) == 1 else ""
        if not name:
            raise ParameterError(
                parameter="--keys",
                problem="does not say of which column the codes are",
                advice=f"Write --keys {by[0] if by else 'NAME'}={each}, once for each column, or name a file of cells.",
            )
        if name in codes:
            raise ParameterError(
                parameter="--keys", problem=f"lists codes of '{name}' twice", advice="Write all of them in one list."
            )
        codes[name] = tuple(code.strip() for code in (listed if sign else each).split(",") if code.strip())
    if len(files) > 1 or (files and codes):
        raise ParameterError(parameter="--keys", problem="must be one file, or codes of each column")
    return files, codes


def confirm_header(file: str) -> bool:
    """Ask whether the first line, not shown, holds names."""
    question = f"The plan will contain the first line of {file}. Does it hold the names of the columns, and no record?"
    return is_terminal(sys.stdin) and typer.confirm(question)


def note_look(ledger: Path, dataset: str) -> None:
    """Enter the look in the future plan's ledger before reading records."""
    from recordwise.ledger.entries import enter_first_look
    from recordwise.ledger.ledger import FIXED_IN_ADVANCE, FORMAT

    ledger.parent.mkdir(parents=True, exist_ok=True)
    terms = {"format": FORMAT, "dataset": dataset, "schema": None, "budget": None, "guarantee": FIXED_IN_ADVANCE}
    enter_first_look(ledger, terms, "init --look")


def named_source(file: str, table: str | None, encoding: str | None) -> Any:
    """Return the source that the arguments name; refuse a password."""
    import re

    from recordwise.errors import SourceError
    from recordwise.plan.sources import POSTGRES_SCHEMES, Csv, Database, Postgres, names_spark_table

    if file.startswith(POSTGRES_SCHEMES) and table is not None:
        if re.search(r"://[^/@]*:[^/@]*@|[?&]password=", file):
            raise SourceError(
                source="a PostgreSQL address",
                problem="it contains a password, which the plan would contain too",
                advice="Leave it out, and use a password file or the environment variable PGPASSWORD.",
            )
        return Postgres(file, table=table)
    if table is not None:
        return Database(file, table=table)
    if names_spark_table(file) and not file.startswith(POSTGRES_SCHEMES) and not Path(file).exists():
        raise SourceError(
            source=f"'{file}'" if "://" not in file else "an address",
            problem="there is no such file",
            advice="Of a table that only Spark can find, write one without rows to Parquet (table.limit(0)) and name that.",
        )
    return file if encoding is None else Csv(file, encoding=encoding)
