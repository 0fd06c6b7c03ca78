"""What long computations say: shares of one whole, shown after a while on a terminal or in a notebook, and gone at the end."""

import io
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from recordwise import progress
from recordwise.cli import screen


@contextmanager
def heard() -> Iterator[list[tuple[str, float]]]:
    said: list[tuple[str, float]] = []
    with progress.listening(lambda doing, share: said.append((doing, round(share, 9)))):
        yield said


def test_loops_within_loops_share_one_whole() -> None:
    with heard() as said:
        for _ in progress.tracked("ab", lambda name: f"family {name}"):
            for _ in progress.tracked(range(2), "offset"):
                progress.tell("fitting", 0.5)
        progress.tell("end", 1.0)
    assert said == [
        ("family a", 0.0),
        ("offset", 0.0),
        ("fitting", 0.125),
        ("offset", 0.25),
        ("fitting", 0.375),
        ("family b", 0.5),
        ("offset", 0.5),
        ("fitting", 0.625),
        ("offset", 0.75),
        ("fitting", 0.875),
        ("end", 1.0),
    ]


def test_a_loop_that_is_left_early_gives_its_part_back() -> None:
    with heard() as said:
        loop = progress.tracked([1, 2], "first")
        next(loop)
        loop.close()  # type: ignore[attr-defined]
        progress.tell("after", 0.5)
    assert said[-1] == ("after", 0.5)


def test_steps_divide_the_whole_and_the_last_may_be_repeated() -> None:
    with heard() as said:
        step = progress.steps(2)
        step("reading")
        for _ in progress.tracked([1, 2], "part"):
            pass
        step("writing")
        step("more")
    assert said == [("reading", 0.0), ("part", 0.0), ("part", 0.25), ("writing", 0.5), ("more", 0.5)]


def test_nobody_listening_means_that_nothing_happens() -> None:
    progress.tell("nothing")
    progress.steps(3)("nothing")
    assert list(progress.tracked([1, 2], "nothing")) == [1, 2]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def on_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Standard error as a terminal; inside the test, because pytest sets its own one before each phase."""
    made = Terminal()
    monkeypatch.setattr(sys, "stderr", made)
    monkeypatch.setenv("TERM", "xterm")
    return made


@progress.reported
def long_one(wait: Any) -> int:
    progress.tell("fitting families", 0.5)
    wait()
    return 7


def opened() -> None:
    """Wait until the bar of the running computation is open; it opens in its own thread."""
    report = progress._active.get()
    assert report is not None
    late = report._listener.__self__  # type: ignore[attr-defined]
    late._timer.join()
    assert late._open


@pytest.mark.costly
def test_on_a_terminal_a_long_computation_shows_a_bar_that_is_gone_afterwards(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal = on_terminal(monkeypatch)
    monkeypatch.setattr(progress.shown, "__kwdefaults__", {"after": 0.0})
    assert long_one(opened) == 7
    text = terminal.getvalue()
    assert "fitting families" in text
    assert text.endswith(("\x1b[2K", "\x1b[?25h"))
    assert "\x1b[?25h" in text  # the cursor is back


def test_what_takes_less_than_a_second_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = on_terminal(monkeypatch)
    assert long_one(lambda: None) == 7
    assert terminal.getvalue() == ""


@pytest.mark.costly
def test_an_interrupt_takes_the_bar_away(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = on_terminal(monkeypatch)
    monkeypatch.setattr(progress.shown, "__kwdefaults__", {"after": 0.0})

    def interrupt() -> None:
        opened()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        long_one(interrupt)
    assert "\x1b[?25h" in terminal.getvalue()
    assert progress._active.get() is None


def test_in_a_pipe_nothing_is_shown(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress.shown, "__kwdefaults__", {"after": 0.0})

    def silent() -> None:
        assert progress._active.get() is None

    long_one(silent)
    assert capsys.readouterr() == ("", "")


class Handle:
    def __init__(self) -> None:
        self.drawn: list[str] = []
        self.seen = Event()

    def wait(self) -> None:
        """Until something was drawn."""
        assert self.seen.wait(20)

    def update(self, data: dict[str, str], *, raw: bool) -> None:
        assert raw
        self.drawn.append(data["text/html"])
        self.seen.set()


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> Handle:
    """A stand-in for IPython in a kernel, with the two functions that are used."""
    handle, ipython, display = Handle(), ModuleType("IPython"), ModuleType("IPython.display")
    ipython.get_ipython = lambda: SimpleNamespace(kernel=object())  # type: ignore[attr-defined]
    display.display = lambda data, *, raw, display_id: handle  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    return handle


@pytest.mark.costly
def test_a_notebook_shows_a_line_that_is_empty_at_the_end(notebook: Handle, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress.shown, "__kwdefaults__", {"after": 0.0})
    long_one(notebook.wait)
    assert [re.sub("0:[0-9]{2}", "0:00", line) for line in notebook.drawn[:1] + notebook.drawn[-1:]] == [
        "<progress max='1' value='0.5'></progress> fitting families (0:00)",
        "",
    ]


@pytest.mark.costly
def test_what_is_shown_in_a_notebook_is_text(notebook: Handle, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress.shown, "__kwdefaults__", {"after": 0.0})
    with progress.shown("a <b>"):
        notebook.wait()
    assert "></progress> a &lt;b&gt; (0:" in notebook.drawn[0]


def test_a_command_and_what_it_calls_share_one_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = on_terminal(monkeypatch)
    with screen.progress(2) as tell:
        opened()
        tell("reading records")
        assert long_one(lambda: None) == 7
        tell("writing files")
    assert terminal.getvalue().count("\x1b[?25l") == 1  # the cursor was hidden once


def test_in_a_pipe_there_is_a_line_for_each_step_with_what_is_done_and_how_long_it_took(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with screen.progress(2) as tell:
        tell("reading records")
        for _ in progress.tracked([1, 2], lambda number: f"fitting {number} of 2"):
            progress.tell("fitting 2 of 2", 0.5)
        tell("writing files")
    lines = capsys.readouterr().err.splitlines()
    assert [re.sub(r"[\d.]+ s\)$", "s)", line) for line in lines] == [
        "recordwise: reading records (0%, s)",
        "recordwise: fitting 1 of 2 (0%, s)",
        "recordwise: fitting 2 of 2 (12%, s)",
        "recordwise: writing files (50%, s)",
        "recordwise: finished (100%, s)",
    ]
    assert all(re.search(r"\(\d+%, \d+\.\d s\)$", line) for line in lines)
