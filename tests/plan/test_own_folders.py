"""Which files of a folder belong to a release of ours: those it lists by name or stem, and copies with the same digest."""

import hashlib
from pathlib import Path

from recordwise.plan.sources import OwnFolder


def test_a_file_is_ours_by_name_by_stem_or_by_digest_and_a_neighbor_is_not(tmp_path: Path) -> None:
    for name, text in {
        "a.csv": "ours",
        "copy.csv": "ours",
        "other.csv": "other",
        "b.parquet": "x",
        "c.txt": "y",
    }.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "link.csv").symlink_to(tmp_path / "a.csv")
    digest = hashlib.sha256(b"ours").hexdigest()
    found = OwnFolder.read({"mark": "m", "sha256": {"a.csv": digest}, "resources": [{"name": "b", "path": "b.csv"}, 5]})
    ours = {path.name: found.has(path) for path in sorted(tmp_path.iterdir())}
    assert ours == {
        "a.csv": True,
        "b.parquet": True,
        "c.txt": False,
        "copy.csv": True,
        "link.csv": True,
        "other.csv": False,
    }
    assert found.label == "m"
    first = OwnFolder.read({"privacy_label": "p", "accuracy": {"c": {}}})
    assert (first.label, first.has(tmp_path / "c.txt"), first.has(tmp_path / "a.csv")) == ("p", True, False)
    assert not OwnFolder.read({"sha256": [digest]}).has(tmp_path / "a.csv")
