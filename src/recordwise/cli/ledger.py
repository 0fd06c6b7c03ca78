"""``recordwise ledger show|verify|amend``: shows or verifies a ledger, or amends its budget."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recordwise.cli.failing import BAD_INPUT, AsJson, Debug, ask_first, ends_well, reporting, require_terminal
from recordwise.cli.options import Set, load_with_parameters

if TYPE_CHECKING:
    from recordwise.ledger.chain import Event
    from recordwise.ledger.entries import PeriodState
    from recordwise.policy.policy import Policy

ledger = typer.Typer(help="Show, verify and amend the ledger of a dataset.", no_args_is_help=True)
LedgerPath = Annotated[Path, typer.Argument(help="The ledger.", show_default=False)]


@ledger.command("show")
@ends_well
def show(
    file: LedgerPath,
    plan: Annotated[
        Path | None, typer.Option("--plan", help="A plan whose examples are priced in each period.", show_default=False)
    ] = None,
    given: Set = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Show every ledger entry, what was spent, and the budget.

    For the examples of a plan also what each period cost and what is left.
    """
    import json

    from recordwise.cli.loss import total_text
    from recordwise.ledger.entries import count_looks, looks_text, periods_of, series_name
    from recordwise.ledger.ledger import Ledger

    opened = Ledger.existing(file)
    events, spent, budget = opened.history(), opened.spent(), opened.budget
    opened.close()
    periods, series = periods_of(events), series_name(events)
    examples = {} if plan is None else load_with_parameters(plan, given).examples
    dataset = next(event.body["dataset"] for event in reversed(events) if event.kind == "opened")
    if as_json:
        told = {
            "dataset": dataset,
            "budget": None if budget is None else budget.to_json(),
            "spent": spent.to_json(),
            "series": series,
            "periods": [_period_json(each) for each in periods],
            "examples": {name: _example(record, periods) for name, record in examples.items()},
            "charges": {name: _charges(record, events) for name, record in examples.items()},
            "looks": count_looks(events),
            "events": [{"sequence": e.sequence, "time": e.time, "kind": e.kind, **_body(e)} for e in events],
        }
        typer.echo(json.dumps(told))
        return
    from recordwise.cli import screen
    from recordwise.ledger.ledger import FIXED_IN_ADVANCE
    from recordwise.policy.render.text import policy_lines

    screen.heading(f"Ledger of '{series or dataset}'")
    screen.table(["entry", "time", "event", ""], [_row(event) for event in events])
    if looks := count_looks(events):
        screen.paragraph(f"Confidential records were viewed ({looks_text(looks)}).")
    amended = [each.declared_text() for each in periods if each.amendments]
    for title, policy in _sums(series, periods, spent, budget):
        screen.heading(title)
        lines = [f"none declared: the {FIXED_IN_ADVANCE}"] if policy is None else policy_lines(policy)
        for number, line in enumerate(lines):
            typer.echo(("  " if number == 0 else "  + ") + line)
    for text in amended:
        screen.note(text)
    for name, record in examples.items():
        screen.heading(f"{name}, the same in every period")
        _show_example(_example(record, periods))
        _show_charges(_charges(record, events))
    if series is not None:
        screen.paragraph(f"\nThe total over the periods holds {total_text(periods)}.")


def _sums(
    series: str | None, periods: "tuple[PeriodState, ...]", spent: "Policy", budget: "Policy | None"
) -> "list[tuple[str, Policy | None]]":
    """Return what each period spent, reserved and was allowed."""
    from recordwise.policy.policy import Policy

    def stated(each: Policy, budget: Policy | None) -> Policy:
        """In the unit of the budget, where it has one."""
        return each if budget is None or each.pure_problem() is not None else each.in_unit_of(budget)

    if series is None:
        kept = [
            ("Reserved for revisions", stated(each.reserved, budget)) for each in periods if each.reserved != Policy()
        ]
        return [("Spent", stated(spent, budget)), *kept, ("Budget", budget)]
    return [
        pair
        for each in periods
        for pair in (
            (f"Spent in {each.name}", stated(each.spent, each.budget)),
            *(
                [(f"Reserved in {each.name} for revisions", stated(each.reserved, each.budget))]
                if each.reserved != Policy()
                else ()
            ),
            (f"Budget of {each.name}, {each.declared_text()}", each.budget),
        )
    ]


def _period_json(period: "PeriodState") -> dict[str, Any]:
    return {
        "period": period.name,
        "charges": period.charges,
        "spent": period.spent.to_json(),
        "reserved": period.reserved.to_json(),
        "budget": None if period.budget is None else period.budget.to_json(),
        "budget_declared": period.declared_text(),
    }


def _example(record: dict[str, Any], periods: "tuple[PeriodState, ...]") -> list[dict[str, Any]]:
    """Return each period's cost to a record, and the rest, or None, in the unit of its budget."""
    from recordwise.cli.loss import remaining_loss
    from recordwise.policy.series import needed_names

    rows: list[dict[str, Any]] = []
    for each in periods:
        known = not set(needed_names(each.spent)) - set(record)
        spent = each.spent if each.budget is None else each.spent.in_unit_of(each.budget)
        cost = float(spent.loss(record)) if known else None
        rows.append({"period": each.name, "loss": cost, "left": remaining_loss(each, record) if known else None})
    return rows


def _show_example(rows: list[dict[str, Any]]) -> None:
    from recordwise.cli import screen
    from recordwise.exact.text import digits_text

    def text(value: float | None) -> str:
        return "" if value is None else digits_text(value, 4)

    losses = [row["loss"] for row in rows if row["loss"] is not None]
    shown = [[row["period"], text(row["loss"]), text(row["left"])] for row in rows]
    screen.table(["period", "loss", "left"], [*shown, ["all periods", text(sum(losses)), ""]])


def _charges(record: dict[str, Any], events: "list[Event]") -> list[dict[str, Any]]:
    """Return what each charge cost a record, and whether it refines another or is a revision."""
    from recordwise.ledger.entries import band_tables_in, steps_of
    from recordwise.policy.policy import Policy
    from recordwise.policy.series import needed_names

    bands, steps = band_tables_in(events), steps_of(events)
    rows: list[dict[str, Any]] = []
    for event in (each for each in events if each.kind == "charged"):
        policy = Policy.from_json(event.body["policy"], bands)
        known = not set(needed_names(policy)) - set(record)
        loss = None if not known or policy.is_pure else float(policy.loss(record))
        about: dict[str, Any] = {
            name: event.body[name] for name in ("period", "revision", "refines", "tier") if name in event.body
        }
        if event.sequence in steps:
            step = steps[event.sequence]
            about |= {"step": step.kind, "follows": step.follows}
            about |= {"staying": step.unchanged(record)} if known and step.kind != "start" else {}
        if "tier" in about:
            about["tier"] = about["tier"]["of"]
        rows.append({"charge": event.sequence, **about, "loss": loss})
    return rows


def _show_charges(rows: list[dict[str, Any]]) -> None:
    """Show each charge where one refines another or revises a period."""
    from recordwise.cli import screen
    from recordwise.exact.text import digits_text

    if any(row.get(name) for row in rows for name in ("refines", "revision", "step", "tier")):
        stays = any("staying" in row for row in rows)
        cells = []
        for row in rows:
            losses = [row["loss"], *([row.get("staying")] if stays else [])]
            texts = ["" if each is None else digits_text(each, 4) for each in losses]
            cells.append([str(row["charge"]), _version(row).removeprefix(", ").strip(), *texts])
        screen.table(["charge", "what", "loss", *(["if it stays as it is"] if stays else [])], cells)


def _row(event: "Event") -> list[str]:
    """One entry as a row of the table."""
    body = event.body
    match event.kind:
        case "opened":
            what = f"for '{body.get('dataset')}'" + (f", period {body['period']}" if "period" in body else "")
            if body.get("amendments"):
                what += f"; budget amended: {body['amendments'][-1]['reason']}"
        case "reserved":
            what = f"for {body.get('revisions')} revision(s) of charge {body.get('reserved_by')}; no other release may use it"
        case "looked":
            what = f"{_look(body)}confidential records were viewed; a later release needs tuning_reason"
        case "preflight":
            what = f"records were held against the keys of plan {str(body.get('plan'))[:12]}, as an earlier version noted a look"
        case "charged":
            what = str(body.get("query")) + _version(body)
        case "released":
            what = f"charge {body.get('charge')}, digest {str(body.get('digest'))[:12]}"
        case _:
            what = f"charge {body.get('charge')}: {body.get('kind')}; it stays spent"
    return [str(event.sequence), event.time[:19].replace("T", " "), event.kind, what]


def _look(body: dict[str, Any]) -> str:
    """The command of a look, and its plan; earlier versions state neither."""
    plan = f" of plan {str(body['plan'])[:12]}" if "plan" in body else ""
    return f"{body['command']}{plan}: " if "command" in body else ""


def _version(body: dict[str, Any]) -> str:
    """The period of a charge, its revision, and what it refines."""
    revision = f", revision {body['revision']}" if body.get("revision") else ""
    refines = f", refines charge {body['refines']}" if "refines" in body else ""
    tier = body.get("tier")
    if tier is not None:
        refines = f", a tier of charge {tier['of'] if isinstance(tier, dict) else tier}: nothing is charged"
    step = body.get("step") or {}
    form = step if isinstance(step, dict) else {"kind": step, "follows": body.get("follows")}
    follows = f", {STEPS[form['kind']]} charge {form['follows']}" if form.get("follows") else ""
    return (f" ({body['period']}{revision})" if "period" in body else "") + refines + follows


STEPS = {"carry": "carries the noise of", "revise": "corrects"}


def _body(event: "Event") -> dict[str, Any]:
    """Return an event's content without the running sum."""
    return {name: value for name, value in event.body.items() if name not in ("spent", "details", "schema", "declared")}


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
    """Check the chain, sums and budget, and releases against the ledger."""
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


@ledger.command("amend")
@ends_well
def amend(
    plan: Annotated[Path, typer.Argument(help="The plan, with its new budget.", show_default=False)],
    reason: Annotated[str, typer.Option("--reason", help="Why; it is published with every later release.")],
    budget: Annotated[
        str | None,
        typer.Option("--budget", help="The new budget, as the plan file writes it, instead of the plan's."),
    ] = None,
    given: Set = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Replace the budget that a ledger promised, in public.

    The ledger notes the day, the reason and the old budget, and every later release says that its total was not
    fixed in advance. Never below what is spent and reserved.
    """
    import json

    from recordwise.ledger.entries import amendments_text
    from recordwise.session.session import amended_ledger

    file = load_with_parameters(plan, given, budget=budget)
    if not yes:
        left = "The budget is as it was."
        require_terminal(left)
        ask_first(f"Replace the budget of {file.ledger.name}? This is published and cannot be undone.", left)
    with amended_ledger(file, reason) as opened:
        told = amendments_text(opened.amendments(), opened.budget)
    with reporting("The budget is replaced."):
        if as_json:
            typer.echo(json.dumps({"ledger": str(file.ledger), "amendment": told}))
            return
        typer.echo(f"{file.ledger}: {told}.")
        if budget is not None:
            typer.echo(f"Write in the plan, so that it states the same: budget = {budget}")
