"""Whether a SQLite file that is open is still the one its path names, for whoever opens that path next."""

import os
from dataclasses import dataclass
from pathlib import Path

BESIDE = ("-wal", "-shm")
"""The log and its index. SQLite keeps the ones it opened, beside the file that links lead to, until the last connection closes."""
Inode = tuple[int, int]


@dataclass(frozen=True, slots=True)
class FileIdentity:
    """The file behind a path, and the log beside it, as they were when they were opened."""

    path: Path
    known: tuple[tuple[str, Inode | None], ...]

    @classmethod
    def of(cls, path: Path) -> "FileIdentity":
        real = os.path.realpath(path)
        names = (str(path), *(real + end for end in BESIDE))
        return cls(path, tuple((name, inode(name)) for name in names))

    def problem(self) -> str | None:
        """What somebody did to the file meanwhile, if anything."""
        for name, then in self.known:
            now = inode(name)
            if then is not None and now is None:
                return f"was deleted or renamed while it was open ({Path(name).name} is gone)"
            if then is not None and now != then:
                return f"was replaced while it was open ({Path(name).name} is another file now)"
        if self.known[0][1] is not None and os.stat(self.path).st_nlink > 1:
            return "has a second name (a hard link), under which others would miss what is in its log"
        return None


def inode(name: str) -> Inode | None:
    """Device and number of a file, links followed; None where there is none. While it is open the number is not used again."""
    try:
        found = os.stat(name)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino
