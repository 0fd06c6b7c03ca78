"""Tables that we published ourselves are no public lists: told by the label in the file, or by the release they lie in.

A NOT PRIVATE table may tell exact totals. A private one is noisy, but noise scaled by it makes a later charge depend on it, which
only a budget of the same ledger covers (T-SIZE): it is named as ``FromRelease``. A copy that another program wrote has no label,
and away from its folder a private CSV file has none either: these cannot be told (docs/limits.md).
"""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from recordwise.errors import KeysError

LABEL = b"recordwise"
"""The key of the privacy label in the metadata of every Parquet file that we publish."""
PRIVATE = "private"
COMMENT = b"# NOT PRIVATE"
"""How the CSV file of a table that is not private begins."""
PUBLISHED = "is a table of a release of ours, private but not a public list"
UNPROTECTED = (
    "is a table of a release that is NOT PRIVATE, so its numbers may tell the totals: it is never a public list"
)
NAME_IT = (
    "For sizes, name the release: size = { release = FOLDER, column = NAME } in a plan, FromRelease in Python. For keys, name the "
    "public list that its cells are from."
)
FROM_ELSEWHERE = (
    "Take sizes and keys from a table that somebody else published, or from a private release by FromRelease."
)


def refuse_own_table(table: pa.Table, name: str) -> None:
    """Refuse a table with our label in its metadata, as Arrow reads it from Parquet."""
    metadata: dict[bytes, bytes] = table.schema.metadata or {}
    if LABEL in metadata:
        raise _refused(name, private=metadata[LABEL].decode(errors="replace") == PRIVATE)


def refuse_own_file(path: Path) -> None:
    """Refuse a CSV file with our label in front, and a file of any format that lies in the folder of a release."""
    with path.open("rb") as file:
        if file.read(len(COMMENT)) == COMMENT:
            raise _refused(f"the file {path.name}", private=False)
    for folder in dict.fromkeys((path.absolute().parent, path.resolve().parent)):
        for stated in _descriptions(folder):
            if _lists(stated, path):
                label = stated.get("mark", stated.get("privacy_label"))
                raise _refused(f"the file {path.name}", private=label == PRIVATE)


def _refused(name: str, *, private: bool) -> KeysError:
    return KeysError(
        column=name,
        problem=PUBLISHED if private else UNPROTECTED,
        advice=NAME_IT if private else FROM_ELSEWHERE,
    )


def _descriptions(folder: Path) -> Iterator[dict[str, Any]]:
    """What a folder says about a release in it; nothing where it holds none."""
    for name, key in (("release.json", "recordwise_release"), ("datapackage.json", "privacy_label")):
        try:
            stated = json.loads((folder / name).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        if isinstance(stated, dict) and key in stated:
            yield stated


def _lists(stated: dict[str, Any], path: Path) -> bool:
    """Whether a file is one of a release: by its name, or under another name by its digest."""
    digests = stated.get("sha256")
    listed = dict(digests) if isinstance(digests, dict) else {}
    parts = [each for each in stated.get("resources") or () if isinstance(each, dict)]
    names = {*listed, *(str(each.get("path")) for each in parts)}
    # The first version lists its tables only.
    stems = {str(each.get("name")) for each in parts} | set(stated.get("accuracy") or {})
    name = path.resolve().name
    if {path.name, name} & names or {path.name.partition(".")[0], name.partition(".")[0]} & stems:
        return True
    return bool(listed) and _digest(path) in listed.values()


def _digest(path: Path) -> str:
    with path.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()
