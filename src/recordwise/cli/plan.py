"""``recordwise plan compare|sweep|fitness|allocate|recommend|frontier|evaluate``: helps choose mechanisms; spends nothing."""

from typing import Annotated, Any

import typer

from recordwise.cli.evaluate import evaluate
from recordwise.cli.failing import AsJson, Debug, ends_well
from recordwise.cli.plan_frontier import frontier
from recordwise.cli.plan_goals import allocate, fitness, recommend
from recordwise.cli.plan_parts import (
    Confidence,
    Data,
    Firms,
    Offset,
    PlanPath,
    Plot,
    Set,
    Statistics,
    Tables,
    by_measure,
    drawn,
    lists_by_measure,
    loss_shares,
    opened,
    printed,
)

plan = typer.Typer(
    help="Choose mechanisms: compare, sweep, fitness, allocate, recommend, frontier, evaluate. Costs no budget.",
    no_args_is_help=True,
)


@plan.command()
@ends_well
def compare(
    plan_file: PlanPath,
    table: Tables = None,
    statistic: Statistics = None,
    variance: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[MEASURE=]NUMBER", help="Give all mechanisms the same variance (transforms: at --at-total)."
        ),
    ] = None,
    relative_error: Annotated[
        list[str] | None,
        typer.Option(metavar="[MEASURE=]NUMBER", help="Give all mechanisms the same relative error at --at-total."),
    ] = None,
    at_total: Annotated[
        list[str] | None,
        typer.Option(metavar="[MEASURE=]NUMBER", help="The total at which the variances or errors are equal."),
    ] = None,
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
    """Show losses of the records and errors of the cells in all tables of a plan, next to suppression and EZS noise.

    Shows the plan as it stands and, with --variance or --relative-error, the usual families at equal error.
    """
    from recordwise.cli import screen
    from recordwise.exact.text import share_text
    from recordwise.planning.compare import compare as compared
    from recordwise.planning.plan_families import usual_families
    from recordwise.session import Session

    file = opened(plan_file, plot, given, data=data)
    total = by_measure(at_total, "--at-total")
    usual = usual_families(file.plan, offset or total) if variance or relative_error else {}
    with Session.from_plan(file, data=data) as session:
        found = compared(
            session,
            usual,
            query=file,
            tables=table or (),
            statistics=statistic or (),
            variance=by_measure(variance, "--variance"),
            relative_error=by_measure(relative_error, "--relative-error"),
            at_total=total,
            confidence=confidence,
            firms=firms,
            realized=realized,
            data=data,
        )
    if not printed(found, as_json):
        what = "Losses of the records from all of it" if len(found.tables) > 1 else "Losses of the records"
        screen.heading(f"{what}, and {share_text(confidence)} errors of the cells: {found.measure}")
        screen.table(*found.rows())
        if len(found.tables) > 1:
            screen.heading(f"{share_text(confidence)} errors of the cells, table by table")
            screen.table(*found.table_rows())
        for name, told in found.rule_sentences():
            screen.heading(f"Effect of older disclosure rules on the cells of {name}")
            screen.paragraph(told)
    drawn(plot, lambda: loss_shares(found), quiet=as_json, data=data)


@plan.command()
@ends_well
def sweep(
    plan_file: PlanPath,
    threshold: Annotated[
        list[str],
        typer.Option(
            metavar="[MEASURE=]NUMBER",
            help="A threshold, of one measure where the plan sums several; may be repeated.",
            show_default=False,
        ),
    ],
    rho: Annotated[list[str], typer.Option(help="A loss at the threshold; may be repeated.", show_default=False)],
    table: Tables = None,
    statistic: Statistics = None,
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

    file = opened(plan_file, plot, given, data=data)
    with Session.from_plan(file, data=data) as session:
        found = swept(
            session,
            query=file,
            tables=table or (),
            statistics=statistic or (),
            thresholds=lists_by_measure(threshold, "--threshold"),
            rhos=rho,
            data=data,
        )
    if not printed(found, as_json):
        screen.heading(f"Unit splitting of {found.measure}: expected relative error of the cells")
        screen.table(*found.rows())

    def draw() -> Any:
        from recordwise.planning.plots import plot_sweep

        return plot_sweep(found.curves(), measure=found.measure, privacy_label=found.privacy_label)

    drawn(plot, draw, quiet=as_json, data=data)


plan.command()(fitness)
plan.command()(allocate)
plan.command()(recommend)
plan.command()(frontier)
plan.command()(evaluate)
