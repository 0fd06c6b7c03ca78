"""Shared parts of plan commands: plan input, mechanism choice, results."""

import re
import shlex
from collections.abc import Callable, Mapping
from fractions import Fraction
from inspect import Parameter, Signature
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recordwise.cli.failing import AsJson, Debug, ends_well, plain_float

if TYPE_CHECKING:
    from recordwise.plan.file.read import PlanFile
    from recordwise.policy.policy import Policy
    from recordwise.session import Session


PlanPath = Annotated[Path, typer.Argument(help="A plan file: its table, its keys and its queries.", show_default=False)]
Data = Annotated[
    str,
    typer.Option(
        "--data",
        help="What the records are: confidential, past, synthetic or public. Only public and synthetic ones are no look.",
    ),
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="NAME=VALUE", help="The value of ${NAME} in the plan; may be repeated.", show_default=False
    ),
]
Formula = Annotated[
    bool, typer.Option("--formula", help="Print every term, also where noise follows the sizes of many cells.")
]
BY_NAME, BY_MEASURE = "[NAME=]NUMBER", "[MEASURE=]NUMBER"


def option(kind: Any, help_text: str, *names: str, default: Any = None, **more: Any) -> tuple[Any, Any]:
    """Return an option's type, and its default if it has one."""
    shown = {} if default not in (None, ...) else {"show_default": False}
    kind = kind | None if default is None else kind
    return Annotated[kind, typer.Option(*names, help=help_text, **(shown | more))], default


def flag(name: str, help_text: str) -> tuple[Any, Any]:
    """Return the type and the default of an on-off option."""
    return Annotated[bool, typer.Option(name, help=help_text)], False


OPTIONS: dict[str, tuple[Any, Any]] = {
    "table": option(
        list[str],
        "A table to include, by its name or by the number or name of its query; may be repeated. All unless given.",
        "--table",
        metavar="NAME",
    ),
    "statistic": option(
        list[str],
        'A statistic to include, by its published name, its measure or "count"; may be repeated. All unless given.',
        "--statistic",
        metavar="NAME",
    ),
    "within": option(list[str], "The largest relative error allowed, such as 0.1.", default=..., metavar=BY_NAME),
    "confidence": option(
        float, "Probability with which an error stays below the stated one.", default=0.95, parser=plain_float
    ),
    "share": option(str, "The share of the cells of each table that must meet it.", default="1"),
    "at_least": option(
        list[str],
        "Cells with a smaller total do not count: for all statistics, or for one by its measure or name; may be repeated.",
        metavar=BY_NAME,
    ),
    "cells_of": option(
        list[str],
        "Cells that reach less do not count in the errors: a number for each published total, or by any statistic of the cell, "
        "such as count=100; may be repeated.",
        "--at-least",
        metavar=BY_NAME,
    ),
    "variance": option(
        list[str], "Give all mechanisms the same variance (transforms: at --at-total).", metavar=BY_MEASURE
    ),
    "relative_error": option(
        list[str], "Give all mechanisms the same relative error at --at-total.", metavar=BY_MEASURE
    ),
    "at_total": option(list[str], "The total at which the variances or errors are equal.", metavar=BY_MEASURE),
    "threshold": option(
        list[str],
        "A threshold of unit splitting, of one measure where the plan sums several; may be repeated.",
        metavar=BY_MEASURE,
    ),
    "clamp": option(
        list[str],
        "A bound at which contributions are cut, of one measure where the plan sums several; may be repeated.",
        metavar=BY_MEASURE,
    ),
    "rho": option(list[str], "A loss at the threshold or bound; may be repeated."),
    "offset": option(str, "The offset of the usual transforms; by default 100, or --at-total where that is given."),
    "firms": flag("--firms", "Also show the joint losses of firms."),
    "realized": flag("--realized", "Also show the losses the records would actually incur in their cells."),
    "rank_by": option(
        str,
        "The loss of the records by which plans are ranked: balanced (between median and p99), median, p99 or maximum.",
        default="balanced",
    ),
    "fitted": flag("--fitted", "The goals are about NAME_best, the best linear fit of all levels."),
    "complete": flag("--complete", "The public keys list every existing cell."),
    "clamps": flag("--clamps", "Also try clamping, at the best of ten public bounds; it is biased."),
    "keep_mechanisms": flag("--keep-mechanisms", "Only split what each query costs over its levels."),
    "new_budget": flag(
        "--new-budget", "Write a budget that covers the new plan and a revision, if nothing was charged yet."
    ),
    "by_table": flag("--by-table", "Give each statistic of each table its own noise, at the offsets stated."),
    "loss": option(list[float], "A loss to show; may be repeated.", parser=plain_float),
    "median": option(float, "Find the best plan whose median loss is at most this.", parser=plain_float),
    "p99": option(float, "The same for the 99th percentile.", parser=plain_float),
    "loss_at": option(list[str], 'The same for a record, such as "emp=100,payann=4000:1".', metavar="RECORD:LOSS"),
    "within_budget": flag("--within-budget", "The same for what is left of the plan's budget."),
    "out": option(Path, "Write the plan to a new plan file; a whole frontier, to a new CSV file."),
    "tuning_reason": option(str, "Why a plan tuned on confidential records may be released."),
    "metric": option(
        str,
        "relative_error, absolute_error, squared_error, bias, off_by_a_tenth, or your own as module:function.",
        default="relative_error",
    ),
    "by": option(str, "A key column, a level of a hierarchy, a prefix as county:2, or size."),
    "baseline": option(
        list[str],
        "suppression, coarsening, rounding, ranges, multiplicative, p-percent, clamped, release:FOLDER or plan:FILE; "
        "several with commas, or repeated.",
        "--baseline",
        "--against",
    ),
    "clamp_to": option(list[str], "For clamped: the bound of a measure.", metavar="MEASURE=BOUND"),
    "clamped_rho": option(str, "For clamped: the loss of each count and sum.", "--rho", default="0.5"),
    "fit": option(str, "Fit the tables: top_down, nnls, ols, max_fit, sequential, reweighted."),
    "draws": option(int, "How many releases are drawn.", default=20),
    "seed": option(int, "The seed of all noise, and of generated records.", default=0),
    "rows": option(int, "Generate this many records instead of reading the source."),
    "records": option(Path, "Other records to use instead of the source; confidential unless --data says."),
    "plot": option(list[Path], "Draw into a .png, .svg or .pdf file; may be repeated.", "--plot"),
}
"""The options of the plan commands: how each is written, and its default."""
EVERY = {"data": (Data, "confidential"), "given": (Set, None), "as_json": (AsJson, False), "debug": (Debug, False)}
"""The options that every plan command has."""


def plan_command(*names: str | tuple[str, Any]) -> Callable[[Callable[[SimpleNamespace], None]], Callable[..., None]]:
    """Make a function of what is asked for into a command of some options, by name or with another default."""
    chosen: dict[str, tuple[Any, Any]] = {"plan_file": (PlanPath, ...)}
    for each in names:
        name, own = (each, OPTIONS[each][1]) if isinstance(each, str) else each
        chosen[name] = (OPTIONS[name][0], own)
    chosen |= EVERY

    def made(run: Callable[[SimpleNamespace], None]) -> Callable[..., None]:
        def command(**given: Any) -> None:
            run(SimpleNamespace(**given))

        command.__name__, command.__doc__, command.__module__ = run.__name__, run.__doc__, run.__module__
        command.__annotations__ = {name: kind for name, (kind, _) in chosen.items()}
        command.__signature__ = Signature(  # type: ignore[attr-defined]
            [
                Parameter(name, Parameter.KEYWORD_ONLY, annotation=kind, default=Parameter.empty if own is ... else own)
                for name, (kind, own) in chosen.items()
            ]
        )
        return ends_well(command)

    return made


VIEWED = (
    "this was a look at confidential records, which the ledger notes: a release now needs tuning_reason, a reason that is "
    "published with it"
)
DECLARE = "If the records are public or generated, state --data public or --data synthetic; in Python, use recordwise.planning."


def read_goals(session: "Session", file: "PlanFile", options: SimpleNamespace) -> Any:
    """Return the goals that the command line states, by count and sum."""
    from recordwise.planning.search.goals import plan_goals

    return plan_goals(
        session,
        file,
        within=by_measure(options.within, "--within"),
        confidence=options.confidence,
        share=options.share,
        at_least=by_measure(options.at_least, "--at-least") or 0,
        tables=options.table or (),
        statistics=options.statistic or (),
    )


def load_with_parameters(
    path: Path, given: list[str] | None, *, budget: str | None = None, old_records: Path | None = None
) -> "PlanFile":
    """The plan, read and checked with the given values of its parameters, and with what else the options gave."""
    from recordwise.plan.file.read import load_plan

    return load_plan(path, parameters=given_values(given), budget=budget, old_records=old_records)


def given_values(given: list[str] | None) -> dict[str, str]:
    """The values that ``--set NAME=VALUE`` gives, by name."""
    from recordwise.errors import ParameterError

    values: dict[str, str] = {}
    for word in given or ():
        name, equals, text = word.partition("=")
        if not equals or not name:
            raise ParameterError(
                parameter="--set", problem="is not of the form NAME=VALUE", advice="Write --set year=2026."
            )
        if name in values:
            raise ParameterError(parameter=f"--set {name}", problem="is given twice", advice="Give each name once.")
        values[name] = text
    return values


def set_words(file: "PlanFile") -> str:
    """The options of a command that give a plan its parameters again."""
    return "".join(f" --set {name}={shlex.quote(value)}" for name, value in file.parameters.items())


def fits(options: SimpleNamespace) -> dict[str, bool | None]:
    """Whether errors are those of fitted levels: where it is asked for; None where the plan decides."""
    return {"fitted": options.fitted or None, "complete": options.complete or None}


def open_plan(path: Path, plots: list[Path] | None, given: list[str] | None, *, data: str) -> "PlanFile":
    """Return the checked plan; refuse bad plot files and confidential pipes."""
    from recordwise.errors import ParameterError
    from recordwise.plan.schema import NO_LOOK
    from recordwise.planning.result import outside_releases

    for each in plots or ():
        if each.suffix.lower() not in (".png", ".svg", ".pdf"):
            raise ParameterError(parameter="--plot", problem=f"{each.name} is not a .png, .svg or .pdf file")
        if data not in NO_LOOK:
            outside_releases(each)
    file = load_with_parameters(path, given)
    for_owner(data)
    return file


def for_owner(data: str = "confidential", *, advice: str = DECLARE) -> None:
    """Numbers computed from confidential records go to a terminal only."""
    from recordwise.cli import screen
    from recordwise.errors import ParameterError
    from recordwise.plan.schema import NO_LOOK
    from recordwise.planning.scope import read_origin

    if read_origin(data) not in NO_LOOK and not screen.on_terminal():
        raise ParameterError(
            parameter="standard output",
            problem="is not a terminal: what is computed from confidential records goes to a terminal only",
            advice=f"Nothing was read. {advice}".strip(),
        )


def by_measure(words: list[str] | None, option: str) -> Any:
    """Return one number for all statistics, or a mapping."""
    found = lists_by_measure(words or [], option)
    if isinstance(found, dict):
        return {name: _single(each, f"{option} {name}=") for name, each in found.items()}
    return _single(found, option) if found else None


def lists_by_measure(words: list[str], option: str) -> Any:
    """Return numbers for all statistics, or a mapping."""
    from recordwise.errors import ParameterError

    named = [word.partition("=") for word in words]
    if not any(equals for _, equals, _ in named):
        return words
    if not all(equals and name for name, equals, _ in named):
        raise ParameterError(parameter=option, problem="must be numbers, or all of the form NAME=NUMBER")
    found: dict[str, list[str]] = {}
    for name, _, number in named:
        found.setdefault(name, []).append(number)
    return found


def _single(numbers: list[str], option: str) -> str:
    from recordwise.errors import ParameterError

    if len(numbers) > 1:
        raise ParameterError(parameter=option, problem="is given twice", advice="Give it once, or NAME=NUMBER.")
    return numbers[0]


# Numbers that a person types about a record.


NO_BOUNDS: Mapping[str, Fraction] = {}
"""For a policy alone, which states no bound of a measure."""


def plain_number(name: str, text: str) -> str:
    """Return a number that can be read in only one way."""
    from recordwise.errors import ParameterError, value_text
    from recordwise.exact.numbers import rational

    if re.fullmatch(r"[+-]?[1-9]\d{0,2}\.\d{3}", text):
        advice = f"Write {text.replace('.', '')} or {text}0."
        raise ParameterError(parameter=name, problem=f"is ambiguous: {text}", advice=advice)
    if not re.fullmatch(r"[\w.+/-]*", text):
        advice = "Write digits and, if needed, a decimal point: 1200.5."
        raise ParameterError(parameter=name, problem=f"must be a plain number, not {value_text(text)}", advice=advice)
    rational(text, parameter=name)
    return text


def check_bound(policy: "Policy", name: str, value: Any, bounds: Mapping[str, Fraction]) -> None:
    """Refuse a value that no record of the release can have."""
    from recordwise.errors import ParameterError
    from recordwise.exact.text import exact_text
    from recordwise.plan.schema import LARGEST_BOUND_STEPS

    if name in bounds:
        bound, words = bounds[name], f"its public bound, {exact_text(bounds[name])}"
    else:
        step = min((each.step for each in policy.inputs() if each.name == name), default=Fraction(1))
        bound, words = step * LARGEST_BOUND_STEPS, "2^62 steps, which no measure may have"
    if abs(value) > bound:
        raise ParameterError(
            parameter=name,
            problem=f"is beyond {words}",
            advice="No record of the release has such a value: check its digits and its unit.",
        )


def check_steps(record: Mapping[str, Any], measures: Mapping[str, Any]) -> None:
    """Refuse a value between two steps, which no record of the release can have."""
    from recordwise.errors import ParameterError
    from recordwise.exact.text import exact_text

    for name, each in measures.items():
        if name in record and (Fraction(str(record[name])) / each.step).denominator != 1:
            wanted = "a whole number" if each.step == 1 else f"a whole multiple of {exact_text(each.step)}"
            raise ParameterError(
                parameter=name, problem=f"must be {wanted}", advice="No record of the release has another value."
            )


# What a command prints and writes.


def print_as_json(found: Any, as_json: bool) -> bool:
    """Print JSON if requested; otherwise print only the data label."""
    import json

    from recordwise.cli import screen

    if as_json:
        typer.echo(json.dumps(found.to_json()))
        return True
    screen.note(found.privacy_label)
    if found.privacy_label.startswith("CONFIDENTIAL"):
        screen.note(VIEWED)
    return False


def say(text: str, options: SimpleNamespace) -> None:
    """Print a line, unless JSON is asked for."""
    if not options.as_json:
        typer.echo(text)


def show_changes(found: Any) -> None:
    """What a recommended plan changes, table by table."""
    from recordwise.cli import screen
    from recordwise.planning.new_plan import HEADERS

    screen.heading("What changes in the plan")
    screen.table(HEADERS, [each.row() for each in found.changes()])


def save_plan(found: Any, file: "PlanFile", options: SimpleNamespace) -> None:
    """Write the resulting plan in the form of the examined one."""
    saved = found.save_like(file.path, options.out, tuning_reason=options.tuning_reason, parameters=file.parameters)
    say(f"wrote {saved}; check it with: recordwise check {saved}{set_words(file)}", options)
    if found.needs_budget:
        first = "" if file.budget is not None else "The plan had no budget: "
        say(f"{first}{'the' if first else 'The'} new one has a budget that covers it and a revision.", options)


def loss_shares(found: Any) -> Any:
    """Plot as many lines as distinguishable, the plan's mechanisms first."""
    from recordwise.planning.plots import MOST_LINES, plot_loss_shares

    return plot_loss_shares(dict(list(found.curves().items())[:MOST_LINES]), privacy_label=found.privacy_label)


def quantile_rows(found: Any) -> Any:
    from recordwise.planning.plots import plot_fitness

    ranking = found.ranking()
    quantiles = {
        "median": [each.losses.rho.quantile(0.5) for each in ranking],
        "99th percentile": [each.losses.rho.quantile(0.99) for each in ranking],
        "maximum": [each.losses.rho.maximum for each in ranking],
    }
    return plot_fitness([each.name for each in ranking], quantiles, privacy_label=found.privacy_label)


def save_figures(options: SimpleNamespace, draw: Callable[[], Any]) -> None:
    """Save one figure to every file, owner-only if confidential."""
    from recordwise.errors import ParameterError
    from recordwise.planning.result import owner_only

    if not options.plot:
        return
    try:
        figure = draw()
    except ModuleNotFoundError:
        raise ParameterError(
            parameter="--plot", problem="needs matplotlib", advice="Install recordwise[plots]."
        ) from None
    for path in options.plot:
        owner_only(path, options.data)
        figure.savefig(path)
        say(f"drew {path}", options)
