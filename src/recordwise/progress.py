"""Progress messages of long computations, and their display.

A bar on a terminal or in a notebook, after a second. A public function that may take long is marked
``@reported``. Inside, ``tell("reading records")`` says what is done now, and ``for family in
tracked(families, "fitting"):`` how far a loop is; loops within loops share one bar. In a pipe or a test
nothing is shown. ``listening`` passes all of it to a function of the caller.

    >>> from recordwise import progress
    >>> with progress.listening(print):
    ...     for file in progress.tracked(["a", "b"], lambda name: f"reading {name}"):
    ...         progress.tell("adding up", 0.5)
    reading a 0.0
    adding up 0.25
    reading b 0.5
    adding up 0.75
"""

import sys
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from contextvars import ContextVar
from functools import wraps
from importlib import import_module
from threading import Event, Lock, Thread, Timer
from typing import Any, ParamSpec, Protocol, TypeVar

from recordwise.errors import own_argument_errors

__all__ = ["listening", "reported", "shown", "steps", "tell", "tracked"]

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
Listener = Callable[[str, float], None]
"""Takes what is being done and the share of the whole that is finished, from 0 to 1."""
SHOWN_AFTER = 1.0
"""Seconds until a bar appears; what is faster shows nothing."""
REDRAWN_AFTER = 0.2
"""Seconds between two drawings in a notebook."""


class Report:
    """Progress of one listener: the share that the running loop covers."""

    def __init__(self, listener: Listener) -> None:
        self._listener, self.start, self.end = listener, 0.0, 1.0

    def say(self, doing: str, share: float = 0.0) -> None:
        """Pass on what is done at a share of the present part."""
        self._listener(doing, self.start + share * (self.end - self.start))


_active: ContextVar[Report | None] = ContextVar("recordwise_progress", default=None)


@own_argument_errors
def tell(doing: str, share: float = 0.0) -> None:
    """Say what is being done now.

    Args:
        doing: A few words: "reading records".
        share: How much of the present part of the work is finished, from 0 to 1.
    """
    report = _active.get()
    if report is not None:
        report.say(doing, share)


@own_argument_errors
def tracked(items: Collection[T], doing: str | Callable[[T], str]) -> Iterator[T]:
    """Go through items and say how many of them are finished.

    Args:
        items: What a loop goes through.
        doing: What is done to each: a few words, or a function that says it for an item.

    Yields:
        The items, in their order.
    """
    report = _active.get()
    if report is None:
        yield from items
        return
    start, width = report.start, (report.end - report.start) / max(len(items), 1)
    end = report.end
    try:
        for place, item in enumerate(items):
            report.start, report.end = start + place * width, start + (place + 1) * width
            report.say(doing if isinstance(doing, str) else doing(item))
            yield item
    finally:
        report.start, report.end = start, end


@own_argument_errors
def steps(count: int) -> Callable[[str], object]:
    """Return a function that reports the next of several steps.

    To the current listener.

    Args:
        count: How many steps there are.

    Returns:
        What to call with a few words at the start of each step; what is reported in between is a part of that step.
    """
    report = _active.get()
    if report is None:
        # Nobody listens: str does nothing with a text.
        return str
    start, width, places = report.start, (report.end - report.start) / count, iter(range(count))

    def step(doing: str) -> None:
        place = next(places, count - 1)
        report.start, report.end = start + place * width, start + (place + 1) * width
        report.say(doing)

    return step


@contextmanager
@own_argument_errors
def listening(listener: Listener) -> Iterator[None]:
    """Hand every report to a function, instead of showing it.

    Args:
        listener: Called with what is being done and the share that is finished; ``lambda *_: None`` keeps quiet.

    Yields:
        Nothing.
    """
    token = _active.set(Report(listener))
    try:
        yield
    finally:
        _active.reset(token)


@own_argument_errors
def reported(function: Callable[P, R]) -> Callable[P, R]:
    """Show a function's progress unless something shows or hears it already.

    Args:
        function: A public function that may take longer than a second.

    Returns:
        The function, with the same signature.
    """

    checked = own_argument_errors(function)

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        with shown(function.__name__.replace("_", " ")):
            return checked(*args, **kwargs)

    return run


@own_argument_errors
def shown(doing: str = "", *, after: float = SHOWN_AFTER) -> AbstractContextManager[None]:
    """Show progress of the block, where visible and not shown already.

    Args:
        doing: What is shown before the first report.
        after: Seconds until a bar appears.

    Returns:
        What to use in a ``with`` statement.
    """
    if _active.get() is not None:
        return nullcontext()
    if in_notebook():
        return _display(NotebookBar(), doing, after)
    return _display(TerminalBar(), doing, after) if is_terminal(sys.stderr) else nullcontext()


def is_terminal(stream: Any) -> bool:
    """Whether a standard stream is a terminal; a closed or missing one is none."""
    try:
        return stream is not None and bool(stream.isatty())
    except ValueError:
        return False


def in_notebook() -> bool:
    """Whether a notebook's kernel runs this code."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return getattr(shell, "kernel", None) is not None


class Bar(Protocol):
    """Something that shows progress once it is opened."""

    def open(self) -> None: ...

    def show(self, doing: str, share: float) -> None: ...

    def close(self) -> None: ...


@contextmanager
def _display(bar: Bar, doing: str, after: float) -> Iterator[None]:
    """Display a bar after a while, and remove it at the end."""
    late = _Late(bar, doing, after)
    token = _active.set(Report(late.show))
    try:
        yield
    finally:
        _active.reset(token)
        late.close()


class _Late:
    """A bar that opens after a while, in its thread."""

    def __init__(self, bar: Bar, doing: str, after: float) -> None:
        self._bar, self._latest, self._lock = bar, (doing, 0.0), Lock()
        self._open = self._closed = False
        self._timer = Timer(after, self._start)
        self._timer.daemon = True
        self._timer.start()

    def _start(self) -> None:
        with self._lock:
            if not self._closed:
                self._bar.open()
                self._open = True
                self._bar.show(*self._latest)

    def show(self, doing: str, share: float) -> None:
        self._latest = (doing, share)
        if self._open:
            # A terminal or cell that is gone ends no work: what was charged and drawn is still handed over.
            with suppress(Exception):
                self._bar.show(doing, share)

    def close(self) -> None:
        self._timer.cancel()
        with self._lock:
            self._closed = True
            if self._open:
                with suppress(Exception):
                    self._bar.close()


class TerminalBar:
    """A bar on standard error that leaves no trace."""

    _bar: Any
    _task: Any

    def open(self) -> None:
        """Start drawing."""
        from rich.console import Console
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
        self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
        self._task = self._bar.add_task("", total=None)
        self._bar.start()

    def show(self, doing: str, share: float) -> None:
        """Draw what is being done."""
        self._bar.update(self._task, description=doing, total=1.0 if share > 0 else None, completed=share)

    def close(self) -> None:
        """Remove the bar."""
        self._bar.stop()


class NotebookBar:
    """A line below a notebook's cell, empty at the end."""

    _handle: Any

    def __init__(self) -> None:
        self._begun, self._latest, self._drawn, self._closed = time.monotonic(), ("", 0.0), "", Event()
        self._thread = Thread(target=self._redraw, daemon=True)

    def open(self) -> None:
        """Start drawing, a few times a second."""
        display = import_module("IPython.display").display
        self._handle = display(_html(""), raw=True, display_id=True)
        self._thread.start()

    def show(self, doing: str, share: float) -> None:
        """Say what to draw next."""
        self._latest = (doing, share)

    def close(self) -> None:
        """Empty the line."""
        self._closed.set()
        self._thread.join()
        self._handle.update(_html(""), raw=True)

    def _redraw(self) -> None:
        while not self._closed.wait(REDRAWN_AFTER):
            line = _line(*self._latest, time.monotonic() - self._begun)
            if line != self._drawn:
                self._handle.update(_html(line), raw=True)
                self._drawn = line


def _html(text: str) -> dict[str, str]:
    return {"text/html": text, "text/plain": ""}


def _line(doing: str, share: float, seconds: float) -> str:
    from html import escape

    minutes, rest = divmod(int(seconds), 60)
    value = f" value='{round(share, 4)}'" if share > 0 else ""
    return f"<progress max='1'{value}></progress> {escape(doing)} ({minutes}:{rest:02d})"
