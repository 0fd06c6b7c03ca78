"""``recordwise studio [PLAN]``: choose on a screen, in a browser on this machine."""

from pathlib import Path
from typing import Annotated

import typer

from recordwise.cli.failing import Debug, ends_well
from recordwise.cli.options import Data, Set, given_values, load_with_parameters


@ends_well
def studio(
    plan: Annotated[
        Path | None,
        typer.Argument(help="A plan file; without one, a file of records is chosen first.", show_default=False),
    ] = None,
    records: Annotated[
        Path | None,
        typer.Option(
            "--records",
            help="Records to try the plan on, confidential unless --data says otherwise; generated without.",
        ),
    ] = None,
    data: Data = "confidential",
    given: Set = None,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Print the address and open no browser.")] = False,
    debug: Debug = False,
) -> None:
    """Choose mechanisms and accuracy on a screen, and hand over a plan.

    A server for one browser on this machine. It releases nothing, and ends when it is interrupted or not used for an hour.
    """
    from recordwise.errors import ParameterError
    from recordwise.plan.sources import matching_files
    from recordwise.studio.desk import Desk, Subject
    from recordwise.studio.server import serve

    if plan is None and records is not None:
        raise ParameterError(
            parameter="--records", problem="needs a plan", advice="Write recordwise studio PLAN --records FILE."
        )
    values = given_values(given)
    if plan is None and values:
        raise ParameterError(parameter="--set", problem="needs a plan", advice="Write recordwise studio PLAN --set ...")
    subject = None if plan is None else Subject(plan=plan, records=records, declared=data, parameters=values)
    if plan is not None:
        # What is wrong with it is said here, before anything is served.
        load_with_parameters(plan, given)
    if records is not None:
        # A look is entered in the ledger before they are read, and stays there.
        matching_files(str(records))
    folder = Path.cwd() if plan is None else plan.resolve().parent
    serve(Desk(folder=folder, subject=subject), browser=not no_browser, tell=typer.echo)
