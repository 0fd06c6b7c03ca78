"""``recordwise postprocess DIR --out NEW``: makes a release nonnegative and additive."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recordwise.cli.failing import BAD_INPUT, AsJson, Debug, ends_well

if TYPE_CHECKING:
    from recordwise.release.change import Change
    from recordwise.release.formats.records import Records
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
    gamma: Annotated[float, typer.Option(help="Confidence of reweighted that an answer is not zero.")] = 0.99,
    slack: Annotated[float, typer.Option(help="Of max_fit, beyond the smallest worst deviation.")] = 0.01,
    records: Annotated[
        str | None,
        typer.Option(help="weighted or whole: write microdata instead of fitted tables.", show_default=False),
    ] = None,
    of: Annotated[
        str | None,
        typer.Option(help="With --records: the count or sum that becomes records.", show_default=False),
    ] = None,
    values: Annotated[
        list[str] | None,
        typer.Option("--value", help="With --records: a sum that records have a value of.", show_default=False),
    ] = None,
    formats: Annotated[
        list[str] | None,
        typer.Option("--format", help="An output format; repeat for several. Default: parquet and csv."),
    ] = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Fit nonnegative, additive tables to a published release.

    Columns NAME_fit and NAME_best are added next to the noisy ones. With --records, microdata that add up are written instead.
    """
    import json

    from recordwise.cli.release import check_folder
    from recordwise.release.files import load_release
    from recordwise.release.formats import formats_named
    from recordwise.release.release import DEFAULT_FORMATS

    pairs = _columns_of(at_most or [])
    chosen = tuple(formats or DEFAULT_FORMATS)
    formats_named(chosen)
    release = load_release(folder)
    check_folder(out)
    shared: dict[str, Any] = {"method": method, "priority": priority, "complete": complete}
    shared |= {"gamma": gamma, "slack": slack}
    _check_records(records, of, values, tables_only=zero_counts or bool(at_most) or draws is not None)
    if records is not None:
        made = release.records(
            weighted=records == "weighted", whole=records == "whole", of=of, values=values or (), **shared
        )
        made.save(out, formats=chosen)
        if as_json:
            typer.echo(json.dumps({"folder": str(out), **made.to_json()}))
        else:
            show_records(made, out)
        return
    fitted = release.consistent(zero_counts=zero_counts, at_most=pairs, draws=draws, **shared)
    fitted.save(out, formats=chosen)
    note = fitted.published.fit
    assert note is not None
    if as_json:
        typer.echo(json.dumps({"folder": str(out), **note.to_json()}))
    else:
        show_fit(fitted, note, out)


def _check_records(kind: str | None, of: str | None, values: list[str] | None, *, tables_only: bool) -> None:
    """Refuse options that do not belong together."""
    from recordwise.errors import ParameterError

    if kind not in (None, "weighted", "whole"):
        raise ParameterError(parameter="--records", problem="must be weighted or whole")
    if kind is None and (of or values):
        raise ParameterError(parameter="--of and --value", problem="are for records", advice="Add --records weighted.")
    if kind is not None and tables_only:
        raise ParameterError(
            parameter="--records", problem="takes no --zero-counts, --at-most or --draws, which are for fitted tables"
        )


def show_records(made: "Records", out: Path) -> None:
    from recordwise.cli import screen
    from recordwise.exact.text import figure

    screen.heading(f"Records in {out}")
    screen.paragraph(
        f"{made.data.num_rows:,} {made.about['kind']} records of {made.about['of']}, {round(made.about['total']):,} in all, by "
        f"{made.about['method']}. Made of published tables alone: no row is a respondent, and nothing was spent."
    )
    if not made.sums:
        screen.note(f"No bound on their errors: {made.no_bound}.")
        return
    headers = ["table", "finest cells", "noise", "least error of its sums", "least error of cells"]
    rows = [
        [each.table, f"{each.cells:,}", *map(figure, (each.noise, each.least_sum_error, each.least_cell_error))]
        for each in made.sums
    ]
    screen.table(headers, rows)
    screen.note(
        "Root mean squared errors in the worst case, whatever the method: of sums over records whose cells are as good as the "
        "noisy ones, and of cells if the sums are as good as the noisy ones (T-UNCERTAIN)."
    )


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
    groups: Annotated[
        list[str] | None,
        typer.Option(
            help="COLUMN=FILE: a CSV file with the columns code and region, by which cells are added up.",
            show_default=False,
        ),
    ] = None,
    formats: Annotated[
        list[str] | None,
        typer.Option("--format", help="A format of the files, such as xlsx; csv unless given.", show_default=False),
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
    pairs = dict(_code_pairs(each, "--crosswalk", "before", "now") for each in crosswalk or ())
    lists = {name: dict(codes) for name, codes in (_code_pairs(e, "--groups", "code", "region") for e in groups or ())}
    if ledger is not None and not _verify(ledger, [before, now]):
        raise typer.Exit(BAD_INPUT)
    found = load_release(now).change(load_release(before), crosswalk=pairs, groups=lists)
    if out is not None:
        found.save(out, formats=formats or ["csv"])
    if as_json:
        typer.echo(json.dumps(found.to_json() | {"folder": None if out is None else str(out)}))
    else:
        show_change(found, out)


def _code_pairs(text: str, option: str, first: str, second: str) -> tuple[str, list[tuple[str, str]]]:
    """Return a column and the pairs of codes in a file."""
    from pyarrow import csv

    from recordwise.errors import ParameterError

    column, sign, name = text.partition("=")
    if not (column and sign and name):
        raise ParameterError(parameter=option, problem="is not of the form COLUMN=FILE")
    with Path(name).open("rb") as file:
        try:
            table = csv.read_csv(file, convert_options=_as_text(first, second))
            pairs = list(zip(table.column(first).to_pylist(), table.column(second).to_pylist()))
        except (ValueError, KeyError):
            raise ParameterError(
                parameter=option, problem=f"{name} is not a CSV file with the columns {first} and {second}"
            ) from None
    return column, pairs


def _as_text(*names: str) -> object:
    """Codes are text, whatever they look like."""
    import pyarrow as pa
    from pyarrow import csv

    return csv.ConvertOptions(column_types={name: pa.string() for name in names}, strings_can_be_null=False)


def _verify(ledger: Path, folders: list[Path]) -> bool:
    from recordwise.release.verify import verify

    problems = verify(ledger, against=folders)
    for problem in problems:
        typer.echo(f"{ledger}: {problem}", err=True)
    return not problems


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
