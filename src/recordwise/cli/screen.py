"""Command output: tables on a terminal, plain lines in a pipe."""

import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import typer

from recordwise.cli.failing import say
from recordwise.exact.text import share_text
from recordwise.progress import is_terminal, listening, shown
from recordwise.progress import steps as told

PIPE_WIDTH = 100
Tell = Callable[[str], object]


def on_terminal() -> bool:
    return is_terminal(sys.stdout)


def heading(text: str) -> None:
    """Print the heading of a section."""
    typer.echo("")
    typer.secho(text, bold=on_terminal())


def paragraph(text: str, *, indent: int = 0) -> None:
    """Print a wrapped paragraph."""
    for line in text.splitlines():
        pad = " " * indent
        typer.echo(
            textwrap.fill(
                line,
                _width(),
                initial_indent=pad,
                subsequent_indent=pad,
                break_long_words=False,
                break_on_hyphens=False,
            )
        )


def note(text: str) -> None:
    """Print a warning."""
    for number, line in enumerate(textwrap.wrap(text, _width() - 2, break_long_words=False, break_on_hyphens=False)):
        typer.secho(("! " if number == 0 else "  ") + line, fg="yellow" if on_terminal() else None)


def _width() -> int:
    if not on_terminal():
        return PIPE_WIDTH
    import shutil

    return min(120, shutil.get_terminal_size().columns)


def table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print columns: the first left-aligned, numbers right-aligned."""
    if on_terminal():
        _rich_table(headers, rows)
        return
    widths = [max(len(row[at]) for row in (headers, *rows)) for at in range(len(headers))]
    right = [_numeric(at, rows) for at in range(len(headers))]
    for row in (headers, *rows):
        cells = [cell.rjust(w) if r else cell.ljust(w) for cell, w, r in zip(row, widths, right)]
        typer.echo("  ".join(cells).rstrip())


def _rich_table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for at, header in enumerate(headers):
        shown.add_column(header, justify="right" if _numeric(at, rows) else "left", overflow="fold")
    for row in rows:
        shown.add_row(*(Text(cell) for cell in row))
    Console().print(shown)


def _numeric(at: int, rows: Sequence[Sequence[str]]) -> bool:
    cells = [row[at].strip("%±x").replace(",", "") for row in rows if row[at]]
    return bool(cells) and all(_is_number(cell) for cell in cells)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return text in ("none", "-")
    return True


@contextmanager
def progress(steps: int, *, quiet: bool = False) -> Iterator[Tell]:
    """Report progress by a bar, or in a pipe by a line for each step, unless ``quiet``."""
    if quiet:
        yield lambda _: None
    elif is_terminal(sys.stderr):
        with shown("starting", after=0.0):
            yield told(steps)
    else:
        lines = _Lines()
        with listening(lines.show):
            yield told(steps)
        lines.show("finished", 1.0)


class _Lines:
    """A line on standard error for each thing that is done: how much is finished, and the seconds so far."""

    def __init__(self) -> None:
        self._begun, self._doing = time.monotonic(), ""

    def show(self, doing: str, share: float) -> None:
        """Print a line if something else is done now."""
        if doing != self._doing:
            self._doing = doing
            taken = round(time.monotonic() - self._begun, 1)
            say(f"recordwise: {doing} ({share_text(share)}, {taken} s)")
