"""Which inputs are worth changing further: those that reach a line of recordwise no earlier one did.

Tracing every input would slow the run some twenty times, so one in ``SAMPLED`` is traced; where Python has ``sys.monitoring``
(3.12), each line reports once and all inputs are watched at almost no cost.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from types import CodeType, FrameType
from typing import Any

SAMPLED = 60
LARGEST_POOL = 4_000
LONGEST_KEPT = 20_000
HOME = "/recordwise/"


class Guidance:
    """The pool of inputs to change, and the lines reached so far."""

    def __init__(self, seeds: list[bytes]) -> None:
        self.pool = list(seeds)
        self.lines: set[tuple[str, int]] = set()
        self._before = 0
        self._monitored = hasattr(sys, "monitoring")
        if self._monitored:
            self._monitor()

    def pick(self, rng: Random) -> bytes:
        """An input to start from; newer ones more often."""
        return self.pool[
            -1 - min(int(rng.expovariate(1 / 200)), len(self.pool) - 1)
            if rng.random() < 0.5
            else rng.randrange(len(self.pool))
        ]

    @contextmanager
    def watching(self, data: bytes, number: int) -> Iterator[None]:
        """Keep the input if it reaches a new line."""
        self._before = len(self.lines)
        traced = not self._monitored and number % SAMPLED == 0
        if traced:
            sys.settrace(self._entered)
        try:
            yield
        finally:
            if traced:
                sys.settrace(None)
            if len(self.lines) > self._before and len(data) <= LONGEST_KEPT and len(self.pool) < LARGEST_POOL:
                self.pool.append(data)

    def _entered(self, frame: FrameType, event: str, argument: Any) -> Any:
        return self._stepped if HOME in frame.f_code.co_filename else None

    def _stepped(self, frame: FrameType, event: str, argument: Any) -> Any:
        self.lines.add((frame.f_code.co_filename, frame.f_lineno))
        return self._stepped

    def _monitor(self) -> None:
        watch: Any = sys.monitoring  # type: ignore[attr-defined,unused-ignore]

        def line(code: CodeType, number: int) -> Any:
            if HOME in code.co_filename:
                self.lines.add((code.co_filename, number))
            return watch.DISABLE

        watch.use_tool_id(watch.COVERAGE_ID, "recordwise fuzz")
        watch.register_callback(watch.COVERAGE_ID, watch.events.LINE, line)
        watch.set_events(watch.COVERAGE_ID, watch.events.LINE)
