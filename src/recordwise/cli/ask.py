"""``recordwise ask DIR emp``: a total from all tables, with its error."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recordwise.cli.failing import BAD_INPUT, AsJson, Debug, ends_well

if TYPE_CHECKING:
    from recordwise.reader.answers import Answer
    from recordwise.reader.derived import Ranks

CODES = re.compile(r"[^\s=!<>()']+=[^\s=!<>()']+")
"""The short form of a condition: a column and its codes."""


@ends_well
def ask(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A release, as a folder or a zip.", show_default=False)],
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="A count or sum: emp, sum_emp, count.", show_default=False)
    ],
    where: Annotated[
        list[str] | None,
        typer.Option(
            help="Only these cells: county=34001,34003, or \"county in ('34001') and not naics2 = '31-33'\". May be repeated.",
            show_default=False,
        ),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(
            help="A column, or a CSV file of regions with the columns code (or the name of a column), region and perhaps share.",
            show_default=False,
        ),
    ] = None,
    codes: Annotated[
        str | None, typer.Option(help="With a file of regions: the column its codes are of.", show_default=False)
    ] = None,
    share_of: Annotated[
        str | None, typer.Option(help="As shares of the cells of this condition, or of all.", show_default=False)
    ] = None,
    each: Annotated[
        bool, typer.Option("--each", help="With --share-of: of each value of --by its own share of such cells.")
    ] = False,
    growth_from: Annotated[
        list[Path] | None, typer.Option(help="Growth since this earlier release. May be repeated.", show_default=False)
    ] = None,
    rank: Annotated[
        int | None, typer.Option(help="Ranks, and which are among so many largest.", show_default=False, min=1)
    ] = None,
    replicates: Annotated[
        Path | None,
        typer.Option(help="Also write totals with 100 simulated errors to this file.", show_default=False),
    ] = None,
    complete: Annotated[bool, typer.Option("--complete", help="The public keys list every existing cell.")] = False,
    nonnegative: Annotated[bool, typer.Option("--nonnegative", help="Cut values and intervals at 0.")] = False,
    query: Annotated[
        int | None, typer.Option(help="The query, where several have the name.", show_default=False)
    ] = None,
    verify: Annotated[bool, typer.Option("--verify", help="Check every file against its digest first.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Add up cells of a release, with exact errors.

    The best linear unbiased estimate from all tables, the sentence to quote and the citation. Nothing is spent.
    """
    from recordwise.progress import shown
    from recordwise.reader.reading import problems, read

    regions = by if by is not None and by.lower().endswith(".csv") else None
    _refuse_ignored(
        ("--share-of", share_of is not None and bool(growth_from), "is not for --growth-from"),
        ("--each", each and share_of is None, "needs --share-of"),
        ("--each", each and by is None, "needs --by"),
        ("--codes", codes is not None and regions is None, "needs a file of regions: --by FILE.csv"),
        ("--json", as_json and as_csv, "cannot be printed together with --csv"),
        ("--nonnegative", nonnegative and bool(growth_from), "is not for --growth-from"),
        ("--nonnegative", nonnegative and share_of is not None, "is not for --share-of"),
        ("--query", query is not None and bool(growth_from), "is not for --growth-from"),
    )
    if verify and (found := problems(folder)):
        for problem in found:
            typer.echo(problem, err=True)
        raise typer.Exit(BAD_INPUT)
    options: dict[str, Any] = {"by": by if regions is None else codes, "regions": regions, "complete": complete or None}
    with shown("adding up the cells"):
        release, condition = read(folder), _condition(where or [])
        if growth_from:
            answer = release.growth(name, *map(read, growth_from), where=condition, **options)
        elif share_of is not None:
            whole = None if share_of == "all" else _condition([share_of])
            answer = release.share(name, condition, of=whole, each=each, query=query, **options)
        else:
            answer = release.total(name, condition, nonnegative=nonnegative, query=query, **options)
        if replicates is not None:
            answer.replicates().save(replicates)
        ranks = None if rank is None else answer.rank()
    _print(answer if ranks is None else ranks, rank, verified=verify, as_csv=as_csv, as_json=as_json)


def _refuse_ignored(*options: tuple[str, bool, str]) -> None:
    """Refuse the first option that would change nothing."""
    from recordwise.errors import ParameterError

    for name, ignored, problem in options:
        if ignored:
            raise ParameterError(parameter=name, problem=problem)


def _condition(texts: list[str]) -> str | None:
    """Return one condition from several, of either form."""
    found = [
        f"{column} in ({', '.join(_quoted(code) for code in codes.split(','))})" if short else f"({text})"
        for text in texts
        for short in [CODES.fullmatch(text) is not None]
        for column, _, codes in [text.partition("=")]
    ]
    return " and ".join(found) or None


def _quoted(code: str) -> str:
    doubled = code.replace("'", "''")
    return f"'{doubled}'"


def _print(found: "Answer | Ranks", rank: int | None, *, verified: bool, as_csv: bool, as_json: bool) -> None:
    """Print JSON, CSV, or the sentence with table, sources and citation."""
    import json

    from recordwise.cli import screen

    if as_json:
        about = {} if rank is None else {"sentence": found.sentence(rank)}  # type: ignore[operator]
        typer.echo(json.dumps(found.to_json() | about | {"verified": verified}))
        return
    if as_csv:
        typer.echo(_csv(found), nl=False)
        return
    if rank is None:
        _show(found)  # type: ignore[arg-type]
    else:
        _show_ranks(found, rank)  # type: ignore[arg-type]
    if verified:
        screen.paragraph("Every file is the one that was saved, by its digest.")
    screen.paragraph(found.citation)


def _csv(found: "Answer | Ranks") -> str:
    """Return the table as CSV, safe in spreadsheets, with citations."""
    import csv
    import io

    from recordwise.release.formats.csv import without_formulas

    text, table = io.StringIO(), found.table
    safe = without_formulas(table.append_column("citation", [[found.citation] * table.num_rows]))
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(safe.column_names)
    writer.writerows(row.values() for row in safe.to_pylist())
    return text.getvalue()


def _show(found: "Answer") -> None:
    """Print the sentence or the table, and its sources."""
    from recordwise.cli import screen

    if len(found) == 1:
        screen.paragraph(found.sentence)
        screen.paragraph(f"From {found.sources[0]}.")
    else:
        screen.heading(found.question[:1].upper() + found.question[1:])
        rows = [[label, *row] for label, row in zip(found.labels, found.texts)]
        screen.table(["", "value", "standard error", "low", "high"], rows)
        screen.paragraph(f"To quote: {found.sentence}")
    for note in found.notes:
        screen.note(note)


def _show_ranks(found: "Ranks", count: int) -> None:
    """Print the possible ranks, and who is among the largest."""
    from recordwise.cli import screen
    from recordwise.exact.text import number_text
    from recordwise.reader.derived import RANK_SETS

    screen.paragraph(found.sentence(count))
    columns = found.table.to_pylist()
    alone, together = ([f"{each[low]} to {each[high]}" for each in columns] for low, high in RANK_SETS)
    numbers = [[each["label"], number_text(each["value"]), str(each["rank"])] for each in columns]
    rows = [
        [*row, *sets]
        for each, row, *sets in zip(columns, numbers, alone, together)
        if each["rank"] <= count or each["all_best"] <= count
    ]
    screen.table(["", "value", "rank", "this one alone", "all at once"], rows)
    if left := len(columns) - len(rows):
        screen.paragraph(f"And {left:,} more, not among the top {count} at this confidence; --csv lists all.")
