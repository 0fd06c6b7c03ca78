"""Looks up a unit's history in the ledger of a series: what each period cost it, and what all of them cost together."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from recordwise.ledger.periods import PeriodState

SQLITE = b"SQLite format 3\x00"


def is_ledger(path: Path) -> bool:
    """Whether a file is a ledger rather than a policy."""
    with path.open("rb") as file:
        return file.read(len(SQLITE)) == SQLITE


def read_periods(path: Path) -> "tuple[str | None, tuple[PeriodState, ...]]":
    """The series of a ledger and its periods that were charged."""
    from recordwise.ledger.ledger import Ledger
    from recordwise.ledger.periods import periods_of, series_name

    opened = Ledger.existing(path)
    events = opened.history()
    opened.close()
    return series_name(events), periods_of(events)


def read_history(periods: "tuple[PeriodState, ...]", words: list[str]) -> dict[str, dict[str, Any]]:
    """The records of a unit out of name@period=value words; name=value holds in every period that uses the name.

    A period for which nothing is given is one in which the unit has no record.
    """
    from recordwise.cli.lookup import read_record
    from recordwise.errors import ParameterError
    from recordwise.plan.file.node import suggestion
    from recordwise.policy.series import needed_names

    known = [each.name for each in periods]
    general, own = [], dict[str, list[str]]()
    for word in words:
        name, equals, text = word.partition("=")
        bare, at, period = name.rpartition("@")
        if not equals or not at:
            general.append(word)
        elif period not in known:
            raise ParameterError(
                parameter=f"'{name}'", problem=f"names no period of the ledger{suggestion(period, known)}"
            )
        else:
            own.setdefault(period, []).append(f"{bare}={text}")
    names = {each.name: needed_names(each.spent) for each in periods}
    unused = [word for word in general if not any(word.partition("=")[0] in used for used in names.values())]
    if unused:
        raise ParameterError(
            parameter=f"'{unused[0].partition('=')[0]}'", problem="is not used in any period of the ledger"
        )
    found = {}
    for each in periods:
        given = own.get(each.name, [])
        stated = {word.partition("=")[0] for word in given}
        shared = [word for word in general if word.partition("=")[0] in names[each.name]]
        given = given + [word for word in shared if word.partition("=")[0] not in stated]
        if given or not names[each.name]:
            found[each.name] = read_record(each.spent, given)
    return found


def looked_up_history(
    series: str | None, periods: "tuple[PeriodState, ...]", words: list[str], delta: float
) -> dict[str, Any]:
    """The loss of each period, what its budget leaves, and the total with its meaning."""
    from recordwise.policy.meaning import meaning, power_beside_delta
    from recordwise.policy.series import history_losses, record_at

    history = read_history(periods, words)
    losses = history_losses({each.name: each.spent for each in periods}, history)
    rows, own = [], 0.0
    for each in periods:
        record = record_at(history, each.name, each.spent)
        selected = 0.0 if record is None else float(each.spent.delta(record))
        own += selected
        rows.append(
            {
                "period": each.name,
                "record": None if record is None else {name: str(value) for name, value in record.items()},
                "loss": losses[each.name],
                "selection_delta": selected,
                "left": left(each, record),
                "budget": each.declared_words(),
            }
        )
    rho = sum(losses.values())
    told = meaning(rho, delta=delta)
    return {
        "series": series,
        "periods": rows,
        "loss": rho,
        "selection_delta": own,
        "epsilon": told.epsilon,
        "delta": delta + own,
        "power_of_a_5_percent_test": power_beside_delta(rho, own, false_alarm=told.false_alarm),
        "sentence": told.sentence(),
        "total": total_words(periods),
    }


def left(period: "PeriodState", record: dict[str, Any] | None) -> float | None:
    """What the budget of a period leaves to a record; None without a budget, or if the budget depends on more than is given."""
    from recordwise.policy.series import needed_names

    if period.budget is None or record is None or set(needed_names(period.budget)) - set(record):
        return None
    return max(0.0, float(period.budget.loss(record)) - float(period.spent.loss(record)))


def total_words(periods: "tuple[PeriodState, ...]") -> str:
    """How far the total holds: for ever where every budget was declared at the start, otherwise as of today."""
    if periods and all(each.at_start for each in periods):
        return "within budgets that were declared at the start of the series"
    return "as of today: a period without a budget, or one declared later, can add to it"


def show(found: dict[str, Any]) -> None:
    """Print the periods and the total."""
    from recordwise.cli import screen
    from recordwise.exact.text import digits_text

    screen.heading(
        f"Losses over the periods of '{found['series'] or found['periods'][0]['period']}'"
        if found["periods"]
        else "No charge"
    )
    rows = []
    for each in found["periods"]:
        record = "no record" if each["record"] is None else ", ".join(f"{n} = {v}" for n, v in each["record"].items())
        remaining = "" if each["left"] is None else digits_text(each["left"], 4)
        rows.append([each["period"], record or "every record", digits_text(each["loss"], 4), remaining, each["budget"]])
    screen.table(["period", "record", "loss", "left", "budget"], rows)
    typer.echo("")
    typer.echo(f"  loss over all published periods (zCDP rho)   {digits_text(found['loss'], 4)}, {found['total']}")
    typer.echo(f"  epsilon {digits_text(found['epsilon'], 4)} at delta {digits_text(found['delta'], 3)}")
    typer.echo("")
    screen.paragraph(found["sentence"])
