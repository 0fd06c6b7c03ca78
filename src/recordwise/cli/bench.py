"""``recordwise bench [NAME]``: runs the benchmarks of a checkout and reports ratios measured side by side."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from recordwise.cli.failing import Debug, ends_well
from recordwise.errors import ParameterError

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"


def names() -> list[str]:
    """The available benchmarks, one file each."""
    return sorted(path.stem for path in BENCHMARKS.glob("*.py") if not path.stem.startswith("__"))


@ends_well
def bench(
    name: Annotated[str | None, typer.Argument(help="A benchmark; all of them by default.", show_default=False)] = None,
    listed: Annotated[bool, typer.Option("--list", help="List the benchmarks and exit.")] = False,
    debug: Debug = False,
) -> None:
    """Measure recordwise against plain DuckDB, NumPy and its peers in one run. Needs a checkout."""
    known = names()
    if not known:
        raise ParameterError(
            parameter="bench", problem="needs a checkout: the benchmarks are not part of the installed package"
        )
    if listed:
        typer.echo("\n".join(known))
        return
    if name is not None and name not in known:
        raise ParameterError(parameter="NAME", problem=f"must be one of {', '.join(known)}, not {name}")
    sys.path.insert(0, str(BENCHMARKS.parent))
    from importlib import import_module

    sys.argv[1:] = []
    import_module("benchmarks.__main__").run([] if name is None else [name])
