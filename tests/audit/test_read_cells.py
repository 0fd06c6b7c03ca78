"""What the audit reads back of a release, cell by cell."""

import importlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

audit: Any = importlib.import_module("recordwise.audit.audit")


@pytest.mark.parametrize("missing", [None, 0, 2, 5])
def test_every_cell_from_the_first_to_the_last_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: int | None
) -> None:
    monkeypatch.setattr(audit.PolicyFile, "load", lambda path: SimpleNamespace(policy=lambda: path.name))
    monkeypatch.setattr(audit, "row_problems", lambda cells, layout: [])
    listed = [number for number in range(6) if number != missing]
    stray = 10**audit.WIDTH - 1
    codes = [audit.code(number) for number in (*listed, stray)]
    pq.write_table(pa.table({"cell": codes, "count": [10 * each for each in (*listed, 77)]}), tmp_path / "t.parquet")
    layout: Any = SimpleNamespace(count=6)
    found = audit.read_published_cells(tmp_path, layout)
    expected = np.array([np.nan if number == missing else 10.0 * number for number in range(6)])
    name = "t.count"
    np.testing.assert_array_equal(found.features[name], expected)
    if missing is None:
        assert "t is there" not in found.features
    else:
        np.testing.assert_array_equal(found.features["t is there"], np.where(np.isnan(expected), np.nan, 0.0))
    assert found.policy == "policy.json"
