"""``recordwise plan ...``: the commands that help choose mechanisms; they spend nothing."""

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recordwise.cli.failing import AsJson, Debug, ends_well, plain_float
from recordwise.cli.options import (
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
    TuningReason,
    Within,
    by_measure,
    drawn,
    lists_by_measure,
    loss_shares,
    opened,
    printed,
    quantile_rows,
    read_goals,
    save_plan,
    show_changes,
    told,
)

if TYPE_CHECKING:
    from recordwise.plan.file.read import PlanFile
    from recordwise.plan.query import Query


# ``recordwise plan fitness|allocate|recommend``: from accuracy goals for the tables of a plan to mechanisms.


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
    from recordwise.planning.search.fitness import fitness as fitted
    from recordwise.planning.search.goals import own_family, usual_families
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
    from recordwise.planning.search.allocate import allocate as allocated
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
    tuning_reason: TuningReason = None,
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
        screen.paragraph(found.summary())
        for each in found.notes():
            screen.note(each)
        show_changes(found)
    if out is not None:
        save_plan(found, file, out, tuning_reason=tuning_reason, quiet=as_json)
    drawn(plot, lambda: quantile_rows(found), quiet=as_json, data=data)


# ``recordwise plan frontier PLAN``: how many cells could be reliable at which loss, and where the plan is.


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
    tuning_reason: TuningReason = None,
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
    from recordwise.planning.frontier import most_reliable
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
            return _show_best(best, file, out, tuning_reason=tuning_reason, as_json=as_json)
        found = found_frontier(session, file, rank_by=rank_by, losses=loss, **shared)
    if not printed(found, as_json):
        screen.heading(f"Share of the cells that are {found.status}, by the {rank_by} loss of the records")
        screen.table(*found.rows())
        screen.paragraph(found.summary())
    if out is not None:
        found.save(out)
        told(f"wrote {out}", quiet=as_json)

    def draw() -> Any:
        from recordwise.planning.plots import plot_frontier

        return plot_frontier(found)

    drawn(plot, draw, quiet=as_json, data=data)
    return None


def _show_best(found: Any, file: Any, out: Path | None, *, tuning_reason: str | None, as_json: bool) -> None:
    """The most reliable plan within some losses, and its plan file."""
    from recordwise.cli import screen

    if not printed(found, as_json):
        screen.heading("The most reliable plan within these losses")
        screen.paragraph(found.summary())
        screen.table(*found.rows())
        for each in found.notes():
            screen.note(each)
        show_changes(found)
    if out is not None:
        save_plan(found, file, out, tuning_reason=tuning_reason, quiet=as_json)


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


# ``recordwise plan evaluate PLAN``: how far off the tables of a plan would be, for which cells and why, next to
# baselines.


CLAMPED, PERCENT, MULTIPLIED, RELEASE, PLAN = "clamped", "p-percent", "multiplicative", "release:", "plan:"


@ends_well
def evaluate(
    plan_file: PlanPath,
    metric: Annotated[
        str,
        typer.Option(
            help="relative_error, absolute_error, squared_error, bias, off_by_a_tenth, or your own as module:function."
        ),
    ] = "relative_error",
    by: Annotated[
        str | None,
        typer.Option(help="A key column, a level of a hierarchy, a prefix as county:2, or size.", show_default=False),
    ] = None,
    baseline: Annotated[
        list[str] | None,
        typer.Option(
            help="clamped, p-percent, multiplicative, release:FOLDER or plan:FILE; may be repeated.", show_default=False
        ),
    ] = None,
    clamp_to: Annotated[
        list[str] | None,
        typer.Option(metavar="MEASURE=BOUND", help="For clamped: the bound of a measure.", show_default=False),
    ] = None,
    rho: Annotated[str, typer.Option(help="For clamped: the loss of each count and sum.")] = "0.5",
    table: Tables = None,
    statistic: Statistics = None,
    fit: Annotated[
        str | None,
        typer.Option(help="Fit the tables: nnls, ols, max_fit, sequential, reweighted.", show_default=False),
    ] = None,
    draws: Annotated[int, typer.Option(help="How many releases are drawn.")] = 20,
    seed: Annotated[int, typer.Option(help="The seed of all noise, and of generated records.")] = 0,
    rows: Annotated[
        int | None, typer.Option(help="Generate so many records instead of reading the source.", show_default=False)
    ] = None,
    records: Annotated[
        Path | None,
        typer.Option(
            help="Other records to use instead of the source; confidential unless --data says.", show_default=False
        ),
    ] = None,
    data: Data = "confidential",
    given: Set = None,
    plot: Plot = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Show a metric of the cells by groups, where the error comes from, and the same for what the plan is compared with.

    Releases are drawn in memory from exact totals. Nothing is spent. What is computed from confidential records is confidential:
    it goes to a terminal only, and the plan's ledger notes the look.
    """
    from recordwise.cli import screen
    from recordwise.planning.simulate.evaluate import evaluate as evaluated
    from recordwise.planning.simulate.rehearse import on_other_records
    from recordwise.session import Session

    origin = data if rows is None or records is not None else "synthetic"
    file = opened(plan_file, plot, given, data=origin)
    with ExitStack() as stack:
        if rows is None and records is None:
            session = stack.enter_context(Session.from_plan(file, data=data))
        else:
            other = on_other_records(file, records=records, rows=rows, seed=seed, data=data, command="plan evaluate")
            _, session = stack.enter_context(other)
        found = evaluated(
            session,
            file,
            metric=read_metric(metric),
            by=read_by(by),
            baselines={name: read_baseline(name, file, clamp_to, rho) for name in baseline or ()},
            fit=read_fit(fit, file),
            tables=table or (),
            statistics=statistic or (),
            draws=draws,
            seed=seed,
            data=origin,
        )
    if not printed(found, as_json):
        screen.heading(f"Mean {found.metric.replace('_', ' ')} of the cells over {found.draws} draws")
        screen.table(*found.rows())
        screen.paragraph(
            "What each stage adds is how much the metric rises there: the parts add up to that of the plan."
        )
    drawn(plot, found.plot, quiet=as_json, data=origin)


def read_metric(text: str) -> Any:
    """A metric by its name, or a function of a module in the current folder or an installed one."""
    from importlib import import_module

    from recordwise.errors import ParameterError

    module, colon, name = text.partition(":")
    if not colon:
        return text
    sys.path.insert(0, "")
    try:
        found = getattr(import_module(module), name, None)
    except ImportError:
        raise ParameterError(
            parameter="--metric", problem=f"names the module '{module}', which cannot be imported"
        ) from None
    finally:
        sys.path.remove("")
    if not callable(found):
        raise ParameterError(parameter="--metric", problem=f"'{module}' has no function '{name}'")
    return found


def read_by(text: str | None) -> Any:
    """A column, or a prefix of one as ``county:2``."""
    from recordwise.plan.expressions import Prefix

    column, colon, length = (text or "").partition(":")
    return Prefix(column, int(length)) if colon and length.isdecimal() else text


def read_fit(method: str | None, file: "PlanFile") -> Any:
    """What is done to a release before it is published: as asked, or as the plan's basic tables are made."""
    asked = file.basic
    if method is not None:
        return lambda release: release.consistent(method=method)
    if asked is None:
        return None
    return lambda release: release.basic(fit=asked.fit, complete=asked.complete, units=asked.units, rules=asked.rules)


def read_baseline(text: str, file: "PlanFile", clamp_to: list[str] | None, rho: str) -> Any:
    """What the plan is compared with."""
    from recordwise.errors import ParameterError
    from recordwise.planning.compare import MultiplicativeNoise, PercentRule
    from recordwise.planning.simulate.baselines import clamped
    from recordwise.release.files import load_release

    if text == PERCENT:
        return PercentRule()
    if text == MULTIPLIED:
        return MultiplicativeNoise()
    if text == CLAMPED:
        return clamped(file, to=dict(map(_bound, clamp_to or ())), rho=rho)
    if text.startswith(RELEASE):
        return load_release(text.removeprefix(RELEASE))
    if text.startswith(PLAN):
        return _queries(text.removeprefix(PLAN))
    raise ParameterError(
        parameter="--baseline",
        problem=f"is not known: '{text}'",
        advice=f"Use {CLAMPED}, {PERCENT}, {MULTIPLIED}, {RELEASE}FOLDER or {PLAN}FILE.",
    )


def _queries(path: str) -> "tuple[Query, ...]":
    from recordwise.plan.file.read import load_plan

    return load_plan(path).plan.queries


def _bound(text: str) -> tuple[str, str]:
    from recordwise.errors import ParameterError

    name, equals, number = text.partition("=")
    if not equals or not name or not number:
        raise ParameterError(
            parameter="--clamp-to", problem="is not of the form MEASURE=BOUND", advice="Write --clamp-to emp=500."
        )
    return name, number


# ``recordwise plan compare|sweep``: mechanisms and thresholds side by side.


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
    from recordwise.planning.search.goals import usual_families
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
