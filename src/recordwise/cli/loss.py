"""``recordwise loss POLICY name=value ...``: shows an establishment its own loss."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recordwise.cli.failing import AsJson, Debug, ends_well, plain_float
from recordwise.cli.history_lookup import is_ledger, looked_up_history, read_periods
from recordwise.cli.history_lookup import show as show_history

if TYPE_CHECKING:
    from recordwise.policy.policy import Policy

Values = Annotated[
    list[str] | None,
    typer.Argument(
        help="The record: emp=1000 naics=441110; with a ledger also emp@2025=4 emp@2026=5.", show_default=False
    ),
]


@ends_well
def loss(
    policy: Annotated[
        Path,
        typer.Argument(help="policy.json of a release, a policy alone, or the ledger of a series.", show_default=False),
    ],
    values: Values = None,
    delta: Annotated[float, typer.Option(parser=plain_float, help="The delta at which epsilon is stated.")] = 1e-5,
    paper: Annotated[
        bool, typer.Option("--paper", help="Use the bound of the papers instead of the tight one.")
    ] = False,
    firm: Annotated[
        Path | None,
        typer.Option(
            "--firm", help="A CSV file with the establishments of one firm: its loss as a whole.", show_default=False
        ),
    ] = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Show what a publication can reveal about one record or one firm: its loss, its epsilon, and what they mean."""
    import json

    from recordwise.cli import screen
    from recordwise.cli.firm_lookup import show_firm
    from recordwise.cli.lookup import looked_up, read_lattice, read_policy, read_privacy_label, read_record, show
    from recordwise.release.tables import PRIVATE

    if is_ledger(policy):
        _history(policy, values or [], delta, firm, as_json=as_json)
        return
    which = "paper" if paper else "tight"
    known = read_policy(policy, which)
    if firm is None:
        found = looked_up(known, read_record(known, values or []), delta, read_lattice(policy, which))
    else:
        found = _firm(policy, which, known, firm, values, delta)
    label = read_privacy_label(policy)
    if as_json:
        typer.echo(json.dumps({"privacy_label": label, **found}))
        return
    if label not in (PRIVATE, None):
        screen.note(
            f"{label}. The numbers below would apply to tables drawn from the secure source; these tables carry no guarantee."
        )
    (show if firm is None else show_firm)(found)


def _history(path: Path, values: list[str], delta: float, firm: Path | None, *, as_json: bool) -> None:
    import json

    from recordwise.errors import ParameterError

    if firm is not None:
        raise ParameterError(parameter="--firm", problem="needs policy.json of a release, not a ledger")
    found = looked_up_history(*read_periods(path), values, delta)
    if as_json:
        typer.echo(json.dumps(found))
    else:
        show_history(found)


def _firm(
    path: Path, which: str, known: "Policy", firm: Path, values: list[str] | None, delta: float
) -> dict[str, Any]:
    from recordwise.cli.firm_lookup import looked_up_firm, read_firm_policy, read_lists, read_units
    from recordwise.errors import ParameterError

    if values:
        raise ParameterError(
            parameter="--firm", problem="excludes a record", advice="Write every establishment into the file."
        )
    joint = read_firm_policy(path, which)
    units = read_units(firm, known, joint.columns() if joint else (), read_lists(path))
    return looked_up_firm(known, joint, units, delta)
