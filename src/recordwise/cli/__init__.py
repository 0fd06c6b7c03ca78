"""The command line: one file for each group of commands.

Commands import what they need when they run, and the entry point loads the file of one command alone. Nothing imports this package.

In reading order:

- ``screen``: tables and colors on a terminal, plain lines in a pipe, progress on standard error
- ``failing``: messages, exit codes, interrupts and the manual
- ``options``: the options of the plan commands, reading a plan, showing results
- ``demo``: recordwise demo and init
- ``check``: check, explain, preflight and rehearse
- ``plan``: plan compare, recommend, frontier and evaluate
- ``release``: release a plan once, and rescue what a crash left
- ``published``: postprocess, export and change: what is done with a published folder
- ``ask``: ask: totals of a published folder with their errors
- ``loss``: loss: what an establishment, a firm or a history of periods loses
- ``ledger``: ledger show and verify
- ``audit``: audit
- ``attack``: attack: what published tables without noise give away
- ``studio``: studio: choosing on a screen
"""

import atexit
import gc
import os
import sys
from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recordwise.cli.failing import document, hold_streams, run

if TYPE_CHECKING:
    app: typer.Typer

HOMES = {
    "init": "demo",
    "check": "check",
    "explain": "check",
    "rehearse": "check",
    "preflight": "check",
    "release": "release",
    "postprocess": "published",
    "export": "published",
    "change": "published",
    "ask": "ask",
    "loss": "loss",
    "demo": "demo",
    "audit": "audit",
    "attack": "attack",
    "studio": "studio",
    "ledger": "ledger",
    "plan": "plan",
}
"""The file of each command, or group of commands."""
OBJECTS = 100_000
"""New objects before the interpreter looks for garbage; by itself it does so after 700."""
COMPLETING = "_RECORDWISE_COMPLETE"
"""What a shell sets when it asks for the names of commands and options."""


def _print_version(wanted: bool) -> None:
    if wanted:
        import recordwise

        typer.echo(f"recordwise {recordwise.__version__}")
        raise typer.Exit


def _top(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Publish statistics about skewed data with per-record privacy.

    The privacy loss is a public function of each record's value.
    """


def app_of(names: Iterable[str]) -> typer.Typer:
    """Return the command line with some of its commands."""
    made = typer.Typer(
        name="recordwise",
        epilog="Exit codes: 0 success, 1 audit failed or unexpected error, 2 bad input or disk, 3 budget exceeded, "
        "4 released before, 130 interrupted.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    made.callback()(_top)
    for name in names:
        command: Any = getattr(import_module(f"recordwise.cli.{HOMES[name]}"), name)
        if isinstance(command, typer.Typer):
            document(command, name)
            made.add_typer(command, name=name)
        else:
            made.command()(command)
    document(made, "")
    return made


def __getattr__(name: str) -> Any:
    if name != "app":
        raise AttributeError(f"module 'recordwise.cli' has no attribute {name!r}")
    globals()["app"] = app_of(HOMES)
    return globals()["app"]


def _leave() -> None:
    """Skip the last search for garbage, which takes another tenth.

    DuckDB, where it is loaded, would report what is left as leaked.
    """
    if "_duckdb" not in sys.modules:
        gc.freeze()


def main() -> None:
    """Run the ``recordwise`` script, loading the file of one command alone."""
    hold_streams()
    # Imports and files of JSON make many objects and no garbage: looking for it takes a tenth of a short command.
    gc.set_threshold(OBJECTS)
    atexit.register(_leave)
    named = [name for name in sys.argv[1:2] if name in HOMES and COMPLETING not in os.environ]
    run(lambda: app_of(named or HOMES)(prog_name="recordwise"))
