"""Remembers that the user interrupted the command, because libraries turn an interrupt into errors of their own."""

import os
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

INTERRUPTED = 130
AGAIN = 0.01
"""Seconds until a lost interrupt is repeated: the callback has ended by then."""
STOPPED = "interrupted. No partial files were left behind; what the ledger shows as charged stays spent."


class Interrupts:
    """Handles the signal as Python does, and remembers that it came."""

    def __init__(self) -> None:
        self.seen = False
        # A shell that starts a command in the background makes it ignore the signal; leave that unchanged.
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self)

            sys.unraisablehook = self.lost

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self.seen = True
        raise KeyboardInterrupt

    def lost(self, failure: "UnraisableHookArgs") -> None:
        """Repeat an interrupt that came while Python ran a callback, where it would be printed and forgotten."""
        if not issubclass(failure.exc_type, KeyboardInterrupt):
            sys.__unraisablehook__(failure)
            return
        again = threading.Timer(AGAIN, os.kill, (os.getpid(), signal.SIGINT))
        again.daemon = True
        again.start()


def run(command: Callable[[], object]) -> None:
    """Run a command; if it fails after an interrupt, report it as interrupted."""
    interrupts = Interrupts()
    try:
        command()
    except SystemExit as ended:
        if interrupts.seen:
            _mark_handled()
        if not (interrupts.seen and ended.code):
            raise
        if ended.code != INTERRUPTED:
            print(f"recordwise: {STOPPED}", file=sys.stderr)
        sys.exit(INTERRUPTED)


def _mark_handled() -> None:
    """Let Python exit with the command's code.

    Python takes an interrupt for unhandled once it has left code that a library compiled from text, even if it is caught further
    out, and would then kill its own process by the signal. Running any such code to its end makes it forget that.
    """
    exec("")
