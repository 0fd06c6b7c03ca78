"""What is shown of progress: when a bar opens and closes, what its line says, and whom a part belongs to."""

import importlib
import io
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from recordwise.progress import NotebookBar, Report, TerminalBar, _html, _Late, _line

Patch = pytest.MonkeyPatch
progress: Any = importlib.import_module("recordwise.progress")


class Bar:
    """A bar that notes what is asked of it."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def open(self) -> None:
        self.seen.append("open")

    def show(self, doing: str, share: float) -> None:
        self.seen.append((doing, share))

    def close(self) -> None:
        self.seen.append("close")


class Timers:
    """Timers that run when they are told to."""

    def __init__(self, patch: Patch) -> None:
        self.made: list[Any] = []

        def timer(after: float, function: Any) -> Any:
            made = SimpleNamespace(after=after, function=function, daemon=False, events=[])
            made.start, made.cancel = lambda: made.events.append("start"), lambda: made.events.append("cancel")
            self.made.append(made)
            return made

        patch.setattr(progress, "Timer", timer)


def test_a_bar_opens_after_a_while_with_the_latest_and_closes_once(monkeypatch: Patch) -> None:
    timers, bar = Timers(monkeypatch), Bar()
    late = _Late(bar, "first", 0.75)
    (timer,) = timers.made
    assert (timer.after, timer.daemon, timer.events) == (0.75, True, ["start"])
    late.show("second", 0.25)
    assert bar.seen == []
    timer.function()
    late.show("third", 0.5)
    late.close()
    assert bar.seen == ["open", ("second", 0.25), ("third", 0.5), "close"]
    assert timer.events == ["start", "cancel"]


def test_a_bar_that_was_told_nothing_begins_with_its_first_words(monkeypatch: Patch) -> None:
    timers, bar = Timers(monkeypatch), Bar()
    late = _Late(bar, "first", 1.0)
    timers.made[0].function()
    assert bar.seen == ["open", ("first", 0.0)]
    late.close()


def test_a_bar_that_closes_early_never_opens(monkeypatch: Patch) -> None:
    timers, bar = Timers(monkeypatch), Bar()
    late = _Late(bar, "first", 1.0)
    late.close()
    timers.made[0].function()
    late.show("second", 0.25)
    assert bar.seen == []


@pytest.mark.parametrize("failure", [OSError, ValueError("I/O operation on closed file."), AttributeError])
def test_a_bar_whose_terminal_is_gone_ends_no_work(failure: Any, monkeypatch: Patch) -> None:
    timers, bar = Timers(monkeypatch), Bar()

    def gone(*_: Any) -> None:
        raise failure

    with progress._display(bar, "first", 1.0):
        timers.made[0].function()
        bar.show = bar.close = gone  # type: ignore[assignment, method-assign]
        progress.tell("second", 0.5)
    assert bar.seen == ["open", ("first", 0.0)]


def closed_stream() -> io.StringIO:
    made = io.StringIO()
    made.close()
    return made


@pytest.mark.parametrize("stream", [None, closed_stream()])
def test_without_standard_error_work_is_done_and_nothing_is_shown(stream: Any, monkeypatch: Patch) -> None:
    monkeypatch.setattr(sys, "stderr", stream)
    assert not progress.is_terminal(stream)
    assert progress.reported(lambda: 7)() == 7


@pytest.mark.parametrize("what", ["_start", "close"])
def test_a_bar_opens_and_closes_under_its_lock(what: str, monkeypatch: Patch) -> None:
    timers, bar = Timers(monkeypatch), Bar()
    late = _Late(bar, "first", 1.0)
    if what == "close":
        timers.made[0].function()
    held: list[bool] = []
    bar.open = bar.close = lambda: held.append(late._lock.locked())  # type: ignore[method-assign]
    getattr(late, what)()
    assert held == [True]
    assert not late._lock.locked()


def test_progress_is_shown_in_a_notebook_on_a_terminal_and_nowhere_else(monkeypatch: Patch) -> None:
    asked: list[Any] = []

    def display(bar: Any, doing: str, after: float) -> str:
        asked.append((type(bar).__name__, doing, after))
        return "shown"

    monkeypatch.setattr(progress, "_display", display)
    for notebook, terminal, name in (
        (True, True, "NotebookBar"),
        (True, False, "NotebookBar"),
        (False, True, "TerminalBar"),
        (False, False, None),
    ):
        monkeypatch.setattr(progress, "in_notebook", lambda notebook=notebook: notebook)
        monkeypatch.setattr(sys, "stderr", SimpleNamespace(isatty=lambda terminal=terminal: terminal))
        asked.clear()
        found: Any = progress.shown("doing", after=0.5)
        assert asked == ([] if name is None else [(name, "doing", 0.5)])
        assert (found == "shown") is (name is not None)
        asked.clear()
        progress.shown()
        assert asked == ([] if name is None else [(name, "", 1.0)])
        asked.clear()
        with progress.listening(lambda *_: None):
            progress.shown("doing")
        assert asked == []


@pytest.mark.parametrize(
    ("module", "wanted"),
    [
        (None, False),
        (SimpleNamespace(get_ipython=lambda: None), False),
        (SimpleNamespace(get_ipython=lambda: SimpleNamespace()), False),
        (SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=None)), False),
        (SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=object())), True),
    ],
)
def test_a_notebook_is_known_by_its_kernel(module: Any, wanted: bool, monkeypatch: Patch) -> None:
    if module is None:
        monkeypatch.delitem(sys.modules, "IPython", raising=False)
    else:
        monkeypatch.setitem(sys.modules, "IPython", module)
    assert progress.in_notebook() is wanted


def test_a_function_is_shown_by_its_name(monkeypatch: Patch) -> None:
    asked: list[str] = []

    class Shown:
        def __init__(self, doing: str) -> None:
            asked.append(doing)

        def __enter__(self) -> None:
            asked.append("in")

        def __exit__(self, *_: object) -> None:
            asked.append("out")

    @progress.reported
    def make_all_tables(one: int, *, two: int) -> int:
        asked.append("run")
        return one + two

    monkeypatch.setattr(progress, "shown", Shown)
    assert make_all_tables(1, two=2) == 3
    assert asked == ["make all tables", "in", "run", "out"]
    assert make_all_tables.__name__ == "make_all_tables"


@pytest.mark.parametrize(
    ("share", "seconds", "line"),
    [
        (0.0, 0.9, "<progress max='1'></progress> a &amp; b (0:00)"),
        (0.123456, 61.9, "<progress max='1' value='0.1235'></progress> a &amp; b (1:01)"),
        (1.0, 3600.0, "<progress max='1' value='1.0'></progress> a &amp; b (60:00)"),
        (0.5, 59.99, "<progress max='1' value='0.5'></progress> a &amp; b (0:59)"),
    ],
)
def test_the_line_of_a_notebook(share: float, seconds: float, line: str) -> None:
    assert _line("a & b", share, seconds) == line
    assert _html(line) == {"text/html": line, "text/plain": ""}


def test_a_notebook_is_drawn_anew_when_something_changed(monkeypatch: Patch) -> None:
    bar = NotebookBar()
    drawn: list[str] = []
    bar._handle = SimpleNamespace(update=lambda data, raw: drawn.append(data["text/html"]))
    clock = [100.0, 100.2, 160.4, 160.6]
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock.pop(0))
    bar._begun = 100.0
    waited: list[float] = []

    def wait(seconds: float) -> bool:
        waited.append(seconds)
        if len(waited) == 4:
            bar.show("b", 0.5)
        return len(waited) == 5

    bar._closed = SimpleNamespace(wait=wait)  # type: ignore[assignment]
    bar.show("a", 0.0)
    bar._redraw()
    assert waited == [0.2] * 5
    assert drawn == [
        "<progress max='1'></progress> a (0:00)",
        "<progress max='1'></progress> a (1:00)",
        "<progress max='1' value='0.5'></progress> b (1:00)",
    ]


def test_a_notebook_begins_and_ends_with_an_empty_line(monkeypatch: Patch) -> None:
    asked: list[Any] = []
    handle = SimpleNamespace(update=lambda data, raw: asked.append(("update", data["text/html"], raw)))
    display = ModuleType("IPython.display")
    display.display = lambda data, raw, display_id: asked.append((data, raw, display_id)) or handle  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    bar = NotebookBar()
    assert bar._thread.daemon
    bar.open()
    assert asked == [({"text/html": "", "text/plain": ""}, True, True)]
    bar.close()
    assert asked[-1] == ("update", "", True)
    assert not bar._thread.is_alive()


def test_a_terminal_shows_how_much_is_done_once_something_is() -> None:
    asked: list[Any] = []
    bar = TerminalBar()
    bar._bar = SimpleNamespace(
        update=lambda task, **more: asked.append((task, more)), stop=lambda: asked.append("stop")
    )
    bar._task = 7
    bar.show("a", 0.0)
    bar.show("b", 0.25)
    bar.close()
    assert asked == [
        (7, {"description": "a", "total": None, "completed": 0.0}),
        (7, {"description": "b", "total": 1.0, "completed": 0.25}),
        "stop",
    ]


def test_a_share_is_that_of_the_running_part() -> None:
    said: list[Any] = []
    report = Report(lambda doing, share: said.append((doing, share)))
    report.say("a")
    report.say("b", 0.5)
    report.start, report.end = 0.5, 0.75
    report.say("c")
    report.say("d", 0.5)
    assert said == [("a", 0.0), ("b", 0.5), ("c", 0.5), ("d", 0.625)]


def test_loops_of_nothing_and_steps_within_steps() -> None:
    said: list[Any] = []
    with progress.listening(lambda doing, share: said.append((doing, round(share, 9)))):
        assert list(progress.tracked([], "never")) == []
        for _ in progress.tracked(["only"], "one of one"):
            progress.tell("half of it", 0.5)
        progress.tell("nothing of it")
        outer = progress.steps(2)
        outer("one")
        progress.tell("a", 0.5)
        outer("two")
        inner = progress.steps(4)
        for name in "bcd":
            inner(name)
        progress.tell("e", 0.5)
        inner("f")
        inner("g")
    assert said == [
        ("one of one", 0.0),
        ("half of it", 0.5),
        ("nothing of it", 0.0),
        ("one", 0.0),
        ("a", 0.25),
        ("two", 0.5),
        ("b", 0.5),
        ("c", 0.625),
        ("d", 0.75),
        ("e", 0.8125),
        ("f", 0.875),
        ("g", 0.875),
    ]
    assert progress._active.get() is None
