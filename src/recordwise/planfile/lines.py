"""On which line each entry of a TOML text stands. The standard parser keeps no positions, so the text is walked once more.

The walk assumes text that the standard parser has accepted: it only has to find where things are, not whether they are right.
"""

from bisect import bisect_right
from typing import TypeAlias

Path: TypeAlias = tuple[str | int, ...]
"""The way to an entry: names of tables and places in arrays."""

_ESCAPES = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r", '"': '"', "\\": "\\"}


def line_index(text: str) -> dict[Path, int]:
    """The line, from 1, of every table, key and array item."""
    walk = _Walk(text.replace("\r\n", "\n"))
    walk.document()
    return walk.lines


class _Walk:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.starts = [0, *(place + 1 for place, letter in enumerate(text) if letter == "\n")]
        self.lines: dict[Path, int] = {(): 1}
        self.sizes: dict[Path, int] = {}

    def document(self) -> None:
        here: Path = ()
        while self._skip("\n \t"):
            if self.text[self.at] == "[":
                here = self._header()
            else:
                self._entry(here)

    def _note(self, path: Path, place: int) -> None:
        self.lines.setdefault(path, bisect_right(self.starts, place))

    def _skip(self, blanks: str) -> bool:
        """Go past blanks and comments; whether any text is left."""
        while self.at < len(self.text) and (self.text[self.at] in blanks or self.text[self.at] == "#"):
            if self.text[self.at] == "#":
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
            else:
                self.at += 1
        return self.at < len(self.text)

    def _header(self) -> Path:
        """``[a.b]`` or ``[[a.b]]``: names lead through the last item of an array of tables."""
        start, brackets = self.at, 2 if self.text.startswith("[[", self.at) else 1
        self.at += brackets
        names = self._key()
        self.at += brackets
        path: Path = ()
        for name in names[:-1]:
            path = (*path, name)
            self._note(path, start)
            path = (*path, self.sizes[path] - 1) if path in self.sizes else path
        path = (*path, names[-1])
        self._note(path, start)
        if brackets == 2:
            self.sizes[path] = self.sizes.get(path, 0) + 1
            path = (*path, self.sizes[path] - 1)
            self._note(path, start)
        return path

    def _entry(self, here: Path) -> None:
        start, names = self.at, self._key()
        for depth in range(1, len(names) + 1):
            self._note((*here, *names[:depth]), start)
        self.at += 1
        self._value((*here, *names))

    def _key(self) -> tuple[str, ...]:
        """A dotted key, up to the sign that ends it."""
        names = []
        while True:
            self._skip(" \t")
            names.append(self._name())
            self._skip(" \t")
            if self.text[self.at] != ".":
                return tuple(names)
            self.at += 1

    def _name(self) -> str:
        quote, start = self.text[self.at], self.at
        if quote in "\"'":
            self._string()
            return (
                _unescaped(self.text[start + 1 : self.at - 1]) if quote == '"' else self.text[start + 1 : self.at - 1]
            )
        while self.text[self.at] not in " \t.=]":
            self.at += 1
        return self.text[start : self.at]

    def _value(self, path: Path) -> None:
        self._skip(" \t")
        self._note(path, self.at)
        opening = self.text[self.at]
        if opening in "\"'":
            self._string()
        elif opening == "[":
            self._array(path)
        elif opening == "{":
            self._inline(path)
        else:
            while self.at < len(self.text) and self.text[self.at] not in ",]}\n#":
                self.at += 1

    def _string(self) -> None:
        quote = self.text[self.at]
        fence = quote * 3 if self.text.startswith(quote * 3, self.at) else quote
        self.at += len(fence)
        while not self.text.startswith(fence, self.at):
            self.at += 2 if quote == '"' and self.text[self.at] == "\\" else 1
        self.at += len(fence)
        while len(fence) == 3 and self.text.startswith(quote, self.at):
            self.at += 1

    def _array(self, path: Path) -> None:
        self.at += 1
        item = 0
        while self._skip(" \t\n,") and self.text[self.at] != "]":
            self._value((*path, item))
            item += 1
        self.at += 1

    def _inline(self, path: Path) -> None:
        self.at += 1
        while self._skip(" \t\n,") and self.text[self.at] != "}":
            self._entry(path)
        self.at += 1


def _unescaped(name: str) -> str:
    """A quoted key without its escapes; unicode escapes only matter to who names a column by them."""
    letters, at = [], 0
    while at < len(name):
        if name[at] != "\\":
            letters.append(name[at])
            at += 1
            continue
        width = {"u": 4, "U": 8}.get(name[at + 1], 0)
        letters.append(chr(int(name[at + 2 : at + 2 + width], 16)) if width else _ESCAPES[name[at + 1]])
        at += 2 + width
    return "".join(letters)
