"""``recordwise attack TABLES``: what anybody can compute about cells that were withheld."""

from pathlib import Path
from typing import Annotated, Any

import typer

from recordwise.cli.failing import AsJson, Debug, ends_well

TABLES, KNOWN, BOTH = "These tables", "The tables published earlier, alone", "Together with these tables"


@ends_well
def attack(
    tables: Annotated[
        Path,
        typer.Argument(
            metavar="TABLES",
            help="A description of published tables: their files, and what adds up.",
            show_default=False,
        ),
    ],
    known: Annotated[
        Path | None,
        typer.Option(
            help="A description of tables published earlier: what they give away alone, then with these tables.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="A new CSV file for the interval of each cell; only you can read it.", show_default=False),
    ] = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Compute the feasible interval of every withheld cell from published tables alone.

    All tables are used together. Values recovered from a real publication are for its owner only.
    """
    import json

    from recordwise.disclosure.attack import attack as attacked
    from recordwise.disclosure.attack import read_description
    from recordwise.errors import ParameterError

    if out is not None and out.exists():
        raise ParameterError(parameter=str(out), problem="already exists", advice="Choose a new file.")
    if known is None:
        found = {TABLES: attacked(tables)}
    else:
        found = {KNOWN: attacked(known), BOTH: attacked(read_description(known, tables))}
    last = list(found.values())[-1]
    if out is not None:
        last.save(out)
    if as_json:
        typer.echo(json.dumps({name: each.counts() for name, each in found.items()}))
        return
    _show(found, last, out)


def _show(found: dict[str, Any], last: Any, out: Path | None) -> None:
    """Print how many cells can be found, and what was assumed."""
    for name, each in found.items():
        typer.echo(f"{name}: {each.summary()}")
    if KNOWN in found:
        typer.echo("What the tables published earlier give away alone, no later release protects.")
    typer.echo("")
    for line in last.assumptions:
        typer.echo(f"Assumed: {line}")
    typer.echo(f"The intervals are in {out}." if out is not None else "Use --out FILE for the interval of each cell.")
