"""``recordwise plan frontier PLAN``: how many cells could be reliable at which loss, and where the plan is."""

from pathlib import Path
from typing import Annotated, Any

import typer

from recordwise.cli.failing import AsJson, Debug, ends_well, plain_float
from recordwise.cli.plan_parts import (
    AtLeast,
    Complete,
    Data,
    PlanPath,
    Plot,
    Set,
    Statistics,
    Tables,
    by_measure,
    drawn,
    opened,
    printed,
    told,
)


@ends_well
def frontier(
    plan_file: PlanPath,
    table: Tables = None,
    statistic: Statistics = None,
    at_least: AtLeast = None,
    rank_by: Annotated[str, typer.Option(help="The loss that is shown: median, p99 or maximum.")] = "median",
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
    fitted: Annotated[
        bool, typer.Option("--fitted", help="Cells are those of NAME_best, the best linear fit of all levels.")
    ] = False,
    complete: Complete = False,
    out: Annotated[Path | None, typer.Option(help="Write the table to a new CSV file.", show_default=False)] = None,
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
    from recordwise.planning.frontier import frontier as found_frontier
    from recordwise.session import Session

    file = opened(plan_file, plot, given)
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
    limits = {"median": median, "p99": p99, "at": _records(loss_at or []), "budget": within_budget}
    with Session.from_plan(file, data=data) as session:
        if any(limits.values()):
            return _show_best(session, file, limits, shared, as_json=as_json)
        found = found_frontier(session, file, rank_by=rank_by, losses=loss, **shared)
    if not printed(found, as_json):
        screen.heading(f"Share of the cells that are {found.status}, by the {rank_by} loss of the records")
        screen.table(*found.rows())
        screen.paragraph(found.words())
    if out is not None:
        _write(out, *found.rows())
        told(f"wrote {out}", quiet=as_json)

    def draw() -> Any:
        from recordwise.planning.frontier_plot import plot_frontier

        return plot_frontier(found)

    drawn(plot, draw, quiet=as_json)
    return None


def _show_best(session: Any, file: Any, limits: dict[str, Any], shared: dict[str, Any], *, as_json: bool) -> None:
    """The most reliable plan within some losses."""
    import json

    from recordwise.cli import screen
    from recordwise.exact.text import figure, share_text
    from recordwise.planning.changes import HEADERS, changes
    from recordwise.planning.frontier import most_reliable, point_json
    from recordwise.planning.offsets import RANKS
    from recordwise.planning.origin import mark_of
    from recordwise.planning.reliable import class_names

    found = most_reliable(session, file, **limits, **shared)
    label, changed = mark_of(shared["data"]), changes(file.plan.queries, found.queries)
    if as_json:
        typer.echo(
            json.dumps({"privacy_label": label, **point_json(found), "changes": [each.row() for each in changed]})
        )
        return
    screen.note(label)
    losses = ", ".join(f"{name} {figure(found.loss(name))}" for name in RANKS)
    screen.heading(f"The most reliable plan within these losses: {found.name}")
    screen.paragraph(f"Losses: {losses}. Reliable: {share_text(found.reliable.share, 1)} of the cells.")
    rows = [[name, share_text(each, 1)] for name, each in zip(class_names(), found.reliable.by_class) if each == each]
    screen.table(["cells of", "reliable"], rows)
    screen.heading("What changes in the plan")
    screen.table(HEADERS, [each.row() for each in changed])


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
