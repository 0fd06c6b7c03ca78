"""``recordwise change BEFORE NOW``: the change between two releases, with its accuracy, without reading records."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from recordwise.cli.failing import BAD_INPUT, AsJson, Debug, ends_well

if TYPE_CHECKING:
    from recordwise.release.differences import Change


@ends_well
def change(
    before: Annotated[Path, typer.Argument(metavar="BEFORE", help="The earlier release.", show_default=False)],
    now: Annotated[Path, typer.Argument(metavar="NOW", help="The later release.", show_default=False)],
    out: Annotated[
        Path | None, typer.Option("--out", help="A new folder for one CSV file for each table.", show_default=False)
    ] = None,
    crosswalk: Annotated[
        list[str] | None,
        typer.Option(
            help="COLUMN=FILE: a CSV file with the columns before and now, for codes that were split or merged.",
            show_default=False,
        ),
    ] = None,
    ledger: Annotated[
        Path | None, typer.Option(help="The ledger of both, to verify them against.", show_default=False)
    ] = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Show how published numbers changed: differences and percentages with sd and intervals. Costs nothing."""
    import json

    from recordwise.cli.release import check_folder
    from recordwise.release.files import load_release

    if out is not None:
        check_folder(out, state="Nothing was written.")
    pairs = dict(_pairs(each) for each in crosswalk or ())
    if ledger is not None and not _verified(ledger, [before, now]):
        raise typer.Exit(BAD_INPUT)
    found = load_release(now).change(load_release(before), crosswalk=pairs)
    if out is not None:
        save(found, out)
    if as_json:
        typer.echo(json.dumps(found.to_json() | {"folder": None if out is None else str(out)}))
    else:
        show(found, out)


def _pairs(text: str) -> tuple[str, list[tuple[str, str]]]:
    from pyarrow import csv

    from recordwise.errors import ParameterError

    column, sign, name = text.partition("=")
    if not (column and sign and name):
        raise ParameterError(parameter="--crosswalk", problem="is not of the form COLUMN=FILE")
    with Path(name).open("rb") as file:
        try:
            table = csv.read_csv(file, convert_options=_as_text())
            pairs = list(zip(table.column("before").to_pylist(), table.column("now").to_pylist()))
        except (ValueError, KeyError):
            raise ParameterError(
                parameter="--crosswalk", problem=f"{name} is not a CSV file with the columns before and now"
            ) from None
    return column, pairs


def _as_text() -> object:
    """Codes are text, whatever they look like."""
    import pyarrow as pa
    from pyarrow import csv

    return csv.ConvertOptions(column_types={"before": pa.string(), "now": pa.string()}, strings_can_be_null=False)


def _verified(ledger: Path, folders: list[Path]) -> bool:
    from recordwise.release.verify import verify

    problems = verify(ledger, against=folders)
    for problem in problems:
        typer.echo(f"{ledger}: {problem}", err=True)
    return not problems


def save(found: "Change", out: Path) -> None:
    """One CSV file for each table; no text in it is run as a formula."""
    from recordwise.release.formats.csv import without_formulas
    from recordwise.release.formats.pieces import csv_bytes
    from recordwise.release.staging import new_folder

    with new_folder(out) as staging:
        for name, table in found.tables.items():
            (staging / f"{name}.csv").write_bytes(csv_bytes(without_formulas(table), header=True))


def show(found: "Change", out: Path | None) -> None:
    """How many cells changed by more than their intervals allow for chance."""
    import numpy as np

    from recordwise.cli import screen
    from recordwise.exact.text import figure, share_text
    from recordwise.plan.arrays import numpy_of

    rows = []
    for place, level in found.confidence.items():
        table, _, name = place.rpartition(".")
        data = found[table]
        ends = (numpy_of(data.column(f"{name}_change{end}")) for end in ("_low", "_high"))
        low, high = (each[~np.isnan(each)] for each in ends)
        sd = numpy_of(data.column(f"{name}_change_sd").drop_null())
        clear = int(np.sum((low > 0) | (high < 0)))
        median = figure(float(np.median(sd))) if len(sd) else "none"
        rows.append([table, name, f"{len(low):,}", median, f"{clear:,}", share_text(level)])
    screen.heading("Changes between the two releases")
    screen.table(["table", "variable", "cells in both", "median sd", "clearly changed", "confidence"], rows)
    if out is not None:
        screen.paragraph(f"Every cell is in {out}. Nothing was spent.")
