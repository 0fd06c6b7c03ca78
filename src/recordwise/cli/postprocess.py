"""``recordwise postprocess DIR --out NEW``: makes a published release nonnegative and additive, without reading records."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recordwise.cli.failing import AsJson, Debug, ends_well

if TYPE_CHECKING:
    from recordwise.release.release import Release


@ends_well
def postprocess(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder of a release.", show_default=False)],
    out: Annotated[Path, typer.Option("--out", help="A new folder for the files.", show_default=False)],
    method: Annotated[str, typer.Option(help="nnls, ols, max_fit, sequential or reweighted.")] = "nnls",
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
            min=1, help="Draws for intervals without a formula. Default: 400, or 40 for large nonnegative fits."
        ),
    ] = None,
    formats: Annotated[
        list[str] | None,
        typer.Option("--format", help="An output format; repeat for several. Default: parquet and csv."),
    ] = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Fit nonnegative, additive tables to a published release; columns NAME_fit and NAME_best are added beside the noisy ones."""
    import json

    from recordwise.cli.release import check_folder
    from recordwise.release.files import load_release
    from recordwise.release.formats import DEFAULT_FORMATS, formats_named

    pairs = _pairs(at_most or [])
    chosen = tuple(formats or DEFAULT_FORMATS)
    formats_named(chosen)
    release = load_release(folder)
    check_folder(out)
    fitted = release.consistent(
        method=method, priority=priority, complete=complete, zero_counts=zero_counts, at_most=pairs, draws=draws
    )
    fitted.save(out, formats=chosen)
    found = fitted.description["consistent"]
    if as_json:
        typer.echo(json.dumps({"folder": str(out), **found}))
    else:
        show(fitted, found, out)


def _pairs(texts: list[str]) -> dict[str, str]:
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


def show(fitted: "Release", found: dict[str, Any], out: Path) -> None:
    from recordwise.cli import screen
    from recordwise.exact.text import residual_text

    screen.heading(f"Fitted tables in {out}")
    rows = [
        [
            name,
            residual_text(fit["kkt"]),
            residual_text(fit["primal"]),
            "yes" if fit["converged"] else "no",
            *(found["uncertainty"][name][which]["intervals"] for which in ("fit", "best")),
        ]
        for name, fit in found["fits"].items()
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
        f"{tables}: NAME_fit and NAME_best beside every count and sum, each with _sd, _low and _high. "
        "Nothing was spent; the noisy answers are unchanged."
    )
    for note in dict.fromkeys(each["note"] for each in found["uncertainty"].values() if "note" in each):
        screen.note(note)
