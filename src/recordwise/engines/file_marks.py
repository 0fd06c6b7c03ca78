"""What tells that a file is still the one that was validated."""

import os
from collections.abc import Iterable
from pathlib import Path

from recordwise.errors import SourceError

Mark = tuple[int, int, int]


def file_marks(paths: Iterable[Path]) -> tuple[Mark, ...]:
    """Number, size and time of the last change of each file. That time, unlike the one of the last writing, cannot be set back."""
    try:
        found = [os.stat(path) for path in paths]
    except OSError:
        raise SourceError(source="the source", problem="a file of it can no longer be read") from None
    return tuple((each.st_ino, each.st_size, each.st_ctime_ns) for each in found)
