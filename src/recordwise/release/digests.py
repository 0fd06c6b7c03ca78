"""The digests of a release's files, which release.json lists, so that a copy can be checked file by file."""

import hashlib
from collections.abc import Mapping
from pathlib import Path

PART = 1 << 20


def file_digest(path: Path) -> str:
    """The SHA-256 digest of a file."""
    total = hashlib.sha256()
    with path.open("rb") as file:
        while part := file.read(PART):
            total.update(part)
    return total.hexdigest()


def file_problems(folder: Path, listed: Mapping[str, str]) -> list[str]:
    """The files of a folder that are not those that were saved, and in which way."""
    found = []
    for name, digest in listed.items():
        path = folder / name
        if not path.is_file():
            found.append(f"{name} is missing")
        elif file_digest(path) != digest:
            found.append(f"{name} is not the file that was saved")
    return found
