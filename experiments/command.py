"""``python -m experiments NAME``: reproduces the papers' figures and tables one folder each."""

import ast
import time
import warnings
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer

from recordwise.cli.failing import Debug, ends_well, message
from recordwise.cli.screen import Tell, heading, note, paragraph, progress, table
from recordwise.errors import ExtraError, ParameterError, UnkeptLedgerWarning

EXPERIMENTS = Path(__file__).parent
SEED = 20211
OUT = Path("reproductions")


def names() -> list[str]:
    """The available experiments, one folder each, as the command spells them: split_fig1 is split-fig1."""
    return sorted(path.parent.name.replace("_", "-") for path in EXPERIMENTS.glob("*/run.py"))


def description(name: str) -> str:
    """The first line of the folder's docstring, read without running anything."""
    text = (EXPERIMENTS / name.replace("-", "_") / "__init__.py").read_text(encoding="utf-8")
    return (ast.get_docstring(ast.parse(text)) or "").partition("\n")[0]


@ends_well
def reproduce(
    name: Annotated[str | None, typer.Argument(help="An experiment, or all.", show_default=False)] = None,
    listed: Annotated[bool, typer.Option("--list", help="List the experiments and exit.")] = False,
    runs: Annotated[
        int | None,
        typer.Option(
            min=1, help="Repetitions of each setting; each experiment has its own default.", show_default=False
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the simulation's generator.")] = SEED,
    out: Annotated[
        Path | None,
        typer.Option(
            help="A folder for numbers, figures and the page; reproductions/NAME by default.", show_default=False
        ),
    ] = None,
    debug: Debug = False,
) -> None:
    """Run an experiment of the papers; write its numbers, figures and a page comparing their claims with ours."""
    known = names()
    if listed or name is None:
        table(("experiment", "what it does"), [(each, description(each)) for each in known])
        return
    if name != "all" and name not in known:
        raise ParameterError(parameter="NAME", problem=f"must be all or one of {', '.join(known)}, not {name}")
    if find_spec("matplotlib") is None:
        raise ExtraError(what="reproducing a figure", extra="plots")
    if name == "all":
        _run_all(known, runs, seed, out or OUT, debug=debug)
    else:
        done, _ = _run(name, runs, seed, out or OUT / name)
        _show(done, out or OUT / name)


def _run(name: str, runs: int | None, seed: int, folder: Path) -> tuple[Any, float]:
    """Run one experiment and write its files; returns how long it took."""
    module = import_module(f"experiments.{name.replace('-', '_')}.run")
    started = time.perf_counter()
    with progress(module.STEPS) as tell, warnings.catch_warnings():
        # The records are public or generated: no budget is at stake.
        warnings.simplefilter("ignore", UnkeptLedgerWarning)
        done = module.reproduce(runs=runs or module.RUNS, seed=seed, tell=_named(name, tell))
    seconds = time.perf_counter() - started
    import_module("experiments.frame").write(done, folder, seconds=seconds)
    return done, seconds


def _named(name: str, tell: Tell) -> Tell:
    return lambda doing: tell(f"{name}: {doing}")


def _run_all(known: list[str], runs: int | None, seed: int, out: Path, *, debug: bool) -> None:
    """Run every experiment. If one fails, the others still run, and the command exits with an error."""
    done: dict[str, Any] = {}
    seconds: dict[str, float] = {}
    for each in known:
        try:
            done[each], seconds[each] = _run(each, runs, seed, out / each)
        except Exception as error:
            if debug:
                raise
            done[each] = message(error)
    import_module("experiments.frame").write_index(out, done, seconds)
    _show_all(done, seconds, out)
    if any(isinstance(each, str) for each in done.values()):
        raise typer.Exit(1)


def _show(done: Any, folder: Path) -> None:
    """Print the claims."""
    heading(done.title)
    paragraph(done.data)
    for claim in done.claims:
        typer.echo("")
        paragraph(claim.statement)
        paragraph(f"paper: {claim.paper}", indent=2)
        paragraph(f"ours:  {claim.ours}", indent=2)
        if claim.agrees is True:
            paragraph(claim.verdict + (f": {claim.why}" if claim.why else ""), indent=2)
        else:
            note(f"{claim.verdict}: {claim.why}")
    typer.echo("")
    paragraph(f"Numbers, figures and the page are in {folder}: open {folder / 'reproduction.html'}.")


def _show_all(done: dict[str, Any], seconds: dict[str, float], out: Path) -> None:
    rows = []
    for name, each in done.items():
        if isinstance(each, str):
            rows.append((name, "failed", ""))
            note(f"{name} failed: {each}")
            continue
        agree = sum(claim.agrees is True for claim in each.claims)
        rows.append((name, f"{agree} of {len(each.claims)}", str(round(seconds[name]))))
    table(("experiment", "claims that agree", "seconds"), rows)
    paragraph(f"All pages are listed in {out / 'index.html'}.")
