"""``recordwise plan evaluate PLAN``: how far off the tables of a plan would be, for which cells, why, and beside what else."""

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recordwise.cli.failing import AsJson, Debug, ends_well
from recordwise.cli.plan_parts import Data, PlanPath, Plot, Set, Statistics, Tables, drawn, opened, printed

if TYPE_CHECKING:
    from recordwise.plan.file.read import PlanFile
    from recordwise.plan.query import Query

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
    from recordwise.planning.evaluate import evaluate as evaluated
    from recordwise.planning.other_records import on_other_records
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
    from recordwise.plan.fields import Prefix

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
    from recordwise.planning.disclosure import MultiplicativeNoise, PercentRule
    from recordwise.planning.rivals import clamped
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
