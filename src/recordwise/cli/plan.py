"""``recordwise plan ...``: the commands that help choose mechanisms; they spend nothing.

Each command is a function of what was asked for, made into a command of the options that it names (``options.OPTIONS``).
"""

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import typer

from recordwise.cli.failing import plain_float
from recordwise.cli.options import (
    by_measure,
    fits,
    lists_by_measure,
    loss_shares,
    open_plan,
    plan_command,
    print_as_json,
    quantile_rows,
    read_goals,
    save_figures,
    save_plan,
    say,
    show_changes,
)

if TYPE_CHECKING:
    from recordwise.plan.file.read import PlanFile
    from recordwise.plan.query import Query
    from recordwise.planning.search.shares import Allocation
    from recordwise.planning.sweep import Sweep

plan = typer.Typer(
    help="Choose mechanisms: compare, recommend, frontier, evaluate. Costs no budget.", no_args_is_help=True
)
SELECTED = ("table", "statistic")
GOAL = ("within", *SELECTED, "confidence", "share", "at_least")
LEVELS = ("fitted", "complete")
WRITTEN = ("out", "tuning_reason")


# ``recordwise plan compare``: mechanisms and thresholds side by side.


@plan.command()
@plan_command(
    *SELECTED,
    "cells_of",
    "variance",
    "relative_error",
    "at_total",
    "threshold",
    "clamp",
    "rho",
    "offset",
    "confidence",
    "firms",
    "realized",
    "plot",
)
def compare(options: SimpleNamespace) -> None:
    """Show losses of the records and errors of the cells in all tables of a plan, next to suppression and EZS noise.

    Shows the plan as it stands and, with --variance or --relative-error, the usual families at equal error. With --threshold and
    --rho, unit splitting at each of them: cell errors against the share of records that lose more than rho. With --clamp and --rho,
    clamping at each bound, and the bound with the least error.
    """
    from recordwise.cli import screen
    from recordwise.errors import ParameterError
    from recordwise.exact.text import share_text
    from recordwise.planning.compare import compare as compared
    from recordwise.planning.search.goals import usual_families
    from recordwise.session import Session

    if bool(options.threshold or options.clamp) != bool(options.rho):
        raise ParameterError(parameter="--rho", problem="must be given together with --threshold or --clamp")
    if options.plot and options.clamp and not options.threshold:
        raise ParameterError(parameter="--plot", problem="draws thresholds", advice="Give --threshold too.")
    file = open_plan(options.plan_file, options.plot, options.given, data=options.data)
    shared: dict[str, Any] = {"query": file, "tables": options.table or (), "statistics": options.statistic or ()}
    shared |= {"data": options.data, "at_least": by_measure(options.cells_of, "--at-least") or 0}
    total = by_measure(options.at_total, "--at-total")
    usual = usual_families(file.plan, options.offset or total) if options.variance or options.relative_error else {}
    with Session.from_plan(file, data=options.data) as session:
        if options.rho:
            grid = {
                "thresholds": lists_by_measure(options.threshold or [], "--threshold"),
                "clamps": lists_by_measure(options.clamp or [], "--clamp"),
            }
            return _show_grid(compared(session, rhos=options.rho, **grid, **shared), options)
        found = compared(
            session,
            usual,
            variance=by_measure(options.variance, "--variance"),
            relative_error=by_measure(options.relative_error, "--relative-error"),
            at_total=total,
            confidence=options.confidence,
            firms=options.firms,
            realized=options.realized,
            **shared,
        )
    if not print_as_json(found, options.as_json):
        what = "Losses of the records from all of it" if len(found.tables) > 1 else "Losses of the records"
        screen.heading(f"{what}, and {share_text(options.confidence)} errors of the cells: {found.measure}")
        screen.table(*found.rows())
        if len(found.tables) > 1:
            screen.heading(f"{share_text(options.confidence)} errors of the cells, table by table")
            screen.table(*found.table_rows())
        for name, words in found.rule_sentences():
            screen.heading(f"Effect of older disclosure rules on the cells of {name}")
            screen.paragraph(words)
    return save_figures(options, lambda: loss_shares(found))


def _show_grid(found: "Sweep", options: SimpleNamespace) -> None:
    """Print unit splitting, and clamping, over thresholds, bounds and rho."""
    from recordwise.cli import screen
    from recordwise.exact.text import figure, share_text

    if not print_as_json(found, options.as_json):
        screen.heading(f"{found.words()}: expected relative error of the cells")
        screen.table(*found.rows())
        for each in found.best_clamps():
            told = f"{each.measure}, rho {figure(each.rho)}: the least mean error is at a clamp of {figure(each.at)}"
            screen.note(f"{told}, {share_text(each.mean_error, 2)}.")

    def draw() -> Any:
        from recordwise.planning.plots import plot_sweep

        return plot_sweep(found.curves(), measure=found.measure, privacy_label=found.privacy_label)

    save_figures(options, draw)


# ``recordwise plan recommend``: from accuracy goals for the tables of a plan to mechanisms.


@plan.command()
@plan_command(
    *GOAL,
    "rank_by",
    *LEVELS,
    "clamps",
    "keep_mechanisms",
    "by_table",
    "offset",
    "firms",
    "new_budget",
    *WRITTEN,
    "plot",
)
def recommend(options: SimpleNamespace) -> None:
    """Rank the families that meet accuracy goals by their cost to the records, and write the plan of the best.

    The new plan has every query, statistic and setting of the original, its ledger and its budget, and fits what is left of it.
    With --keep-mechanisms only the split of what each query costs over its levels changes. With --by-table each statistic of each
    table gets its own noise, and the plan's own mechanisms are one of the families.
    """
    from recordwise.cli import screen
    from recordwise.errors import ParameterError
    from recordwise.planning.recommend import recommend as recommended
    from recordwise.planning.search.goals import families, own_family, usual_families
    from recordwise.session import Session

    if options.clamps and (options.by_table or options.keep_mechanisms):
        raise ParameterError(parameter="--clamps", problem="is for the families of a whole plan")
    for name, given in (("--out", options.out is not None), ("--new-budget", options.new_budget)):
        if given and (options.by_table or options.keep_mechanisms):
            raise ParameterError(parameter=name, problem="is for the plan of the best family")
    file = open_plan(options.plan_file, options.plot, options.given, data=options.data)
    with Session.from_plan(file, data=options.data) as session:
        goals = read_goals(session, file, options)
        shared: dict[str, Any] = {**fits(options), "data": options.data}
        if options.keep_mechanisms:
            return _show_split(recommended(session, goals, plan=file, keep_mechanisms=True, **shared), goals, options)
        shared |= {"rank_by": options.rank_by, "firms": options.firms}
        if options.by_table:
            candidates = own_family(file.plan, goals) | usual_families(file.plan, options.offset)
            found = recommended(session, goals, candidates=candidates, keep_offsets=True, **shared)
        else:
            found = recommended(
                session,
                goals,
                plan=file,
                candidates=families(clamps=True) if options.clamps else None,
                new_budget=options.new_budget,
                **shared,
            )
    if not print_as_json(found, options.as_json):
        screen.heading(f"Families that meet the goals, smallest {options.rank_by} loss first")
        _say(goals)
        screen.table(*found.rows())
        for name, why in found.infeasible.items():
            screen.note(f"{name}: {why}")
        screen.paragraph(found.summary())
        for each in found.notes():
            screen.note(each)
        if not options.by_table:
            show_changes(found)
    if options.out is not None:
        save_plan(found, file, options)
    return save_figures(options, lambda: quantile_rows(found))


def _say(goals: Any) -> None:
    from recordwise.cli import screen

    for words in dict.fromkeys(goal.words() for goal in goals):
        screen.paragraph(words)


def _show_split(found: "Allocation", goals: Any, options: SimpleNamespace) -> None:
    """Print the split for which the worst table of each query is as close to its goal as possible."""
    from recordwise.cli import screen
    from recordwise.exact.text import figure

    if not print_as_json(found, options.as_json):
        screen.heading("The loss of each query, split over its levels")
        _say(goals)
        screen.table(*found.rows())
        screen.paragraph(f"The largest error is {figure(found.worst)} times its goal.")


# ``recordwise plan frontier PLAN``: how many cells could be reliable at which loss, and where the plan is.


@plan.command()
@plan_command(
    *SELECTED,
    "at_least",
    ("rank_by", "median"),
    "loss",
    "median",
    "p99",
    "loss_at",
    "within_budget",
    *LEVELS,
    *WRITTEN,
    "plot",
)
def frontier(options: SimpleNamespace) -> None:
    """Show the share of reliable cells against the records' loss.

    With today's plan; or the best plan within some losses. Reliable is what the plan's status rules call so, by
    default a relative standard error of at most 16.5 %.
    """
    from recordwise.cli import screen
    from recordwise.errors import ParameterError
    from recordwise.planning.frontier import frontier as found_frontier
    from recordwise.planning.frontier import recommend_within
    from recordwise.session import Session

    file = open_plan(options.plan_file, options.plot, options.given, data=options.data)
    if options.out is not None and options.out.exists():
        raise ParameterError(parameter=str(options.out), problem="already exists", advice="Choose a new file.")
    shared: dict[str, Any] = {
        "tables": options.table or (),
        "statistics": options.statistic or (),
        "rules": None if file.basic is None else file.basic.rules,
        "at_least": by_measure(options.at_least, "--at-least") or 0,
        **fits(options),
        "data": options.data,
    }
    at = _records(options.loss_at or [])
    limits: dict[str, Any] = {"median": options.median, "p99": options.p99, "at": at, "budget": options.within_budget}
    within_losses = any(limits.values())
    if within_losses and (options.plot or options.loss):
        raise ParameterError(
            parameter="--plot" if options.plot else "--loss",
            problem="is for the whole frontier, and a plan within losses is asked for",
            advice="Leave it out, or leave the limits out.",
        )
    with Session.from_plan(file, data=options.data) as session:
        if within_losses:
            return _show_best(recommend_within(session, file, **limits, **shared), file, options)
        found = found_frontier(session, file, rank_by=options.rank_by, losses=options.loss, **shared)
    if not print_as_json(found, options.as_json):
        screen.heading(f"Share of the cells that are {found.status}, by the {options.rank_by} loss of the records")
        screen.table(*found.rows())
        screen.paragraph(found.summary())
    if options.out is not None:
        say(f"wrote {found.save(options.out)}", options)

    def draw() -> Any:
        from recordwise.planning.plots import plot_frontier

        return plot_frontier(found)

    return save_figures(options, draw)


def _show_best(found: Any, file: "PlanFile", options: SimpleNamespace) -> None:
    """Print the most reliable plan within some losses, and write it."""
    from recordwise.cli import screen

    if not print_as_json(found, options.as_json):
        screen.heading("The most reliable plan within these losses")
        screen.paragraph(found.summary())
        screen.table(*found.rows())
        for each in found.notes():
            screen.note(each)
        show_changes(found)
    if options.out is not None:
        save_plan(found, file, options)


def _records(words: list[str]) -> list[tuple[dict[str, Any], float]]:
    """``emp=100,payann=4000:1`` is a record and the largest loss that it may have."""
    from recordwise.errors import ParameterError

    found = []
    for word in words:
        named, colon, limit = word.rpartition(":")
        pairs = [each.partition("=") for each in named.split(",")]
        if not colon or not all(equals and name for name, equals, _ in pairs):
            raise ParameterError(
                parameter="--loss-at", problem="is not of the form RECORD:LOSS", advice='Write "NAME=100,OTHER=4000:1".'
            )
        record = {name.strip(): _value(value.strip()) for name, _, value in pairs}
        found.append((record, plain_float(limit)))
    return found


def _value(text: str) -> Any:
    """Return a number if written as one, otherwise the text."""
    return int(text) if text.isdecimal() and (text == "0" or not text.startswith("0")) else text


# ``recordwise plan evaluate PLAN``: how far off the tables of a plan would be, for which cells and why, next to
# baselines.


CLAMPED, PERCENT, MULTIPLIED, RELEASE, PLAN = "clamped", "p-percent", "multiplicative", "release:", "plan:"
SUPPRESSION, COARSENING, ROUNDING, RANGES = "suppression", "coarsening", "rounding", "ranges"


@plan.command()
@plan_command(
    "metric", "by", "baseline", "clamp_to", "clamped_rho", *SELECTED, "fit", "draws", "seed", "rows", "records", "plot"
)
def evaluate(options: SimpleNamespace) -> None:
    """Show a metric by groups of cells, and where errors arise.

    The same for what the plan is compared with. Releases are drawn in memory from exact totals. Nothing is spent.
    What is computed from confidential records is confidential: it goes to a terminal only, and the plan's ledger
    notes the look.
    """
    from recordwise.cli import screen
    from recordwise.planning.simulate.evaluate import evaluate as evaluated
    from recordwise.planning.simulate.rehearse import on_other_records
    from recordwise.session import Session

    given = {"records": options.records, "rows": options.rows, "seed": options.seed, "data": options.data}
    if options.rows is not None and options.records is None:
        options.data = "synthetic"
    file = open_plan(options.plan_file, options.plot, options.given, data=options.data)
    # Read before any record: what cannot be asked is no look.
    asked: dict[str, Any] = {
        "metric": read_metric(options.metric),
        "by": read_by(options.by),
        "baselines": {
            name: read_baseline(name, file, options.clamp_to, options.clamped_rho)
            for name in named_baselines(options.baseline or ())
        },
        "fit": read_fit(options.fit, file),
    }
    with ExitStack() as stack:
        if options.rows is None and options.records is None:
            session = stack.enter_context(Session.from_plan(file, data=options.data))
        else:
            _, session = stack.enter_context(on_other_records(file, command="plan evaluate", **given))
        found = evaluated(
            session,
            file,
            **asked,
            tables=options.table or (),
            statistics=options.statistic or (),
            draws=options.draws,
            seed=options.seed,
            data=options.data,
        )
    if not print_as_json(found, options.as_json):
        words = found.metric_words
        screen.heading(f"{words[:1].upper()}{words[1:]} of the cells over {found.draws} draws")
        headers, rows = found.rows()
        screen.table(headers, rows)
        if any(each.startswith("of it ") for each in headers):
            screen.paragraph(
                "What each stage adds is how much the metric rises there: the parts add up to that of the plan."
            )
    save_figures(options, found.plot)


def read_metric(text: str) -> Any:
    """Return a metric by its name, or a module's function."""
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
    """Return how a release is fitted: as requested, or as planned."""
    asked = file.basic
    if method is not None:
        return lambda release: release.consistent(method=method)
    if asked is None:
        return None
    return lambda release: release.basic(fit=asked.fit, complete=asked.complete, units=asked.units, rules=asked.rules)


def named_baselines(given: Sequence[str]) -> list[str]:
    """Return the names given, by option or with commas between them."""
    whole = (RELEASE, PLAN)
    return [
        name.strip()
        for text in given
        for name in ([text] if text.startswith(whole) else text.split(","))
        if name.strip()
    ]


def read_baseline(text: str, file: "PlanFile", clamp_to: list[str] | None, rho: str) -> Any:
    """What the plan is compared with."""
    from recordwise.disclosure.rules import Coarsening, PercentRule, Ranges, Rounding, Suppression, ThresholdRule
    from recordwise.errors import ParameterError
    from recordwise.planning.simulate.baselines import MultiplicativeNoise, clamped
    from recordwise.release.files import load_release

    rules = (PercentRule(), ThresholdRule())
    older = {
        PERCENT: PercentRule(),
        SUPPRESSION: Suppression(rules),
        COARSENING: Coarsening(rules),
        ROUNDING: Rounding(),
        RANGES: Ranges(rules),
    }
    if text in older:
        return older[text]
    if text == MULTIPLIED:
        return MultiplicativeNoise()
    if text == CLAMPED:
        return clamped(file, to=dict(map(_clamp_bound, clamp_to or ())), rho=rho)
    if text.startswith(RELEASE):
        return load_release(text.removeprefix(RELEASE))
    if text.startswith(PLAN):
        return _queries(text.removeprefix(PLAN))
    raise ParameterError(
        parameter="--against",
        problem=f"does not know '{text}'",
        advice=f"Use {', '.join(older)}, {CLAMPED}, {MULTIPLIED}, {RELEASE}FOLDER or {PLAN}FILE.",
    )


def _queries(path: str) -> "tuple[Query, ...]":
    from recordwise.plan.file.read import load_plan

    return load_plan(path).plan.queries


def _clamp_bound(text: str) -> tuple[str, str]:
    from recordwise.errors import ParameterError

    name, equals, number = text.partition("=")
    if not equals or not name or not number:
        raise ParameterError(
            parameter="--clamp-to", problem="is not of the form MEASURE=BOUND", advice="Write --clamp-to NAME=500."
        )
    return name, number
