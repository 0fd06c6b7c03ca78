"""docs/architecture.md, "An engine": one file and one entry of the registry, and a session opens it by name."""

import sqlite3
from contextlib import closing

import pytest

import recordwise as rw
from engines.own_engine import SQLITE
from recordwise.engines.registry import ENGINES


@pytest.mark.filterwarnings("ignore::recordwise.errors.UnkeptLedgerWarning")
def test_a_session_opens_a_registered_engine_by_its_name(tmp_path, monkeypatch):
    file = tmp_path / "firms.db"
    with closing(sqlite3.connect(file)) as made:
        made.execute("CREATE TABLE firms (id INTEGER, county TEXT, emp INTEGER)")
        made.executemany("INSERT INTO firms VALUES (?, ?, ?)", [(1, "a", 5), (2, "a", 7), (3, "b", 900)])
        made.commit()
    how = {"unit": "id", "measures": {"emp": 1}, "columns": {"county": "text"}, "tuned_on": "synthetic"}
    with pytest.raises(rw.errors.ParameterError, match="'duckdb' or 'spark'"):
        rw.Session(f"{file}::firms", engine="sqlite", **how)
    monkeypatch.setitem(ENGINES, SQLITE.name, SQLITE)
    with rw.Session(f"{file}::firms", engine="sqlite", **how) as session:
        keys = rw.Keys.of({"county": ["a", "b"]})
        release = session.run(rw.query().group_by("county", keys=keys).sum("emp", rw.UnitSplit(at=1000, rho=10**9)))
    assert release.tables[0].data.column("sum_emp").to_pylist() == [12, 900]


def test_what_one_engine_needs_is_refused_for_another():
    with pytest.raises(rw.errors.ParameterError, match="engine='spark'"):
        rw.Session({"id": [1]}, unit="id", columns={}, spark="local[1]")
