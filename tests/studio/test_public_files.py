"""Which files of a folder are looked at for lists and sizes."""

from pathlib import Path

import pytest

from recordwise.studio import begin

CSV = "state,county\nA,1\n"


def test_small_csv_files_other_than_the_records_are_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("records.csv", "places.csv", "LARGE.CSV", "full.csv", "list.tsv"):
        (tmp_path / name).write_text(CSV)
    sizes = {"records.csv": 20, "places.csv": 50_000_000, "LARGE.CSV": 50_000_001, "full.csv": 20, "list.tsv": 20}
    found = [{"name": name, "bytes": size} for name, size in sizes.items()]
    monkeypatch.setattr(begin, "record_files", lambda folder: found)
    columns = ["state", "county"]
    assert begin._public_files(tmp_path, "records.csv") == [("places.csv", columns), ("full.csv", columns)]
    assert begin._public_files(tmp_path, "") == [(name, columns) for name in ("records.csv", "places.csv", "full.csv")]
