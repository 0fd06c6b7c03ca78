"""The files of one experiment: numbers as CSV and JSON, figures as PNG, and the page."""

import csv
import json
from collections.abc import Sequence
from pathlib import Path

from experiments.frame.page import page
from experiments.frame.reproduction import Reproduction, Row

FILES = ("reproduction.json", "reproduction.html")
"""What every experiment writes, beside its tables and pictures."""


def write(done: Reproduction, folder: Path, *, seconds: float | None = None) -> None:
    """Everything of one experiment into a folder, which is made."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in done.tables.items():
        write_csv(folder / f"{name}.csv", rows)
    for picture in done.pictures:
        (folder / f"{picture.name}.png").write_bytes(picture.png)
    told = done.to_json() | {"seconds": None if seconds is None else round(seconds, 1)}
    (folder / "reproduction.json").write_text(json.dumps(told, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    (folder / "reproduction.html").write_text(page(done, seconds=seconds), encoding="utf-8")


def write_csv(path: Path, rows: Sequence[Row]) -> None:
    """Rows with the same columns, in the order given."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]) if rows else [])
        writer.writeheader()
        writer.writerows(rows)
