"""Remembers that the user asked to stop: libraries turn an interrupt that reaches them into errors of their own."""

import signal
import sys
from collections.abc import Callable
from types import FrameType

INTERRUPTED = 130
STOPPED = "interrupted. No partial files were left behind; what the ledger shows as charged stays spent."


class Interrupts:
    """Handles the signal as Python does, and keeps that it came."""

    def __init__(self) -> None:
        self.seen = False
        # A shell that starts a command in the background has it ignore the signal; that stays so.
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self)

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self.seen = True
        raise KeyboardInterrupt


def run(command: Callable[[], object]) -> None:
    """Run a command to its exit; one that failed after an interrupt was interrupted."""
    interrupts = Interrupts()
    try:
        command()
    except SystemExit as ended:
        if not (interrupts.seen and ended.code):
            raise
        if ended.code != INTERRUPTED:
            print(f"recordwise: {STOPPED}", file=sys.stderr)
        sys.exit(INTERRUPTED)
