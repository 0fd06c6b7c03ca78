"""``recordwise loss POLICY name=value ...``: an establishment looks its own loss up."""

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
    delta: Annotated[float, typer.Option(parser=plain_float, help="The delta at which epsilon is told.")] = 1e-5,
    paper: Annotated[bool, typer.Option("--paper", help="The bound of the papers instead of the tight one.")] = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """What a publication can tell about one record: its loss, its epsilon, and what they mean."""
    import json

    from recordwise.cli import screen
    from recordwise.cli.lookup import looked_up, read_policy, read_privacy_label, read_record, show
    from recordwise.release.tables import PRIVATE

    known = read_policy(policy, "paper" if paper else "tight")
    found = looked_up(known, read_record(known, values or []), delta)
    label = read_privacy_label(policy)
    if as_json:
        typer.echo(json.dumps({"mark": label, **found}))
        return
    if label not in (PRIVATE, None):
        screen.note(
            f"{label}. What follows would hold of the same tables drawn from the secure source; these promise nothing."
        )
    show(found)
