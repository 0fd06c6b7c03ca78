"""What the plan commands share: reading the plan, choosing mechanisms, and showing results."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from recordwise.plan.file.read import PlanFile
    from recordwise.plan.query import Query


Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="NAME=VALUE", help="The value of ${NAME} in the plan; may be repeated.", show_default=False
    ),
]


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


def opened(path: Path, plots: list[Path] | None, given: list[str] | None) -> "PlanFile":
    """The plan, read and checked; an unsupported plot file is refused before records are read."""
    from recordwise.errors import ParameterError

    for each in plots or ():
        if each.suffix.lower() not in (".png", ".svg", ".pdf"):
            raise ParameterError(parameter="--plot", problem=f"{each.name} is not a .png, .svg or .pdf file")
    return loaded(path, given)


def shape_of(file: "PlanFile", number: int) -> "Query":
    from recordwise.errors import ParameterError

    if not 1 <= number <= len(file.plan.queries):
        raise ParameterError(parameter="--query", problem=f"must be a number from 1 to {len(file.plan.queries)}")
    return file.plan.queries[number - 1]


def compared_mechanisms(file: "PlanFile", number: int, measure: str, usual: dict[str, Any]) -> dict[str, Any]:
    """The plan's own mechanisms for a measure, by the names of their statistics, and at equal error the usual families too."""
    from recordwise.errors import ParameterError

    own = own_mechanisms(file, number, measure)
    if not own and not usual:
        raise ParameterError(
            parameter="--measure",
            problem=f"'{measure}' has no mechanism in query {number}",
            advice="Give --variance or --relative-error to compare the usual families.",
        )
    return own if measure == "count" else own | usual


def own_mechanisms(file: "PlanFile", number: int, measure: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for statistic in shape_of(file, number).draws():
        if statistic.planned_as == measure:
            found[statistic.alias] = statistic.mechanism
    return found


def own_families(file: "PlanFile", number: int, measures: list[str]) -> dict[str, Any]:
    """The plan's own mechanisms as families, if a single measure is requested; their noise is recalibrated."""
    if len(measures) != 1:
        return {}
    return {f"{name} (of the plan)": each for name, each in own_mechanisms(file, number, measures[0]).items()}


def goals_of(
    file: "PlanFile", number: int, measures: list[str], within: str, confidence: float, share: str, at_least: str
) -> list[Any]:
    from recordwise.planning.goals import Goal

    by = shape_of(file, number)
    return [Goal(each, by, within=within, confidence=confidence, share=share, at_least=at_least) for each in measures]


def printed(found: Any, as_json: bool) -> bool:
    """Print JSON if requested; otherwise print the data label and leave the rest to the command."""
    import json

    from recordwise.cli import screen

    if as_json:
        typer.echo(json.dumps(found.to_json()))
        return True
    screen.note(found.privacy_label)
    return False


def told(text: str, *, quiet: bool) -> None:
    if not quiet:
        typer.echo(text)


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


def drawn(paths: list[Path] | None, draw: Callable[[], Any], *, quiet: bool) -> None:
    """Save one figure to every requested file."""
    from recordwise.errors import ParameterError

    if not paths:
        return
    try:
        figure = draw()
    except ModuleNotFoundError:
        raise ParameterError(
            parameter="--plot", problem="needs matplotlib", advice="Install recordwise[plots]."
        ) from None
    for path in paths:
        figure.savefig(path)
        told(f"drew {path}", quiet=quiet)
