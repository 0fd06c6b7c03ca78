"""What the plan commands share: reading the plan, choosing mechanisms, and showing results."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recordwise.cli.failing import plain_float

if TYPE_CHECKING:
    from recordwise.plan.file.read import PlanFile


PlanPath = Annotated[Path, typer.Argument(help="A plan file: its table, its keys and its queries.", show_default=False)]
Tables = Annotated[
    list[str] | None,
    typer.Option(
        "--table",
        metavar="NAME",
        help="A table that is meant, by its name or by the number or name of its query; may be repeated. All unless given.",
        show_default=False,
    ),
]
Statistics = Annotated[
    list[str] | None,
    typer.Option(
        "--statistic",
        metavar="NAME",
        help='A statistic that is meant, by its published name, its measure or "count"; may be repeated. All unless given.',
        show_default=False,
    ),
]
Data = Annotated[
    str,
    typer.Option(
        "--data",
        help="What the records are: confidential, past, synthetic or public. Only public and synthetic ones are no look.",
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
Within = Annotated[
    list[str],
    typer.Option(metavar="[NAME=]NUMBER", help="The largest relative error allowed, such as 0.1.", show_default=False),
]
Share = Annotated[str, typer.Option(help="The share of the cells of each table that must meet it.")]
AtLeast = Annotated[
    list[str] | None,
    typer.Option(
        metavar="[NAME=]NUMBER",
        help="Cells with a smaller total do not count: for all statistics, or for one by its measure or name; may be repeated.",
        show_default=False,
    ),
]
RankBy = Annotated[
    str,
    typer.Option(
        help="The loss of the records by which plans are ranked: balanced (between median and p99), median, p99 or maximum."
    ),
]
Fitted = Annotated[
    bool, typer.Option("--fitted", help="What is meant is NAME_best, the best linear fit of all levels.")
]
TuningReason = Annotated[
    str | None, typer.Option(help="Why a plan tuned on confidential records may be released.", show_default=False)
]
Complete = Annotated[bool, typer.Option("--complete", help="The public keys list every existing cell.")]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="NAME=VALUE", help="The value of ${NAME} in the plan; may be repeated.", show_default=False
    ),
]


VIEWED = (
    "this was a look at confidential records, which the ledger notes: a release now needs tuning_reason, a reason that is "
    "published with it"
)
DECLARE = "If the records are public or generated, state --data public or --data synthetic; in Python, use recordwise.planning."


def read_goals(
    session: Any,
    file: "PlanFile",
    within: list[str],
    confidence: float,
    share: str,
    at_least: list[str] | None,
    tables: list[str] | None,
    statistics: list[str] | None,
) -> Any:
    """The goals of all counts and sums that are meant, as stated on the command line."""
    from recordwise.planning.search.goals import plan_goals

    return plan_goals(
        session,
        file,
        within=by_measure(within, "--within"),
        confidence=confidence,
        share=share,
        at_least=by_measure(at_least, "--at-least") or 0,
        tables=tables or (),
        statistics=statistics or (),
    )


def loaded(path: Path, given: list[str] | None) -> "PlanFile":
    """The plan, read and checked with the given values of its parameters."""
    from recordwise.errors import ParameterError
    from recordwise.plan.file.read import load_plan

    values: dict[str, str | int] = {}
    for word in given or ():
        name, equals, text = word.partition("=")
        if not equals or not name:
            raise ParameterError(
                parameter="--set", problem="is not of the form NAME=VALUE", advice="Write --set year=2026."
            )
        if name in values:
            raise ParameterError(parameter=f"--set {name}", problem="is given twice", advice="Give each name once.")
        values[name] = text
    return load_plan(path, parameters=values)


def opened(path: Path, plots: list[Path] | None, given: list[str] | None, *, data: str) -> "PlanFile":
    """The plan, read and checked; a plot file that is not supported is refused first, and so is a pipe for confidential numbers."""
    from recordwise.errors import ParameterError

    for each in plots or ():
        if each.suffix.lower() not in (".png", ".svg", ".pdf"):
            raise ParameterError(parameter="--plot", problem=f"{each.name} is not a .png, .svg or .pdf file")
    file = loaded(path, given)
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
    """One number for all statistics, or a mapping from measures or published names (NAME=NUMBER)."""
    found = lists_by_measure(words or [], option)
    if isinstance(found, dict):
        return {name: _single(each, f"{option} {name}=") for name, each in found.items()}
    return _single(found, option) if found else None


def lists_by_measure(words: list[str], option: str) -> Any:
    """Numbers for all statistics, or a mapping from measures or published names to numbers."""
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


def printed(found: Any, as_json: bool) -> bool:
    """Print JSON if requested; otherwise print the data label and leave the rest to the command."""
    import json

    from recordwise.cli import screen

    if as_json:
        typer.echo(json.dumps(found.to_json()))
        return True
    screen.note(found.privacy_label)
    if found.privacy_label.startswith("CONFIDENTIAL"):
        screen.note(VIEWED)
    return False


def told(text: str, *, quiet: bool) -> None:
    if not quiet:
        typer.echo(text)


def show_changes(found: Any) -> None:
    """What a recommended plan changes, table by table."""
    from recordwise.cli import screen
    from recordwise.planning.new_plan import HEADERS

    screen.heading("What changes in the plan")
    screen.table(HEADERS, [each.row() for each in found.changes()])


def save_plan(found: Any, file: "PlanFile", out: Path, *, tuning_reason: str | None, quiet: bool) -> None:
    """Write the plan that was found as a plan file like the one that was examined."""
    saved = found.save_like(file.path, out, tuning_reason=tuning_reason, parameters=file.parameters)
    told(f"wrote {saved}; check it with: recordwise check {saved}", quiet=quiet)
    if found.needs_budget:
        told("The plan had no budget: the new one has a budget that covers it once.", quiet=quiet)


def loss_shares(found: Any) -> Any:
    """As many lines as can be distinguished, with the plan's own mechanisms first."""
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


def drawn(paths: list[Path] | None, draw: Callable[[], Any], *, quiet: bool, data: str) -> None:
    """Save one figure to every requested file; only its owner can read one that is drawn from confidential records."""
    from recordwise.errors import ParameterError
    from recordwise.planning.result import owner_only

    if not paths:
        return
    try:
        figure = draw()
    except ModuleNotFoundError:
        raise ParameterError(
            parameter="--plot", problem="needs matplotlib", advice="Install recordwise[plots]."
        ) from None
    for path in paths:
        owner_only(path, data)
        figure.savefig(path)
        told(f"drew {path}", quiet=quiet)
