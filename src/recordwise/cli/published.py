"""``recordwise postprocess DIR --out NEW``: makes a release nonnegative and additive."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from recordwise.cli.failing import BAD_INPUT, AsJson, Debug, ends_well

if TYPE_CHECKING:
    from recordwise.release.change import Change
    from recordwise.release.release import Release
    from recordwise.release.tables import FitNote


@ends_well
def postprocess(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder of a release.", show_default=False)],
    out: Annotated[Path, typer.Option("--out", help="A new folder for the files.", show_default=False)],
    method: Annotated[str, typer.Option(help="top_down, nnls, ols, max_fit, sequential or reweighted.")] = "top_down",
    priority: Annotated[
        list[str] | None,
        typer.Option(help="A table, in order of priority; repeat for every table. For sequential only."),
    ] = None,
    complete: Annotated[bool, typer.Option("--complete", help="The public keys list every existing cell.")] = False,
    zero_counts: Annotated[bool, typer.Option("--zero-counts", help="Sums are 0 where the fitted count is.")] = False,
    at_most: Annotated[
        list[str] | None,
        typer.Option(
            help="payqtr1=payann: the first never exceeds the second. Names: columns of the tables, or measures summed once; "
            "q2:payqtr1=payann applies to the second query only. May be repeated.",
            show_default=False,
        ),
    ] = None,
    draws: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Draws for errors of nonnegative fits (none by default) and for intervals without a formula (400).",
        ),
    ] = None,
    formats: Annotated[
        list[str] | None,
        typer.Option("--format", help="An output format; repeat for several. Default: parquet and csv."),
    ] = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Fit nonnegative, additive tables to a published release.

    Columns NAME_fit and NAME_best are added next to the noisy ones.
    """
    import json

    from recordwise.cli.release import check_folder
    from recordwise.release.files import load_release
    from recordwise.release.formats import DEFAULT_FORMATS, formats_named

    pairs = _columns_of(at_most or [])
    chosen = tuple(formats or DEFAULT_FORMATS)
    formats_named(chosen)
    release = load_release(folder)
    check_folder(out)
    fitted = release.consistent(
        method=method, priority=priority, complete=complete, zero_counts=zero_counts, at_most=pairs, draws=draws
    )
    fitted.save(out, formats=chosen)
    note = fitted.published.fit
    assert note is not None
    if as_json:
        typer.echo(json.dumps({"folder": str(out), **note.to_json()}))
    else:
        show_fit(fitted, note, out)


def _columns_of(texts: list[str]) -> dict[str, str]:
    from recordwise.errors import ParameterError

    pairs = {}
    for text in texts:
        smaller, sign, larger = text.partition("=")
        if not (smaller and sign and larger):
            raise ParameterError(parameter="--at-most", problem="must be two names, SMALLER=LARGER")
        if smaller in pairs:
            raise ParameterError(parameter="--at-most", problem=f"names '{smaller}' as the smaller variable twice")
        pairs[smaller] = larger
    return pairs


def show_fit(fitted: "Release", note: "FitNote", out: Path) -> None:
    from recordwise.cli import screen
    from recordwise.exact.text import residual_text

    screen.heading(f"Fitted tables in {out}")
    rows = [
        [
            name,
            residual_text(fit.kkt),
            residual_text(fit.primal),
            "yes" if fit.converged else "no",
            *fit.intervals,
        ]
        for name, fit in note.fits.items()
    ]
    headers = [
        "variable",
        "KKT residual",
        "primal residual",
        "solved to 1e-8",
        "NAME_fit interval",
        "NAME_best interval",
    ]
    screen.table(headers, rows)
    tables = ", ".join(f"{table.name}.parquet" for table in fitted.tables)
    screen.paragraph(
        f"{tables}: NAME_fit and NAME_best next to every count and sum, each with _low and _high. "
        "Nothing was spent; the noisy answers are unchanged."
    )
    for text in dict.fromkeys(fit.note for fit in note.fits.values() if fit.note):
        screen.note(text)


# ``recordwise export DIR --format NAME --out FILE``: writes tables of a saved release in another format.


@ends_well
def export(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder of a release.", show_default=False)],
    format: Annotated[
        str,
        typer.Option(
            "--format",
            help="parquet, csv, xlsx, sas, sas8, stata, sdmx-csv, cbp or one of your own.",
            show_default=False,
        ),
    ],
    out: Annotated[Path, typer.Option("--out", help="A new file.", show_default=False)],
    table: Annotated[
        str | None, typer.Option(help="The table, where the release has several and the format a file for each.")
    ] = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Write tables of a saved release in another format.

    Nothing is drawn and nothing is spent.
    """
    import json

    from recordwise.cli import screen
    from recordwise.release.files import load_release

    release = load_release(folder)
    made = release.export(out, format=format, table=table)
    if as_json:
        typer.echo(json.dumps({"file": str(made), "format": format, "privacy_label": release.privacy_label}))
    else:
        screen.paragraph(f"Written to {made}.")


# ``recordwise change BEFORE NOW``: the change between two releases, with its accuracy, without reading records.


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
    """Show how published numbers changed, at no cost.

    Differences and percentages with sd and intervals.
    """
    import json

    from recordwise.cli.release import check_folder
    from recordwise.release.files import load_release

    if out is not None:
        check_folder(out, state="Nothing was written.")
    pairs = dict(_crosswalk_column(each) for each in crosswalk or ())
    if ledger is not None and not _verify(ledger, [before, now]):
        raise typer.Exit(BAD_INPUT)
    found = load_release(now).change(load_release(before), crosswalk=pairs)
    if out is not None:
        save(found, out)
    if as_json:
        typer.echo(json.dumps(found.to_json() | {"folder": None if out is None else str(out)}))
    else:
        show_change(found, out)


def _crosswalk_column(text: str) -> tuple[str, list[tuple[str, str]]]:
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


def _verify(ledger: Path, folders: list[Path]) -> bool:
    from recordwise.release.verify import verify

    problems = verify(ledger, against=folders)
    for problem in problems:
        typer.echo(f"{ledger}: {problem}", err=True)
    return not problems


def save(found: "Change", out: Path) -> None:
    """Write one CSV file per table, with no formula in it."""
    from recordwise.release.formats.csv import csv_bytes, without_formulas
    from recordwise.release.staging import new_folder

    with new_folder(out) as staging:
        for name, table in found.tables.items():
            (staging / f"{name}.csv").write_bytes(csv_bytes(without_formulas(table), header=True))


def show_change(found: "Change", out: Path | None) -> None:
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
