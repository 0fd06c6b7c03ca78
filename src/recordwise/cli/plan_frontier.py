"""``recordwise plan frontier PLAN``: how many cells could be reliable at which loss, and where the plan is."""

from pathlib import Path
from typing import Annotated, Any

import typer

from recordwise.cli.failing import AsJson, Debug, ends_well, plain_float
from recordwise.cli.plan_parts import (
    AcceptTuning,
    AtLeast,
    Complete,
    Data,
    Fitted,
    PlanPath,
    Plot,
    RankBy,
    Set,
    Statistics,
    Tables,
    by_measure,
    drawn,
    opened,
    owner_only,
    printed,
    save_plan,
    show_changes,
    told,
)


@ends_well
def frontier(
    plan_file: PlanPath,
    table: Tables = None,
    statistic: Statistics = None,
    at_least: AtLeast = None,
    rank_by: RankBy = "median",
    loss: Annotated[
        list[float] | None,
        typer.Option(parser=plain_float, help="A loss to show; may be repeated.", show_default=False),
    ] = None,
    median: Annotated[
        float | None,
        typer.Option(
            parser=plain_float, help="Find the best plan whose median loss is at most this.", show_default=False
        ),
    ] = None,
    p99: Annotated[
        float | None,
        typer.Option(parser=plain_float, help="The same for the 99th percentile.", show_default=False),
    ] = None,
    loss_at: Annotated[
        list[str] | None,
        typer.Option(
            metavar="RECORD:LOSS", help='The same for a record, such as "emp=100,payann=4000:1".', show_default=False
        ),
    ] = None,
    within_budget: Annotated[
        bool, typer.Option("--within-budget", help="The same for what is left of the plan's budget.")
    ] = False,
    fitted: Fitted = False,
    complete: Complete = False,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Write the table to a new CSV file; within losses, the plan to a new plan file.", show_default=False
        ),
    ] = None,
    accept_tuning: AcceptTuning = None,
    data: Data = "confidential",
    given: Set = None,
    plot: Plot = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Show the share of reliable cells against the loss of the records, with today's plan; or the best plan within some losses.

    Reliable is what the plan's status rules call so, by default a relative standard error of at most 16.5 %.
    """
    from recordwise.cli import screen
    from recordwise.errors import ParameterError
    from recordwise.planning.frontier import frontier as found_frontier
    from recordwise.planning.reliable_plan import most_reliable
    from recordwise.session import Session

    file = opened(plan_file, plot, given, data=data)
    if out is not None:
        _check_new(out)
    shared: dict[str, Any] = {
        "tables": table or (),
        "statistics": statistic or (),
        "rules": None if file.basic is None else file.basic.rules,
        "at_least": by_measure(at_least, "--at-least") or 0,
        "fitted": fitted,
        "complete": complete,
        "data": data,
    }
    limits: dict[str, Any] = {"median": median, "p99": p99, "at": _records(loss_at or []), "budget": within_budget}
    within_losses = any(limits.values())
    if within_losses and (plot or loss):
        raise ParameterError(
            parameter="--plot" if plot else "--loss",
            problem="is for the whole frontier, and a plan within losses is asked for",
            advice="Leave it out, or leave the limits out.",
        )
    with Session.from_plan(file, data=data) as session:
        if within_losses:
            best = most_reliable(session, file, **limits, **shared)
            return _show_best(best, file, out, accept_tuning=accept_tuning, as_json=as_json)
        found = found_frontier(session, file, rank_by=rank_by, losses=loss, **shared)
    if not printed(found, as_json):
        screen.heading(f"Share of the cells that are {found.status}, by the {rank_by} loss of the records")
        screen.table(*found.rows())
        screen.paragraph(found.words())
    if out is not None:
        owner_only(out, data)
        _write(out, *found.rows())
        told(f"wrote {out}", quiet=as_json)

    def draw() -> Any:
        from recordwise.planning.frontier_plot import plot_frontier

        return plot_frontier(found)

    drawn(plot, draw, quiet=as_json, data=data)
    return None


def _show_best(found: Any, file: Any, out: Path | None, *, accept_tuning: str | None, as_json: bool) -> None:
    """The most reliable plan within some losses, and its plan file."""
    from recordwise.cli import screen

    if not printed(found, as_json):
        screen.heading("The most reliable plan within these losses")
        screen.paragraph(found.words())
        screen.table(*found.rows())
        for each in found.notes():
            screen.note(each)
        show_changes(found)
    if out is not None:
        save_plan(found, file, out, accept_tuning=accept_tuning, quiet=as_json)


def _records(words: list[str]) -> list[tuple[dict[str, Any], float]]:
    """``emp=100,payann=4000:1`` is a record and the largest loss that it may have."""
    from recordwise.errors import ParameterError

    found = []
    for word in words:
        named, colon, limit = word.rpartition(":")
        pairs = [each.partition("=") for each in named.split(",")]
        if not colon or not all(equals and name for name, equals, _ in pairs):
            raise ParameterError(
                parameter="--loss-at", problem="is not of the form RECORD:LOSS", advice='Write "emp=100,payann=4000:1".'
            )
        record = {name.strip(): _value(value.strip()) for name, _, value in pairs}
        found.append((record, plain_float(limit)))
    return found


def _value(text: str) -> Any:
    """A number where it is written as one; a code with a leading zero is text."""
    return int(text) if text.isdecimal() and (text == "0" or not text.startswith("0")) else text


def _check_new(out: Path) -> None:
    from recordwise.errors import ParameterError

    if out.exists():
        raise ParameterError(parameter=str(out), problem="already exists", advice="Choose a new file.")


def _write(out: Path, headers: list[str], rows: list[list[str]]) -> None:
    import csv

    with out.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([headers, *rows])
