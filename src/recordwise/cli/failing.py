"""Command failures: a message and an exit code."""

import functools
import json
import os
import shlex
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout, suppress
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, ParamSpec, TextIO, TypeVar

import typer

from recordwise.errors import AlreadyReleasedError, BudgetError, PlanFileError, RecordwiseError
from recordwise.progress import is_terminal

if TYPE_CHECKING:
    from sys import UnraisableHookArgs


# Remembers that the user interrupted the command, because libraries turn an interrupt into errors of their own.


INTERRUPTED = 130
IMPORTING = "<frozen importlib._bootstrap>"
AGAIN = 0.01
"""Seconds until a lost interrupt is repeated, again and again until it arrives where it can be handled."""
STOPPED = "interrupted. No partial files were left behind; what the ledger shows as charged stays spent."


class Interrupts:
    """Handles the signal as Python does, and remembers that it came."""

    def __init__(self) -> None:
        self.seen = self._lost = False
        # A shell that starts a command in the background makes it ignore the signal; leave that unchanged.
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self)

            sys.unraisablehook = self.repeat_lost

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self.seen = True
        if frame is not None and frame.f_code.co_filename == IMPORTING:
            # Raised here it could leave Python's import lock held for good, and other threads would wait for it forever.
            self._come_again()
            return
        while frame is not None:
            if frame.f_code in (Interrupts.repeat_lost.__code__, Interrupts.__call__.__code__):
                # Raised here it would be lost for good; the thread that repeats it comes again.
                return
            frame = frame.f_back
        self._lost = False
        raise KeyboardInterrupt

    def repeat_lost(self, failure: "UnraisableHookArgs") -> None:
        """Repeat an interrupt that Python would lose in a callback."""
        if not issubclass(failure.exc_type, KeyboardInterrupt):
            sys.__unraisablehook__(failure)
            return
        self._come_again()

    def _come_again(self) -> None:
        if not self._lost:
            self._lost = True
            threading.Thread(target=self._repeat, daemon=True).start()

    def _repeat(self) -> None:
        time.sleep(AGAIN)
        while self._lost:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(AGAIN)


def run(command: Callable[[], object]) -> None:
    """Run a command, and report failures after an interrupt as interrupted."""
    interrupts = Interrupts()
    try:
        try:
            command()
        finally:
            _flush(sys.stdout)
    except SystemExit as ended:
        if interrupts.seen:
            _mark_handled()
        if not (interrupts.seen and ended.code):
            raise
        if ended.code != INTERRUPTED:
            say(f"recordwise: {STOPPED}")
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        # Who reads along has seen enough, as head does.
        _discard(sys.stdout)
        sys.exit(UNEXPECTED)
    except OSError as error:
        # What was printed is on no disk, perhaps a full one; help is printed outside of any command.
        _discard(sys.stdout)
        if "--debug" in sys.argv:
            raise
        before = error.__context__
        if isinstance(before, SystemExit) and before.code:
            # The command has said what went wrong.
            sys.exit(before.code)
        say(f"recordwise: {message(error)}")
        sys.exit(BAD_INPUT)
    finally:
        _end_messages()


def _mark_handled() -> None:
    """Let Python exit with the command's code.

    Python takes an interrupt for unhandled once it has left code that a library compiled from text, even if it is caught further
    out, and would then kill its own process by the signal. Running any such code to its end makes it forget that.
    """
    exec("")


BAD_INPUT = 2
BUDGET_REFUSED = 3
ALREADY = 4
"""The same release was charged before; nothing was charged."""
UNEXPECTED = 1

Debug = Annotated[bool, typer.Option("--debug", help="Show the full traceback of an error.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]


def plain_float(text: str | float) -> float:
    """Return an option's number; refuse underscores and non-ASCII digits."""
    if not str(text).isascii() or "_" in str(text):
        raise ValueError("not plain digits")
    return float(text)


def say(text: str) -> None:
    """Print a line on standard error, if anybody can still read it: nothing that is done depends on that."""
    if sys.stderr is None:
        # Print would take that for standard output.
        return
    with suppress(OSError):
        print(text, file=sys.stderr, flush=True)


@contextmanager
def reporting(done: str) -> Iterator[None]:
    """Print the report of what cannot be undone; where standard output does not take it, say that it is done.

    It may be closed (then Python has none), full, or unable to write a letter.
    """
    try:
        yield
        if sys.stdout is not None:
            sys.stdout.flush()
    except (OSError, ValueError, AttributeError) as error:
        why = error.strerror if isinstance(error, OSError) else type(error).__name__
        say(f"recordwise: {done} Its report could not be printed ({why}).")
        _discard(sys.stdout)
        raise typer.Exit(BAD_INPUT) from None


LAST = 2
"""The number of standard error; there is none above it."""


def hold_streams() -> None:
    """Take the numbers of closed standard streams, so that no file opened later is one that libraries print into.

    Some print to standard error while they are imported: with none they would end the command.
    """
    for stream in range(1 + LAST):
        try:
            os.fstat(stream)
        except OSError:
            # The lowest number that is free.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    if sys.stderr is None:
        sys.stderr = os.fdopen(LAST, "w", encoding="utf-8", closefd=False)


def _end_messages() -> None:
    """Let what nobody reads on standard error change no exit code: Python would end with 120."""
    try:
        _flush(sys.stderr)
    except OSError:
        _discard(sys.stderr)


def _flush(stream: TextIO | None) -> None:
    """Write what is left, if the stream is open."""
    if stream is not None and not stream.closed:
        stream.flush()


def _discard(stream: TextIO | None) -> None:
    """Let Python end although a stream takes nothing."""
    with suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())  # type: ignore[union-attr]


def require_terminal(left: str) -> None:
    """End a command that nobody can confirm, and say what is left as it was."""
    if None in (sys.stderr, sys.__stderr__) or not is_terminal(sys.stdin):
        say(f"recordwise: stdin is not a terminal, so nobody can confirm; pass --yes. {left}")
        raise typer.Exit(BAD_INPUT)


def ask_first(question: str, left: str) -> None:
    """Ask on the terminal; without a yes, end the command and say what is left as it was."""
    try:
        # Whatever else is shown of the question goes there too: a blank of it would be printed before a JSON object.
        with redirect_stdout(sys.stderr):
            agreed, code = typer.confirm(question, err=True), BAD_INPUT
    except typer.Abort as error:
        # Nothing was typed but Ctrl-D or Ctrl-C, so the question's line has not ended.
        agreed, code = False, INTERRUPTED if isinstance(error.__context__, KeyboardInterrupt) else BAD_INPUT
        say("")
    if not agreed:
        say(f"recordwise: not confirmed. {left}")
        raise typer.Exit(code)


P = ParamSpec("P")
T = TypeVar("T")


def ends_well(command: Callable[P, T]) -> Callable[P, T]:
    """Wrap a command to fail with a message and exit code."""

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        if kwargs.get("debug"):
            return command(*args, **kwargs)
        try:
            return command(*args, **kwargs)
        except KeyboardInterrupt as stopped:
            # A command may say what it left to be finished.
            say(" ".join(("recordwise:", STOPPED, *map(str, stopped.args))))
            raise typer.Exit(INTERRUPTED) from None
        except (typer.Exit, typer.Abort, BrokenPipeError):
            raise
        except Exception as error:
            _stop(error, kwargs)

    return run


def _stop(error: Exception, given: Mapping[str, Any]) -> NoReturn:
    text = _with_command(message(error), given)
    try:
        if given.get("as_json"):
            typer.echo(json.dumps(error_json(error) | {"message": text}))
        else:
            say(f"recordwise: {text}")
    except OSError:
        # Standard output takes nothing, which may be the error.
        say(f"recordwise: {text}")
        _discard(sys.stdout)
    raise typer.Exit(exit_code(error)) from None


def for_plan(text: str, plan: object, values: str) -> str:
    """Return a message whose hints name the plan and its parameters."""
    return text.replace(" amend PLAN", f" amend {shlex.quote(str(plan))}{values}")


def _with_command(text: str, given: Mapping[str, Any]) -> str:
    """Return a message whose hints repeat what the command was given."""
    if "file" in given:
        text = text.replace("recordwise init FILE", f"recordwise init {shlex.quote(str(given['file']))}")
    plan = given.get("plan") or given.get("plan_file")
    values = "".join(f" --set {shlex.quote(each)}" for each in given.get("given") or ())
    return text if plan is None else for_plan(text, plan, values)


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


# What the help of each command says below its options: exit codes and examples.


EVERY = {
    0: "success",
    1: "unexpected error",
    2: "bad input, or files that cannot be read or written",
    130: "interrupted",
}
MORE: dict[str, dict[int, str]] = {
    "check": {3: "the budget does not cover the plan"},
    "rehearse": {3: "the budget does not cover the plan"},
    "preflight": {2: "bad input, or too many records outside the published cells"},
    "release": {3: "the budget does not cover the plan", 4: "released before; nothing was charged"},
    "ledger verify": {2: "bad input, or something does not verify"},
    "ledger amend": {3: "the new budget does not cover what is spent and reserved"},
    "audit": {1: "a guarantee was broken, or unexpected error"},
}
EXAMPLES: dict[str, str] = {
    "init": "recordwise init shops.csv --header --sum sales=5000 --by county --keys 001,003 --tuned-on public",
    "check": "recordwise check plan.toml",
    "explain": "recordwise explain plan.toml --to plan.html",
    "rehearse": "recordwise rehearse plan.toml --rows 100000 --out rehearsal",
    "preflight": "recordwise preflight plan.toml",
    "release": "recordwise release plan.toml --out published --yes",
    "postprocess": "recordwise postprocess published --out fitted",
    "export": "recordwise export published --format xlsx --out tables.xlsx",
    "change": "recordwise change published-2025 published-2026 --out change",
    "ask": "recordwise ask published emp --where county=34001,34003",
    "loss": "recordwise loss published/policy.json emp=1000 payann=52000",
    "studio": "recordwise studio plan.toml",
    "demo": "recordwise demo --establishments 100000",
    "audit": "recordwise audit --cells 20000",
    "attack": "recordwise attack tables.toml --out intervals.csv",
    "ledger show": "recordwise ledger show shops.ledger --plan plan.toml",
    "ledger verify": "recordwise ledger verify shops.ledger --against published",
    "ledger amend": 'recordwise ledger amend plan.toml --reason "a revised survey is published too"',
    "plan compare": "recordwise plan compare plan.toml --statistic emp --variance 400 --at-total 1000",
    "plan recommend": "recordwise plan recommend plan.toml --within 0.1 --share 0.9 --out new.toml",
    "plan frontier": "recordwise plan frontier plan.toml --data synthetic",
    "plan evaluate": "recordwise plan evaluate plan.toml --by county:2 --against suppression,multiplicative --rows 100000",
}


def exit_codes(command: str) -> dict[int, str]:
    """The exit codes of a command with their meanings, in order."""
    return dict(sorted((EVERY | MORE.get(command, {})).items()))


def epilog(command: str) -> str:
    """The paragraphs below the options of a command."""
    codes = ", ".join(f"{code} {meaning}" for code, meaning in exit_codes(command).items())
    example = f"\n\nExample: {EXAMPLES[command]}" if command in EXAMPLES else ""
    return f"Exit codes: {codes}.{example}"


def document(group: typer.Typer, name: str) -> None:
    """Give every command of a group its paragraphs."""
    for info in group.registered_commands:
        own = info.name or getattr(info.callback, "__name__", "")
        info.epilog = epilog(f"{name} {own}".strip())
