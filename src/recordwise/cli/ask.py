"""``recordwise ask DIR emp``: a total from all tables, with its error."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recordwise.cli.failing import AsJson, Debug, ends_well

if TYPE_CHECKING:
    from recordwise.reader.answers import Answer


@ends_well
def ask(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A release, as a folder or a zip.", show_default=False)],
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="A count or sum: emp, sum_emp, count.", show_default=False)
    ],
    where: Annotated[
        list[str] | None,
        typer.Option(help="county=34001,34003: only these codes. May be repeated.", show_default=False),
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
    complete: Annotated[bool, typer.Option("--complete", help="The public keys list every existing cell.")] = False,
    nonnegative: Annotated[bool, typer.Option("--nonnegative", help="Cut values and intervals at 0.")] = False,
    query: Annotated[
        int | None, typer.Option(help="The query, where several have the name.", show_default=False)
    ] = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Add up cells of a release, with exact errors.

    The best linear unbiased estimate from all tables, the sentence to quote and the citation. Nothing is spent.
    """
    import json

    from recordwise.reader.reading import read

    regions = by if by is not None and by.lower().endswith(".csv") else None
    found = read(folder).total(
        name,
        _conditions(where or []),
        by=by if regions is None else codes,
        regions=regions,
        complete=complete or None,
        nonnegative=nonnegative,
        query=query,
    )
    if as_json:
        typer.echo(json.dumps(found.to_json()))
    else:
        _show(found)


def _conditions(texts: list[str]) -> dict[str, Any]:
    from recordwise.errors import ParameterError

    found: dict[str, list[str]] = {}
    for text in texts:
        column, sign, codes = text.partition("=")
        if not (column and sign and codes):
            raise ParameterError(parameter="--where", problem="must be COLUMN=CODE,CODE,...")
        found.setdefault(column, []).extend(codes.split(","))
    return found


def _show(found: "Answer") -> None:
    """Print the sentence or the table, its sources and the citation."""
    from recordwise.cli import screen
    from recordwise.exact.text import number_text

    if len(found) == 1:
        screen.paragraph(found.sentence)
        screen.paragraph(f"From {found.sources[0]}.")
    else:
        screen.heading(found.question[:1].upper() + found.question[1:])
        columns = (found.values, found.sds, found.lows, found.highs)
        rows = [[label, *(number_text(float(each)) for each in row)] for label, *row in zip(found.labels, *columns)]
        screen.table(["", "value", "standard error", "low", "high"], rows)
    for note in found.notes:
        screen.note(note)
    screen.paragraph(found.citation)
