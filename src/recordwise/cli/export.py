"""``recordwise export DIR --format NAME --out FILE``: writes tables of a saved release in another format."""

from pathlib import Path
from typing import Annotated

import typer

from recordwise.cli.failing import AsJson, Debug, ends_well


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
    """Write tables of a saved release in another format. Nothing is drawn and nothing is spent."""
    import json

    from recordwise.cli import screen
    from recordwise.release.files import load_release

    release = load_release(folder)
    made = release.export(out, format=format, table=table)
    if as_json:
        typer.echo(json.dumps({"file": str(made), "format": format, "privacy_label": release.privacy_label}))
    else:
        screen.paragraph(f"Written to {made}.")
