"""Writes text files piece by piece: pieces are made ahead on several threads, few at a time, and written in order."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from typing import IO, Any, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Part = TypeVar("Part")
ROWS = 50_000
"""Rows of a table in one piece."""
BATCH = 16_384
"""Rows that are turned into text at once."""
THREADS = min(4, os.cpu_count() or 1)
AHEAD = 6


def slices(data: pa.Table, rows: int = ROWS) -> Iterator[pa.Table]:
    """A table as consecutive pieces."""
    return (data.slice(start, rows) for start in range(0, data.num_rows, rows))


def write_pieces(parts: Iterable[Part], file: IO[bytes], made: Callable[[Part], Any]) -> None:
    """Write what ``made`` returns for each part, in order."""
    waiting: deque[Future[Any]] = deque()
    with ThreadPoolExecutor(THREADS) as pool:
        for part in parts:
            waiting.append(pool.submit(made, part))
            if len(waiting) > AHEAD:
                file.write(waiting.popleft().result())
        while waiting:
            file.write(waiting.popleft().result())


def first_bytes(texts: pa.StringArray) -> NDArray[np.uint8]:
    """The first byte of each text that has one."""
    _, offsets, letters = texts.buffers()
    if letters is None or not len(texts):
        return np.zeros(0, np.uint8)
    ends = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    return np.frombuffer(letters, np.uint8)[ends[:-1][ends[1:] > ends[:-1]]]


def csv_bytes(data: pa.Table, *, header: bool) -> pa.Buffer:
    """A table as the text of a CSV file."""
    import pyarrow.csv

    sink = pa.BufferOutputStream()
    pyarrow.csv.write_csv(data, sink, pyarrow.csv.WriteOptions(include_header=header, batch_size=BATCH))
    return sink.getvalue()


def same_bytes(path: Path, header: Any, pieces: Iterable[Any]) -> bool:
    """Whether a file holds exactly a header and these pieces."""
    with path.open("rb") as file:
        wanted = map(bytes, chain((header,), pieces))
        return all(file.read(len(part)) == part for part in wanted) and not file.read(1)
