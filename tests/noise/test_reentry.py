"""Draws within draws: a signal handler, a finalizer or another thread draws while a draw is under way, and changes none of it."""

import gc
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

import recordwise
from noise.test_sampler import unsettled
from noise.test_table import side_of
from recordwise.noise import DiscreteGaussian, DiscreteLaplace, LatticeLaw, Secure, Seeded, kernel, sampler
from recordwise.noise.sampler import Table, draw, table_for

PACKAGE = Path(recordwise.__file__).parent
INTERRUPTIONS = 20
PAUSE = 0.001
KINDS = [sampler.attempt, kernel.attempt]


def drawn(table: Table, size: int) -> list[int]:
    return draw(table, size, Seeded(1)).values.tolist()


def another() -> None:
    """A draw of another law, from other words, in more and in fewer attempts than the interrupted one."""
    for size in (3, 900):
        DiscreteLaplace(7).sample(size, Seeded(2))


@contextmanager
def at_every_instruction(act: Callable[[], None]) -> Iterator[list[str]]:
    """Act between any two instructions of the samplers and of what they compute with, as a signal handler may."""
    passed: list[str] = []

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        place = Path(frame.f_code.co_filename)
        if place.parent != PACKAGE / "noise" and place != PACKAGE / "exact" / "numbers.py":
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            passed.append(frame.f_code.co_name)
            act()
        return trace

    before = sys.gettrace()
    # Python 3.12 tells instructions only if a frame asked for them before.
    sys._getframe().f_trace_opcodes = True
    sys.settrace(trace)
    try:
        yield passed
    finally:
        sys.settrace(before)


@pytest.mark.theorem("T-EXACT")
@pytest.mark.parametrize("attempt", KINDS, ids=["plain", "compiled"])
@pytest.mark.parametrize("decided", [True, False], ids=["in integers", "in arbitrary precision"])
@pytest.mark.costly
def test_a_draw_between_any_two_instructions_of_a_draw_changes_nothing(attempt, decided, monkeypatch):
    monkeypatch.setattr(sampler, "attempt_for", lambda size: attempt)
    table = table_for(side_of(DiscreteGaussian(50)))
    table, size = (table, 300) if decided else (unsettled(table), 3)
    undisturbed = drawn(table, size)
    another()
    with at_every_instruction(another) as passed:
        disturbed = drawn(table, size)
    assert disturbed == undisturbed
    assert {"draw", "attempt", *(() if decided else ("decide", "acceptance", "working_precision"))} <= set(passed)


@contextmanager
def alarms(act: Callable[[], object]) -> Iterator[list[str]]:
    """A real signal handler that acts again and again; which functions of the samplers it interrupted."""
    interrupted: list[str] = []

    def handler(_: int, frame: FrameType | None) -> None:
        while frame is not None:
            if Path(frame.f_code.co_filename).parent == PACKAGE / "noise":
                interrupted.append(frame.f_code.co_name)
                break
            frame = frame.f_back
        act()
        # Only now, so that what is interrupted gets on; and never again for an alarm that was on its way at the end.
        if not ended.is_set():
            signal.setitimer(signal.ITIMER_REAL, PAUSE)

    ended = threading.Event()
    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, PAUSE)
    try:
        yield interrupted
    finally:
        ended.set()
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def within(interrupted: list[str]) -> int:
    return sum(name in ("attempt", "_pick", "_taken", "_signed_offsets", "_by_lines") for name in interrupted)


@pytest.mark.theorem("T-EXACT")
@pytest.mark.costly
def test_a_signal_handler_that_draws_shares_no_noise_with_the_draw_it_interrupts(monkeypatch):
    monkeypatch.setattr(sampler, "attempt_for", lambda size: sampler.attempt)
    law, size, inner = DiscreteGaussian(10**12), 20_000, []
    with alarms(lambda: inner.append(law.sample(size, Secure()))) as interrupted:
        outer = []
        while within(interrupted) < INTERRUPTIONS:
            outer.append(law.sample(size, Secure()))
    several = [*outer, *inner]
    # Of two independent draws one value is equal with a probability below 1e-12.
    for one, other in zip(several, several[1:] + several[:1]):
        assert np.count_nonzero(one == other) <= 2
    distinct = len(np.unique(np.concatenate(several)))
    assert distinct > 0.999 * size * len(several)


@pytest.mark.theorem("T-EXACT")
@pytest.mark.costly
def test_signals_finalizers_and_threads_that_draw_leave_a_draw_as_it_was(monkeypatch):
    monkeypatch.setattr(sampler, "attempt_for", lambda size: sampler.attempt)
    table, size = table_for(side_of(DiscreteGaussian(50))), 20_000
    undisturbed = drawn(table, size)
    collected: list[str] = []

    class Cycle:
        def __init__(self) -> None:
            self.itself = self

        def __del__(self) -> None:
            collected.append("finalizer")
            another()

    def during(phase: str, _: dict[str, int]) -> None:
        collected.append(phase)
        another()

    def collect() -> None:
        Cycle()
        gc.collect(0)

    ended = threading.Event()
    beside = threading.Thread(target=lambda: [another() for _ in iter(ended.is_set, True)])
    gc.callbacks.append(during)
    beside.start()
    try:
        with alarms(collect) as interrupted:
            while within(interrupted) < INTERRUPTIONS:
                assert drawn(table, size) == undisturbed
    finally:
        ended.set()
        beside.join()
        gc.callbacks.remove(during)
    assert {"start", "stop", "finalizer"} <= set(collected)


def laws(count: int) -> list[LatticeLaw]:
    return [DiscreteGaussian(50 + number) for number in range(count)]


@pytest.mark.theorem("T-EXACT")
def test_threads_and_generators_that_draw_in_turns_draw_what_each_draws_alone():
    alone = [law.sample(5000, Seeded(number)).tolist() for number, law in enumerate(laws(4))]
    found: dict[int, list[int]] = {}

    def one(number: int, law: LatticeLaw) -> None:
        found[number] = law.sample(5000, Seeded(number)).tolist()

    threads = [threading.Thread(target=one, args=each) for each in enumerate(laws(4))]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert [found[number] for number in range(4)] == alone

    def piecewise(number: int, law: LatticeLaw) -> Iterator[list[int]]:
        source = Seeded(number)
        for _ in range(5):
            yield law.sample(1000, source).tolist()

    in_turns = list(zip(*(piecewise(*each) for each in enumerate(laws(4)))))
    by_itself = list(zip(*(list(piecewise(*each)) for each in enumerate(laws(4)))))
    assert in_turns == by_itself
