"""``recordwise plan compare|sweep|fitness|recommend``: helps choose a mechanism before anything is spent."""

from pathlib import Path
from typing import Annotated, Any

import typer

from recordwise.cli.failing import AsJson, Debug, ends_well, plain_float
from recordwise.cli.plan_parts import (
    Set,
    compared_mechanisms,
    drawn,
    goals_of,
    loss_shares,
    opened,
    own_families,
    printed,
    quantile_rows,
    shape_of,
    told,
)

plan = typer.Typer(
    help="Choose a mechanism: compare, sweep, fitness, recommend. Costs no budget.", no_args_is_help=True
)

PlanPath = Annotated[
    Path, typer.Argument(help="A plan file: its table, its keys and the shape of a query.", show_default=False)
]
MeasureName = Annotated[str, typer.Option("--measure", help='A measure of the plan, or "count".', show_default=False)]
QueryNumber = Annotated[
    int, typer.Option("--query", help="The query of the plan that defines the cells, counting from 1.")
]
Data = Annotated[
    str,
    typer.Option(
        "--data", help="Origin of the records: confidential, past, synthetic or public. Results are labeled with it."
    ),
]
Plot = Annotated[
    list[Path] | None,
    typer.Option("--plot", help="Draw into a .png, .svg or .pdf file; may be repeated.", show_default=False),
]
Confidence = Annotated[
    float, typer.Option(parser=plain_float, help="Probability with which an error stays below the stated one.")
]
Offset = Annotated[
    str | None,
    typer.Option(
        help="The offset of the usual transforms; by default 100, or --at-total where that is given.",
        show_default=False,
    ),
]
Firms = Annotated[bool, typer.Option("--firms", help="Also show the joint losses of firms.")]


@plan.command()
@ends_well
def compare(
    plan_file: PlanPath,
    measure: MeasureName,
    query: QueryNumber = 1,
    variance: Annotated[
        str | None, typer.Option(help="Give all mechanisms the same variance (transforms: at --at-total).")
    ] = None,
    relative_error: Annotated[
        str | None, typer.Option(help="Give all mechanisms the same relative error at --at-total.")
    ] = None,
    at_total: Annotated[str | None, typer.Option(help="The total at which the variances or errors are equal.")] = None,
    offset: Offset = None,
    confidence: Confidence = 0.95,
    firms: Firms = False,
    realized: Annotated[
        bool, typer.Option("--realized", help="Also show the losses the records would actually incur in their cells.")
    ] = False,
    data: Data = "confidential",
    given: Set = None,
    plot: Plot = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Show losses of the records and errors of the cells by mechanism, next to suppression and EZS noise.

    Compares the plan's own mechanisms for the measure and, with --variance or --relative-error, the usual families at equal error.
    """
    from recordwise.cli import screen
    from recordwise.exact.text import share_text
    from recordwise.planning.candidates import families
    from recordwise.planning.compare import compare as compared
    from recordwise.session import Session

    file = opened(plan_file, plot, given)
    usual = families(offset=offset or at_total or 100) if variance or relative_error else {}
    chosen = compared_mechanisms(file, query, measure, usual)
    with Session.from_plan(file, data=data) as session:
        found = compared(
            session,
            chosen,
            measure=measure,
            query=shape_of(file, query),
            variance=variance,
            relative_error=relative_error,
            at_total=at_total,
            confidence=confidence,
            firms=firms,
            realized=realized,
            data=data,
        )
    if not printed(found, as_json):
        screen.heading(f"Losses of the records, and {share_text(confidence)} errors of the cells: {measure}")
        screen.table(*found.rows())
        if found.rules is not None:
            screen.heading("Effect of older disclosure rules on the same cells")
            screen.paragraph(found.rules.sentences())
    drawn(plot, lambda: loss_shares(found), quiet=as_json)


@plan.command()
@ends_well
def sweep(
    plan_file: PlanPath,
    measure: MeasureName,
    threshold: Annotated[list[str], typer.Option(help="A threshold; may be repeated.", show_default=False)],
    rho: Annotated[list[str], typer.Option(help="A loss at the threshold; may be repeated.", show_default=False)],
    query: QueryNumber = 1,
    data: Data = "confidential",
    given: Set = None,
    plot: Plot = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Compare unit splitting over thresholds and rho: cell errors against the share of records that lose more than rho."""
    from recordwise.cli import screen
    from recordwise.planning.sweep import sweep as swept
    from recordwise.session import Session

    file = opened(plan_file, plot, given)
    with Session.from_plan(file, data=data) as session:
        by = shape_of(file, query)
        found = swept(session, measure=measure, query=by, thresholds=threshold, rhos=rho, data=data)
    if not printed(found, as_json):
        screen.heading(f"Unit splitting of {measure}: expected relative error of the cells")
        screen.table(*found.rows())

    def draw() -> Any:
        from recordwise.planning.plots import plot_sweep

        return plot_sweep(found.curves(), measure=measure, privacy_label=found.privacy_label)

    drawn(plot, draw, quiet=as_json)


Measures = Annotated[
    list[str], typer.Option("--measure", help='A measure of the plan, or "count"; may be repeated.', show_default=False)
]
Within = Annotated[str, typer.Option(help="The largest relative error allowed, such as 0.1.", show_default=False)]
Share = Annotated[str, typer.Option(help="The share of the cells that must meet it.")]
AtLeast = Annotated[str, typer.Option(help="Cells with a smaller total do not count.")]


@plan.command()
@ends_well
def fitness(
    plan_file: PlanPath,
    measure: Measures,
    within: Within,
    confidence: Confidence = 0.95,
    share: Share = "1",
    at_least: AtLeast = "0",
    query: QueryNumber = 1,
    offset: Offset = None,
    firms: Firms = False,
    data: Data = "confidential",
    given: Set = None,
    plot: Plot = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Show the smallest policy of each family that makes every table of the query as accurate as required."""
    from recordwise.cli import screen
    from recordwise.planning.candidates import families
    from recordwise.planning.fitness import fitness as fitted
    from recordwise.session import Session

    file = opened(plan_file, plot, given)
    goals = goals_of(file, query, measure, within, confidence, share, at_least)
    candidates = own_families(file, query, measure) | families(offset=offset or 100)
    with Session.from_plan(file, data=data) as session:
        found = fitted(session, candidates, goals, firms=firms, data=data)
    if not printed(found, as_json):
        screen.heading("Losses of the records under the smallest policy of each family that meets the goals")
        for goal in goals:
            screen.paragraph(goal.words())
        screen.table(*found.rows())
        for name, why in found.infeasible.items():
            screen.note(f"{name}: {why}")
    drawn(plot, lambda: loss_shares(found), quiet=as_json)


@plan.command()
@ends_well
def recommend(
    plan_file: PlanPath,
    measure: Measures,
    within: Within,
    confidence: Confidence = 0.95,
    share: Share = "1",
    at_least: AtLeast = "0",
    query: QueryNumber = 1,
    rank_by: Annotated[str, typer.Option(help="Rank by the median, p99 or maximum loss of the records.")] = "p99",
    fitted: Annotated[
        bool, typer.Option("--fitted", help="Goals are about NAME_best, the best linear fit of all levels.")
    ] = False,
    complete: Annotated[bool, typer.Option("--complete", help="The public keys list every existing cell.")] = False,
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

    The new plan keeps the ledger, the budget and all other settings of the original.
    """
    from recordwise.cli import screen
    from recordwise.planning.recommend import recommend as recommended
    from recordwise.session import Session

    file = opened(plan_file, plot, given)
    goals = goals_of(file, query, measure, within, confidence, share, at_least)
    with Session.from_plan(file, data=data) as session:
        found = recommended(session, goals, rank_by=rank_by, fitted=fitted, complete=complete, data=data)
    if not printed(found, as_json):
        screen.heading(f"Families that meet the goals, smallest {rank_by} loss first")
        for goal in goals:
            screen.paragraph(goal.words())
        screen.table(*found.rows())
        for name, why in found.fitness.infeasible.items():
            screen.note(f"{name}: {why}")
        screen.paragraph(found.why())
    if out is not None:
        saved = found.save_like(plan_file, out, query=query, accept_tuning=accept_tuning, parameters=file.parameters)
        told(f"wrote {saved}; check it with: recordwise check {saved}", quiet=as_json)
    drawn(plot, lambda: quantile_rows(found), quiet=as_json)
