"""``recordwise reproduce NAME``: the papers' figures and tables again, from a checkout's ``experiments`` folder."""

import sys
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from recordwise.cli.failing import Debug, ends_well
from recordwise.errors import ParameterError

EXPERIMENTS = Path(__file__).parents[3] / "experiments"


def names() -> list[str]:
    """The experiments there are: one folder each."""
    return sorted(path.parent.name for path in EXPERIMENTS.glob("*/run.py"))


@ends_well
def reproduce(
    name: Annotated[str | None, typer.Argument(help="An experiment, or all.", show_default=False)] = None,
    listed: Annotated[bool, typer.Option("--list", help="Name the experiments and stop.")] = False,
    runs: Annotated[int, typer.Option(min=1, help="Repetitions of each setting.")] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="Of the simulation's generator.")] = 20211,
    out: Annotated[Path | None, typer.Option(help="A folder for the numbers.")] = None,
    debug: Debug = False,
) -> None:
    """Run an experiment of the papers and print their numbers beside ours."""
    known = names()
    if not known:
        raise ParameterError(
            parameter="reproduce", problem="needs a checkout: the experiments are not part of the installed package"
        )
    if listed or name is None:
        typer.echo("\n".join(known))
        return
    if name != "all" and name not in known:
        raise ParameterError(parameter="NAME", problem=f"must be all or one of {', '.join(known)}, not {name}")
    sys.path.insert(0, str(EXPERIMENTS.parent))
    for each in known if name == "all" else [name]:
        folder = out if out is None or name != "all" else out / each
        import_module(f"experiments.{each}.run").main(runs=runs, seed=seed, out=folder)
