"""The command line: one file for each group of commands.

Commands import what they need when they run, so that help and completion are fast. Nothing imports this package.

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

from typing import Annotated

import typer

from recordwise.cli.ask import ask
from recordwise.cli.attack import attack
from recordwise.cli.audit import audit
from recordwise.cli.check import check, explain, preflight, rehearse
from recordwise.cli.demo import demo, init
from recordwise.cli.failing import document, run
from recordwise.cli.ledger import ledger
from recordwise.cli.loss import loss
from recordwise.cli.plan import plan
from recordwise.cli.published import change, export, postprocess
from recordwise.cli.release import release
from recordwise.cli.studio import studio

app = typer.Typer(
    name="recordwise",
    epilog="Exit codes: 0 success, 1 audit failed or unexpected error, 2 bad input or disk, 3 budget exceeded, "
    "4 released before, 130 interrupted.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
COMMANDS = (
    init,
    check,
    explain,
    rehearse,
    preflight,
    release,
    postprocess,
    export,
    change,
    ask,
    loss,
    demo,
    audit,
    attack,
    studio,
)
for command in COMMANDS:
    app.command()(command)
for group, name in ((app, ""), (ledger, "ledger"), (plan, "plan")):
    document(group, name)
app.add_typer(ledger, name="ledger")
app.add_typer(plan, name="plan")


def _print_version(wanted: bool) -> None:
    if wanted:
        import recordwise

        typer.echo(f"recordwise {recordwise.__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Publish statistics about skewed data with per-record privacy.

    The privacy loss is a public function of each record's value.
    """


def main() -> None:
    """The entry point of the ``recordwise`` script."""
    run(lambda: app(prog_name="recordwise"))
