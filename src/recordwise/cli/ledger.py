"""``recordwise ledger show|verify FILE``: shows or verifies a ledger."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recordwise.cli.failing import BAD_INPUT, AsJson, Debug, ends_well

if TYPE_CHECKING:
    from recordwise.ledger.chain import Event

ledger = typer.Typer(help="Show and verify the ledger of a dataset.", no_args_is_help=True)
LedgerPath = Annotated[Path, typer.Argument(help="The ledger.", show_default=False)]


@ledger.command("show")
@ends_well
def show(file: LedgerPath, as_json: AsJson = False, debug: Debug = False) -> None:
    """Show every entry, what was spent, and the budget."""
    import json

    from recordwise.ledger.ledger import Ledger

    opened = Ledger.existing(file)
    events, spent, budget = opened.history(), opened.spent(), opened.budget
    opened.close()
    dataset = next(event.body["dataset"] for event in reversed(events) if event.kind == "opened")
    if as_json:
        told = {
            "dataset": dataset,
            "budget": None if budget is None else budget.to_json(),
            "spent": spent.to_json(),
            "events": [{"sequence": e.sequence, "time": e.time, "kind": e.kind, **_body(e)} for e in events],
        }
        typer.echo(json.dumps(told))
        return
    from recordwise.cli import screen
    from recordwise.ledger.ledger import FIXED_IN_ADVANCE
    from recordwise.policy.render.text import policy_lines

    screen.heading(f"Ledger of '{dataset}'")
    screen.table(["entry", "time", "event", ""], [_row(event) for event in events])
    for title, policy in (("Spent", spent), ("Budget", budget)):
        screen.heading(title)
        lines = [f"none declared: the {FIXED_IN_ADVANCE}"] if policy is None else policy_lines(policy)
        for number, line in enumerate(lines):
            typer.echo(("  " if number == 0 else "  + ") + line)


def _row(event: "Event") -> list[str]:
    """One entry as a row of the table."""
    body = event.body
    match event.kind:
        case "opened":
            what = f"for '{body.get('dataset')}'"
        case "looked":
            what = "confidential records were viewed; a later release needs accept_tuning"
        case "preflight":
            what = f"records were held against the keys of plan {str(body.get('plan'))[:12]}"
        case "charged":
            what = str(body.get("query"))
        case "released":
            what = f"charge {body.get('charge')}, digest {str(body.get('digest'))[:12]}"
        case _:
            what = f"charge {body.get('charge')}: {body.get('kind')}; it stays spent"
    return [str(event.sequence), event.time[:19].replace("T", " "), event.kind, what]


def _body(event: "Event") -> dict[str, Any]:
    """The content of an event, without the running sum, which is shown once."""
    return {name: value for name, value in event.body.items() if name not in ("spent", "details", "schema")}


@ledger.command("verify")
@ends_well
def verify(
    file: LedgerPath,
    more: Annotated[list[Path] | None, typer.Argument(metavar="DIR", help="Further folders.", hidden=True)] = None,
    against: Annotated[
        list[Path] | None, typer.Option(help="The folder of a release; more folders may follow.")
    ] = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Check the chain, the sums and the budget, and releases against the ledger."""
    import json

    from recordwise.release.verify import verify as audit

    folders = [*(against or []), *(more or [])]
    problems = audit(file, against=folders)
    if as_json:
        typer.echo(json.dumps({"ledger": str(file), "in_order": not problems, "problems": problems}))
    elif not problems:
        seen = f" and agrees with {len(folders)} release{'s' if len(folders) != 1 else ''}" if folders else ""
        typer.echo(f"{file} is in order{seen}.")
    for problem in problems if not as_json else ():
        typer.echo(f"{file}: {problem}", err=True)
    if problems:
        raise typer.Exit(BAD_INPUT)
