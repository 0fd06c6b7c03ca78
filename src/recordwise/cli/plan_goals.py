"""``recordwise plan fitness|allocate|recommend``: from accuracy goals for the tables of a plan to mechanisms."""

from pathlib import Path
from typing import Annotated, Any

import typer

from recordwise.cli.failing import AsJson, Debug, ends_well
from recordwise.cli.plan_parts import (
    AcceptTuning,
    AtLeast,
    Complete,
    Confidence,
    Data,
    Firms,
    Fitted,
    Offset,
    PlanPath,
    Plot,
    RankBy,
    Set,
    Share,
    Statistics,
    Tables,
    Within,
    drawn,
    loss_shares,
    opened,
    printed,
    quantile_rows,
    read_goals,
    save_plan,
    show_changes,
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

    file = opened(plan_file, plot, given, data=data)
    with Session.from_plan(file, data=data) as session:
        goals = read_goals(session, file, within, confidence, share, at_least, table, statistic)
        candidates = own_family(file.plan, goals) | usual_families(file.plan, offset)
        found = fitted(session, candidates, goals, firms=firms, data=data)
    if not printed(found, as_json):
        screen.heading("Losses of the records under the smallest policy of each family that meets the goals")
        _say(goals)
        screen.table(*found.rows())
        for name, why in found.infeasible.items():
            screen.note(f"{name}: {why}")
    drawn(plot, lambda: loss_shares(found), quiet=as_json, data=data)


@ends_well
def allocate(
    plan_file: PlanPath,
    within: Within,
    table: Tables = None,
    statistic: Statistics = None,
    confidence: Confidence = 0.95,
    share: Share = "1",
    at_least: AtLeast = None,
    fitted: Fitted = False,
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

    file = opened(plan_file, None, given, data=data)
    with Session.from_plan(file, data=data) as session:
        goals = read_goals(session, file, within, confidence, share, at_least, table, statistic)
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
    rank_by: RankBy = "balanced",
    fitted: Fitted = False,
    complete: Complete = False,
    out: Annotated[
        Path | None, typer.Option(help="Write the recommended plan to a new file.", show_default=False)
    ] = None,
    accept_tuning: AcceptTuning = None,
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
    from recordwise.planning.recommend import recommend as recommended
    from recordwise.session import Session

    file = opened(plan_file, plot, given, data=data)
    with Session.from_plan(file, data=data) as session:
        goals = read_goals(session, file, within, confidence, share, at_least, table, statistic)
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
        show_changes(found)
    if out is not None:
        save_plan(found, file, out, accept_tuning=accept_tuning, quiet=as_json)
    drawn(plot, lambda: quantile_rows(found), quiet=as_json, data=data)
