"""``recordwise plan fitness|allocate|recommend``: from accuracy goals for the tables of a plan to mechanisms."""

from pathlib import Path
from typing import Annotated, Any

import typer

from recordwise.cli.failing import AsJson, Debug, ends_well
from recordwise.cli.plan_parts import (
    AtLeast,
    Complete,
    Confidence,
    Data,
    Firms,
    Offset,
    PlanPath,
    Plot,
    Set,
    Share,
    Statistics,
    Tables,
    Within,
    by_measure,
    drawn,
    loss_shares,
    opened,
    printed,
    quantile_rows,
    told,
)


def _goals(session: Any, file: Any, **given: Any) -> Any:
    """The goals of all counts and sums that are meant, as stated on the command line."""
    from recordwise.planning.goals import plan_goals

    return plan_goals(
        session,
        file,
        within=by_measure(given["within"], "--within"),
        confidence=given["confidence"],
        share=given["share"],
        at_least=by_measure(given["at_least"], "--at-least") or 0,
        tables=given["table"] or (),
        statistics=given["statistic"] or (),
    )


def _say(goals: Any) -> None:
    from recordwise.cli import screen

    for words in dict.fromkeys(goal.words() for goal in goals):
        screen.paragraph(words)


@ends_well
def fitness(
    plan_file: PlanPath,
    within: Within,
    table: Tables = None,
    statistic: Statistics = None,
    confidence: Confidence = 0.95,
    share: Share = "1",
    at_least: AtLeast = None,
    offset: Offset = None,
    firms: Firms = False,
    data: Data = "confidential",
    given: Set = None,
    plot: Plot = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Show the smallest policy of each family that makes every table of the plan as accurate as required.

    Each statistic of each table gets its own noise; the plan's own mechanisms are one of the families.
    """
    from recordwise.cli import screen
    from recordwise.planning.fitness import fitness as fitted
    from recordwise.planning.plan_families import own_family, usual_families
    from recordwise.session import Session

    file = opened(plan_file, plot, given)
    with Session.from_plan(file, data=data) as session:
        goals = _goals(
            session,
            file,
            within=within,
            confidence=confidence,
            share=share,
            at_least=at_least,
            table=table,
            statistic=statistic,
        )
        candidates = own_family(file.plan, goals) | usual_families(file.plan, offset)
        found = fitted(session, candidates, goals, firms=firms, data=data)
    if not printed(found, as_json):
        screen.heading("Losses of the records under the smallest policy of each family that meets the goals")
        _say(goals)
        screen.table(*found.rows())
        for name, why in found.infeasible.items():
            screen.note(f"{name}: {why}")
    drawn(plot, lambda: loss_shares(found), quiet=as_json)


@ends_well
def allocate(
    plan_file: PlanPath,
    within: Within,
    table: Tables = None,
    statistic: Statistics = None,
    confidence: Confidence = 0.95,
    share: Share = "1",
    at_least: AtLeast = None,
    fitted: Annotated[
        bool, typer.Option("--fitted", help="Goals are about NAME_best, the best linear fit of all levels.")
    ] = False,
    complete: Complete = False,
    data: Data = "confidential",
    given: Set = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Split what each query costs over its levels so that its worst table is as close to its goal as possible.

    Mechanisms and losses stay as they are. An error / goal of at most 1 meets the goal.
    """
    from recordwise.cli import screen
    from recordwise.exact.text import figure
    from recordwise.planning.allocation import allocate as allocated
    from recordwise.session import Session

    file = opened(plan_file, None, given)
    with Session.from_plan(file, data=data) as session:
        goals = _goals(
            session,
            file,
            within=within,
            confidence=confidence,
            share=share,
            at_least=at_least,
            table=table,
            statistic=statistic,
        )
        found = allocated(session, file, goals, fitted=fitted, complete=complete, data=data)
    if not printed(found, as_json):
        screen.heading("The loss of each query, split over its levels")
        _say(goals)
        screen.table(*found.rows())
        screen.paragraph(f"The largest error is {figure(found.worst)} times its goal.")


@ends_well
def recommend(
    plan_file: PlanPath,
    within: Within,
    table: Tables = None,
    statistic: Statistics = None,
    confidence: Confidence = 0.95,
    share: Share = "1",
    at_least: AtLeast = None,
    rank_by: Annotated[str, typer.Option(help="Rank by the median, p99 or maximum loss of the records.")] = "p99",
    fitted: Annotated[
        bool, typer.Option("--fitted", help="Goals are about NAME_best, the best linear fit of all levels.")
    ] = False,
    complete: Complete = False,
    out: Annotated[
        Path | None, typer.Option(help="Write the recommended plan to a new file.", show_default=False)
    ] = None,
    accept_tuning: Annotated[
        str | None, typer.Option(help="Why a plan tuned on confidential records may be released.", show_default=False)
    ] = None,
    data: Data = "confidential",
    given: Set = None,
    plot: Plot = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Rank the families that meet accuracy goals by their cost to the records, and write the plan of the best.

    The new plan has every query, statistic and setting of the original, its ledger and its budget, and fits what is left of it.
    """
    from recordwise.cli import screen
    from recordwise.planning.changes import HEADERS
    from recordwise.planning.recommend import recommend as recommended
    from recordwise.session import Session

    file = opened(plan_file, plot, given)
    with Session.from_plan(file, data=data) as session:
        goals = _goals(
            session,
            file,
            within=within,
            confidence=confidence,
            share=share,
            at_least=at_least,
            table=table,
            statistic=statistic,
        )
        found = recommended(session, goals, plan=file, rank_by=rank_by, fitted=fitted, complete=complete, data=data)
    if not printed(found, as_json):
        screen.heading(f"Families that meet the goals, smallest {rank_by} loss first")
        _say(goals)
        screen.table(*found.rows())
        for name, why in found.fitness.infeasible.items():
            screen.note(f"{name}: {why}")
        screen.paragraph(found.why())
        for each in found.notes():
            screen.note(each)
        screen.heading("What changes in the plan")
        screen.table(HEADERS, [each.row() for each in found.changes()])
    if out is not None:
        saved = found.save_like(plan_file, out, accept_tuning=accept_tuning, parameters=file.parameters)
        told(f"wrote {saved}; check it with: recordwise check {saved}", quiet=as_json)
        if file.budget is None and found.advice is not None and found.advice.left.is_new:
            told("The plan had no budget: the new one has a budget that covers it once.", quiet=as_json)
    drawn(plot, lambda: quantile_rows(found), quiet=as_json)
