"""``recordwise loss POLICY name=value ...``: an establishment looks up its own loss."""

from pathlib import Path
from typing import Annotated

import typer

from recordwise.cli.failing import AsJson, Debug, ends_well, plain_float

Values = Annotated[
    list[str] | None, typer.Argument(help="The record: emp=1000 payann=52000 naics=441110", show_default=False)
]


@ends_well
def loss(
    policy: Annotated[Path, typer.Argument(help="policy.json of a release, or a policy alone.", show_default=False)],
    values: Values = None,
    delta: Annotated[float, typer.Option(parser=plain_float, help="The delta at which epsilon is stated.")] = 1e-5,
    paper: Annotated[
        bool, typer.Option("--paper", help="Use the bound of the papers instead of the tight one.")
    ] = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Show what a publication can reveal about one record: its loss, its epsilon, and what they mean."""
    import json

    from recordwise.cli import screen
    from recordwise.cli.lookup import looked_up, read_policy, read_privacy_label, read_record, show
    from recordwise.release.tables import PRIVATE

    known = read_policy(policy, "paper" if paper else "tight")
    found = looked_up(known, read_record(known, values or []), delta)
    label = read_privacy_label(policy)
    if as_json:
        typer.echo(json.dumps({"privacy_label": label, **found}))
        return
    if label not in (PRIVATE, None):
        screen.note(
            f"{label}. The numbers below would apply to tables drawn from the secure source; these tables carry no guarantee."
        )
    show(found)
