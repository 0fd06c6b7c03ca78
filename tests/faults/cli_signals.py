"""Runs the command line and sends itself a signal at a stage of the release, as a user or a system would.

python cli_signals.py SIGNAL STAGE WORDS...
"""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from recordwise.cli import main, screen


def with_signal(number: int, stage: str) -> None:
    """Let the progress of every command send the signal when it comes to the stage."""

    @contextmanager
    def progress(steps: int, *, quiet: bool = False) -> Iterator[screen.Tell]:
        yield lambda doing: os.kill(os.getpid(), number) if doing == stage else None

    screen.progress = progress


if __name__ == "__main__":
    with_signal(getattr(signal, sys.argv[1]), sys.argv[2])
    sys.argv[1:] = sys.argv[3:]
    main()
