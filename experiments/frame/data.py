"""Where the real data is: the folder RECORDWISE_DATA names, or shared/data beside the checkout. It is read, never copied."""

import os
from pathlib import Path

NO_DATA = (
    "The package's own generator made the data, because the public files were not found: name their folder in RECORDWISE_DATA. "
    "The numbers differ somewhat from those with the files."
)
"""What a page says that had to do without the real data."""
BESIDE = Path(__file__).resolve().parents[2].parent / "shared" / "data"


def data_folder(*needed: str) -> Path | None:
    """The folder with the real data, or None if it, or one of the files that are needed, is not there."""
    folder = Path(os.environ.get("RECORDWISE_DATA") or BESIDE)
    if not folder.is_dir() or not all((folder / name).exists() for name in needed):
        return None
    return folder


def data_note(real: str, *needed: str) -> str:
    """What the page says about its data: ``real`` where the files are there, else that the generator was used."""
    return real if data_folder(*needed) is not None else NO_DATA
