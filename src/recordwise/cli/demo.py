"""``recordwise demo``: a full release of synthetic establishments."""

import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recordwise.cli.failing import AsJson, Debug, ends_well

if TYPE_CHECKING:
    import pyarrow as pa

    from recordwise.cli.screen import Tell


PLAN = Path(__file__).parent / "demo_plan.toml"
DEFAULT_ROWS = 1_000_000
DEFAULT_FOLDER = "demo-release"
STEPS = 8
Rows = Annotated[
    int | None,
    typer.Option(help="Number of establishments to generate (default 1,000,000; try 8,000,000).", show_default=False),
]
Data = Annotated[
    Path | None,
    typer.Option(
        help="A folder of county tables to expand instead of generating; default: RECORDWISE_DATA.", show_default=False
    ),
]
Out = Annotated[Path | None, typer.Option(help=f"A new folder (default {DEFAULT_FOLDER}).", show_default=False)]


@ends_well
def demo(
    establishments: Rows = None, data: Data = None, out: Out = None, as_json: AsJson = False, debug: Debug = False
) -> None:
    """Generate establishments, publish county by industry tables, and show the results."""
    import json

    from recordwise.cli.screen import progress
    from recordwise.plan.file.read import load_plan
    from recordwise.session import Session

    started = time.monotonic()
    tables = county_tables(establishments, data)
    folder = new_folder(out)
    with progress(STEPS, quiet=as_json) as tell:
        write_inputs(folder, establishments or DEFAULT_ROWS, tables, tell)
        tell("checking the plan")
        file = load_plan(folder / "plan.toml")
        with Session.from_plan(file) as session:
            done = session.run(*file.plan.queries, confidence=file.confidence, progress=tell)
        tell("writing files")
        done.save(folder / "release", formats=file.formats)
        accuracy = accuracy_by_size(folder / "establishments.parquet", done.table)
    found = {
        "folder": str(folder),
        "seconds": round(time.monotonic() - started, 1),
        "accuracy": accuracy,
        "losses": losses(file.examples, file.plan),
    }
    if as_json:
        typer.echo(json.dumps(found))
    else:
        show(folder, found)


def county_tables(establishments: int | None, data: Path | None) -> Any | None:
    """Return the county tables to expand, if a folder is named."""
    from recordwise.errors import ParameterError
    from recordwise.synthetic.county_tables import CountyTable

    if establishments is not None and data is not None:
        raise ParameterError(
            parameter="--establishments",
            problem="applies to generated establishments only",
            advice="With --data, every cell of the county tables is expanded.",
        )
    if establishments is not None and establishments < 1:
        raise ParameterError(parameter="--establishments", problem="must be at least 1")
    named = data or (os.environ.get("RECORDWISE_DATA") if establishments is None else None)
    return CountyTable.read(named) if named else None


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


def write_inputs(folder: Path, rows: int, tables: Any | None, tell: "Tell") -> None:
    """Write records, public keys and plan: what an agency would provide."""
    import shutil

    import pyarrow as pa
    import pyarrow.parquet as pq

    from recordwise.synthetic.establishments import public_keys, write_establishments

    shutil.copyfile(PLAN, folder / "plan.toml")
    if tables is None:
        tell(f"generating {rows:,} establishments")
        write_establishments(folder / "establishments.parquet", rows)
        pq.write_table(public_keys(), folder / "keys.parquet")
        return
    tell(f"generating {int(tables.establishments.sum()):,} establishments from the county tables")
    pq.write_table(tables.keys(), folder / "keys.parquet")
    made = tables.batches()
    first: pa.RecordBatch = next(made)
    with pq.ParquetWriter(folder / "establishments.parquet", first.schema) as writer:
        writer.write_batch(first)
        for batch in made:
            writer.write_batch(batch)


def losses(examples: dict[str, dict[str, Any]], plan: Any) -> list[dict[str, Any]]:
    """Return each variable's cost, and the total, to each example."""
    from recordwise.plan.cost import plan_policy

    policies = {part.alias: part.policy for part in plan.parts()}
    whole = plan_policy(plan)
    return [
        {
            "name": name,
            "record": {column: float(value) for column, value in record.items()},
            **{alias: float(policy.loss(record)) for alias, policy in policies.items()},
            "all": float(whole.loss(record)),
        }
        for name, record in examples.items()
    ]


def show(folder: Path, found: dict[str, Any]) -> None:
    from recordwise.cli import screen
    from recordwise.cli.loss import report_of_file, show_loss
    from recordwise.exact.text import figure, share_text, whole_text

    screen.heading("Median relative error of a cell")
    screen.paragraph("Known only because these establishments are synthetic; a real release cannot show this.")
    rows = found["accuracy"]
    screen.table(
        ["employees in the cell", "cells", *rows[0]["errors"]],
        [[r["size"], f"{r['cells']:,}", *(f"{share_text(error, 1)}" for error in r["errors"].values())] for r in rows],
    )
    screen.heading("Privacy loss of an establishment: emp and emp_slow have the same noise variance")
    names = [name for name in found["losses"][0] if name not in ("name", "record")]
    screen.table(
        ["establishment", "employees", *names],
        [
            [r["name"], f"{whole_text(r['record']['emp'])}", *(figure(r[name]) for name in names)]
            for r in found["losses"]
        ],
    )
    shop = found["losses"][0]["record"]
    words = [f"{name}={round(value)}" for name, value in shop.items()]
    screen.heading("The corner shop looks up its own loss")
    typer.echo(f"  $ recordwise loss {folder}/release/policy.json {' '.join(words)}")
    show_loss(report_of_file(folder / "release" / "policy.json", "tight", words, 1e-5))
    screen.heading(f"Done in {found['seconds']} seconds")
    screen.paragraph(
        f"{folder}/release contains the tables (Parquet and CSV), policy.json, release.json, and report.html to open in a browser; "
        f"{folder}/demo.ledger is the ledger."
    )
    typer.echo(f"  $ recordwise check {folder}/plan.toml")
    typer.echo(f"  $ recordwise ledger verify {folder}/demo.ledger --against {folder}/release")


# Compares the demo's tables with the truth, which is possible only because its establishments are synthetic.


TRUTH = """
SELECT county, left(naics, 3) AS naics3, count(*) AS true_count, sum(emp)::BIGINT AS true_emp, sum(payann)::BIGINT AS true_payann
FROM read_parquet($records) GROUP BY ALL
"""
BY_SIZE = """
SELECT CASE WHEN true_emp < 100 THEN 0 WHEN true_emp < 1000 THEN 1 WHEN true_emp < 10000 THEN 2 ELSE 3 END AS size,
       count(*) AS cells,
       median(abs("count" - true_count) / true_count) AS "count",
       median(abs(emp - true_emp) / true_emp) AS emp,
       median(abs(emp_slow - true_emp) / true_emp) AS emp_slow,
       median(abs(payann - true_payann) / true_payann) AS payann,
       median(abs(payann_slow - true_payann) / true_payann) AS payann_slow
FROM published JOIN truth USING (county, naics3) WHERE true_emp > 0 AND true_payann > 0 GROUP BY size ORDER BY size
"""
SIZES = ("1 to 99", "100 to 999", "1,000 to 9,999", "10,000 and more")
VARIABLES = ("count", "emp", "emp_slow", "payann", "payann_slow")


def accuracy_by_size(records: Path, published: "pa.Table") -> list[dict[str, Any]]:
    """The median relative error of each variable, for small and large cells."""
    import duckdb

    connection = duckdb.connect()
    connection.register("published", published)
    truth = connection.sql(TRUTH, params={"records": str(records)}).to_arrow_table()
    connection.register("truth", truth)
    rows: list[dict[str, Any]] = connection.sql(BY_SIZE).to_arrow_table().to_pylist()
    connection.close()
    return [
        {"size": SIZES[row["size"]], "cells": row["cells"], "errors": {name: row[name] for name in VARIABLES}}
        for row in rows
    ]


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
    from recordwise.plan.file.first import first_plan, has_blanks

    if os.path.lexists(out):
        raise OutputError(folder=str(out), problem="exists already", advice="Name a new file with --out.")
    given = named_source(file, table, encoding)
    headed = header or (is_csv(given) and confirm_header(file))
    address = "://" in file
    source = {"source": file if address else beside(Path(file), out)}
    source |= {} if table is None else {"table": table}
    dataset = table.rpartition(".")[2].strip('"') if address and table else Path(file).name.partition(".")[0]
    found = declared_columns(given, headed=headed)
    said = {"unit": unit, "sum": sums, "by": by, "keys": keys, "tuned_on": [tuned_on] if tuned_on else None}
    if sys.stdin.isatty() and not look:
        said = ask_missing(said, found, asked=not (hierarchy or sizes))
    wishes = wishes_of(said, steps or [], hierarchy or [], sizes, out, found)
    wishes.check(found)
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


def beside(path: Path, plan: Path) -> str:
    """Return a path as a plan writes it: from its own folder."""
    return os.path.relpath(path.resolve(), plan.resolve().parent)


QUESTIONS = {
    "unit": "Which column identifies a record? Several columns: with commas.",
    "sum": "What is summed? NAME=SIZE, where SIZE is the value of a usual large record; several with commas, Enter for none.",
    "by": "By which columns are the tables? Several with commas.",
    "keys": "Which codes are published? 001,003 or a public file; for several columns county=001,003 naics=44,45.",
    "tuned_on": "What did you choose sizes and codes with? public, synthetic or past, never the records.",
}


def ask_missing(said: dict[str, list[str] | None], found: Any, *, asked: bool) -> dict[str, list[str] | None]:
    """Ask on a terminal for what no option said; an empty answer leaves a blank."""
    from recordwise.plan.file.first import Wishes, roles_of

    guess = roles_of(found, Wishes(by=tuple(said["by"] or ()))).unit
    answers = dict(said)
    typer.echo(f"The columns: {', '.join(each.name for each in found)}.")
    for name, question in QUESTIONS.items():
        skipped = name in ("by", "keys") and not asked
        if answers[name] or skipped or (name == "keys" and not answers["by"]):
            continue
        usual = ",".join(guess) if name == "unit" else ""
        answer = typer.prompt(question, default=usual, show_default=bool(usual)).strip()
        apart = answer.split() if name == "keys" else answer.split(",")
        answers[name] = [each.strip() for each in apart if each.strip()] or None
    return answers


def wishes_of(
    said: dict[str, list[str] | None], steps: list[str], lists: list[Path], sizes: Path | None, out: Path, found: Any
) -> Any:
    """Return what the owner said, in the words of a plan; public lists are read, no record is."""
    from recordwise.plan.file.first import Wishes

    names = [each.name for each in found]
    sums = {name: size for name, _, size in (_cut(each, names) for each in said["sum"] or [])}
    files, codes = _key_lists(said["keys"] or [], said["by"] or [])
    wishes = Wishes(
        unit=tuple(said["unit"] or ()),
        sums=sums,
        steps={name: step for name, _, step in (_cut(each, names) for each in steps)},
        by=tuple(said["by"] or ()),
        keys=codes,
        key_file=beside(files[0], out) if files else "",
        tuned_on=(said["tuned_on"] or [""])[0],
        code_lists=tuple(_code_list(path, out, names) for path in lists),
    )
    return wishes if sizes is None else _with_sizes(wishes, sizes, out)


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
                advice="Write --keys county=001,003, once for each column, or name a file of cells.",
            )
        codes[name] = tuple(code.strip() for code in (listed if sign else each).split(",") if code.strip())
    if len(files) > 1 or (files and codes):
        raise ParameterError(parameter="--keys", problem="must be one file, or codes of each column")
    return files, codes


def _code_list(path: Path, out: Path, names: list[str]) -> Any:
    """Return a list of codes: the columns up to one of the records are its levels."""
    from recordwise.errors import ParameterError
    from recordwise.plan.file.first import CodeList
    from recordwise.plan.sources import read_code_file

    columns = read_code_file(path).column_names
    held = [number for number, column in enumerate(columns) if column in names]
    if not held or len(columns[: held[0] + 1]) < 2:
        raise ParameterError(
            parameter=f"--hierarchy {path.name}",
            problem="has no column of the records after a coarser level",
            advice=f"Its columns: {', '.join(columns)}. Columns of the records: {', '.join(names)}.",
        )
    return CodeList(name=path.name.partition(".")[0], path=beside(path, out), levels=tuple(columns[: held[0] + 1]))


def _with_sizes(wishes: Any, path: Path, out: Path) -> Any:
    """Add the sizes of cells, for each sum the column named like it, or the only one."""
    from dataclasses import replace

    from recordwise.errors import ParameterError
    from recordwise.plan.file.first import SizeList
    from recordwise.plan.sources import read_code_file

    columns = read_code_file(path).column_names
    cells = {*wishes.by, *wishes.levels()}
    open_ = [name for name in columns if name not in cells]
    chosen = {}
    for name in wishes.sums:
        like = [each for each in open_ if name.casefold() in each.casefold()]
        fitting = [each for each in open_ if each == name] or like or open_
        if len(fitting) != 1:
            raise ParameterError(
                parameter=f"--sizes {path.name}",
                problem=f"does not say which column has the sizes of {name}",
                advice=f"Name it {name}. Its columns: {', '.join(columns)}.",
            )
        chosen[name] = fitting[0]
    finest = {name for name in wishes.by if name not in wishes.levels()} | {
        each.levels[-1] for each in wishes.code_lists
    }
    return replace(
        wishes, sizes=SizeList(path=beside(path, out), columns=chosen, all_keys=bool(finest) and finest <= set(columns))
    )


def confirm_header(file: str) -> bool:
    """Ask whether the first line, not shown, holds names."""
    question = f"The plan will contain the first line of {file}. Does it hold the names of the columns, and no record?"
    return sys.stdin.isatty() and typer.confirm(question)


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
