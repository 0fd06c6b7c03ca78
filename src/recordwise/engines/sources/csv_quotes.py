"""Quotes in CSV that one reader takes for letters and another leaves out: refused, so that a field is one text on every engine.

A field is quoted from its first letter to its last, or not at all: ``"a"b``, ``"a" `` and `` "a"`` are neither. A quote within a
field that does not begin with one is a letter. Files without a quote are only searched for one.
"""

import re
from pathlib import Path

import pyarrow as pa

from recordwise.errors import SourceError
from recordwise.plan.files import CsvFiles

BLOCK = 1 << 20
LONGEST = 1 << 25
"""A record with more letters than this, most likely the rest of a file after a quote that is not closed, is refused."""
UNCLEAR = "line {}{} has a quote with a blank or more text beside it, or one that is not closed"


def check_quotes(source: CsvFiles) -> None:
    """Refuse a file with quotes that can be read in two ways; by the number of the line, without its text."""
    lines, start = _grammar(source.delimiter)
    for number, path in enumerate(source.paths, 1):
        line = _unclear(source, path, lines, start)
        if line is not None:
            where = f" of file {number}" if len(source.paths) > 1 else ""
            raise SourceError(source="the CSV source", problem=UNCLEAR.format(line, where), read=True)


def _grammar(delimiter: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Whole lines, and the start of one that may go on."""
    sign = re.escape(delimiter)
    plain = rf'(?![ \t]*")[^{sign}\r\n]*+' if delimiter != "\t" else rf'(?! *")[^{sign}\r\n]*+'
    field = rf'(?:"(?:[^"]++|"")*+"(?=[{sign}\r\n])|{plain}(?=[{sign}\r\n]))'
    lines = re.compile(rf"(?:(?:{field}{sign})*+{field}(?:\r\n|\r|\n))*+")
    return lines, re.compile(rf'(?:{field}{sign})*+(?:"(?:[^"]++|"")*+"?|{plain})')


def _unclear(source: CsvFiles, path: Path, lines: re.Pattern[str], start: re.Pattern[str]) -> int | None:
    """The number of the line that the first unclear quote stands in or, where a quote goes over several, begins in."""
    ended, last, rest = 0, "", ""
    try:
        with source.opened(path) as text:
            while block := text.read(BLOCK):
                rest += block
                cut = _clear(rest, lines)
                ended, last = ended + _ends(last + rest[:cut]) - _ends(last), rest[:cut][-1:] or last
                rest = rest[cut:]
                if '"' in rest and (start.fullmatch(rest) is None or len(rest) > LONGEST):
                    return ended + 1
            # The last line may have no end; given one it must be a line like the others.
            return ended + 1 if '"' in rest and _clear(rest + "\n", lines) <= len(rest) else None
    except (UnicodeError, OSError, pa.ArrowException):
        # What cannot be decoded is refused where it is read, by its line.
        return None


def _clear(text: str, lines: re.Pattern[str]) -> int:
    """How far a text consists of whole lines without an unclear quote."""
    if '"' not in text:
        return max(text.rfind("\n"), text.rfind("\r")) + 1
    found = lines.match(text)
    return found.end() if found else 0


def _ends(text: str) -> int:
    """How many lines end in a text."""
    return text.count("\n") + text.count("\r") - text.count("\r\n")
