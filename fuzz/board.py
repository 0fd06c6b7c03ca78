"""A file mapped by worker and runner: the input in hand, and what was counted so far. It outlives a worker that crashes."""

import json
import mmap
import struct
from pathlib import Path
from typing import Any

INPUT, TOLD = 4_000_000, 100_000
HEADER = struct.Struct("<qqqq")
"""The number in hand, its length, the length of what was told, and whether all is done."""


class Board:
    def __init__(self, path: Path) -> None:
        size = HEADER.size + INPUT + TOLD
        if not path.exists():
            path.write_bytes(bytes(size))
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), size)

    def _header(self) -> list[int]:
        return list(HEADER.unpack_from(self._map, 0))

    def _set(self, place: int, value: int) -> None:
        struct.pack_into("<q", self._map, 8 * place, value)

    def begin(self, number: int, data: bytes) -> None:
        """The worker takes an input in hand."""
        kept = data[:INPUT]
        self._map[HEADER.size : HEADER.size + len(kept)] = kept
        self._set(1, len(kept))
        self._set(0, number)

    def tell(self, told: dict[str, Any]) -> None:
        text = json.dumps(told).encode()
        start = HEADER.size + INPUT
        self._map[start : start + len(text)] = text
        self._set(2, len(text))

    def done(self) -> None:
        self._set(3, 1)

    def in_hand(self) -> tuple[int, bytes]:
        number, length, *_ = self._header()
        return number, self._map[HEADER.size : HEADER.size + length]

    def told(self) -> dict[str, Any]:
        start, length = HEADER.size + INPUT, self._header()[2]
        return json.loads(self._map[start : start + length]) if length else {}

    def finished(self) -> bool:
        return bool(self._header()[3])
