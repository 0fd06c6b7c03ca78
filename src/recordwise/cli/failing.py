"""How a command fails: with a message and an exit code, and a traceback only if requested."""

import functools
import json
import sys
from collections.abc import Callable
from typing import Annotated, Any, NoReturn, ParamSpec, TypeVar

import typer

from recordwise.cli.interrupts import INTERRUPTED, STOPPED
from recordwise.errors import AlreadyReleasedError, BudgetError, PlanFileError, RecordwiseError

BAD_INPUT = 2
BUDGET_REFUSED = 3
ALREADY = 4
"""The same release was charged before; nothing was charged."""
UNEXPECTED = 1

Debug = Annotated[bool, typer.Option("--debug", help="Show the full traceback of an error.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]


def plain_float(text: str | float) -> float:
    """A number given to an option. Unlike Python's float(), it accepts neither underscores nor non-ASCII digits."""
    if not str(text).isascii() or "_" in str(text):
        raise ValueError("not plain digits")
    return float(text)


P = ParamSpec("P")
T = TypeVar("T")


def ends_well(command: Callable[P, T]) -> Callable[P, T]:
    """Wrap a command so that failures become a message on standard error and an exit code."""

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        if kwargs.get("debug"):
            return command(*args, **kwargs)
        try:
            return command(*args, **kwargs)
        except KeyboardInterrupt:
            print(f"recordwise: {STOPPED}", file=sys.stderr)
            raise typer.Exit(INTERRUPTED) from None
        except (typer.Exit, typer.Abort, BrokenPipeError):
            raise
        except Exception as error:
            _stop(error, as_json=bool(kwargs.get("as_json")))

    return run


def _stop(error: Exception, *, as_json: bool) -> NoReturn:
    if as_json:
        typer.echo(json.dumps(error_json(error)))
    else:
        print(f"recordwise: {message(error)}", file=sys.stderr)
    raise typer.Exit(exit_code(error)) from None


def exit_code(error: Exception) -> int:
    if isinstance(error, BudgetError):
        return BUDGET_REFUSED
    if isinstance(error, AlreadyReleasedError):
        return ALREADY
    return BAD_INPUT if isinstance(error, (RecordwiseError, OSError)) else UNEXPECTED


def message(error: Exception) -> str:
    if isinstance(error, RecordwiseError):
        return str(error)
    if isinstance(error, OSError):
        return f"{error.filename or 'a file'}: {error.strerror or type(error).__name__}"
    # The exception text may contain anything, including a record, so it is not repeated.
    return f"unexpected {type(error).__name__}. Run again with --debug for the traceback."


def error_json(error: Exception) -> dict[str, Any]:
    told: dict[str, Any] = {"error": type(error).__name__, "message": message(error)}
    if isinstance(error, PlanFileError):
        told["problems"] = problems_json(error)
    if isinstance(error, AlreadyReleasedError):
        told |= {"state": error.state, "charge": error.charge, "date": error.date}
    return told


def problems_json(error: PlanFileError) -> list[dict[str, Any]]:
    return [
        {
            "line": getattr(each, "line", None),
            "place": getattr(each, "place", ""),
            "text": getattr(each, "text", str(each)),
        }
        for each in error.problems
    ]
