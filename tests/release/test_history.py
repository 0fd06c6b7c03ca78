"""Cells over the published periods: from released tables alone, kept with the release, refused where that is not sure."""

import json

import numpy as np
import pytest

import recordwise as rw
from build import COUNTIES, generous, records, session
from recordwise.noise import Seeded


def released(place, period, counties=COUNTIES, **how):
    with session(records(300), place, generous(), series=rw.Series(name="yearly", period=period)) as opened:
        asked = rw.query().group_by("county", keys=rw.Keys.product(county=counties)).count(rw.Gaussian(rho="0.1"))
        return opened.run(asked.sum("emp", rw.UnitSplit(at=50, rho="0.1")), **how)


@pytest.fixture
def place(tmp_path):
    return tmp_path / "yearly.ledger"


def past(release, period, column):
    """What the history says of each cell, by county."""
    history, (table,) = release.history, release.tables
    order = np.argsort(-table.data.column("count").to_numpy(), kind="stable")
    counties = [table.data.column("county").to_pylist()[at] for at in order]
    names = [(name, each, end) for name in table.variables for each in history.periods for end in ("", "_low", "_high")]
    name, end = column
    found = history.tables[table.name][names.index((name, period, end))].values()
    return dict(zip(counties, found, strict=True))


@pytest.mark.costly
def test_each_cell_has_what_was_published_about_it_before(place) -> None:
    first, second = released(place, "2024"), released(place, "2025", COUNTIES[:3])
    now = released(place, "2026", [*COUNTIES, "05"]).with_history(first, second)
    for earlier, period in ((first, "2024"), (second, "2025")):
        known = {row["county"]: row for row in earlier.table.to_pylist()}
        for column in (("count", ""), ("sum_emp", "_low"), ("sum_emp", "_high")):
            for county, value in past(now, period, column).items():
                wanted = known.get(county, {}).get("".join(column))
                assert value == (None if wanted is None else pytest.approx(wanted, rel=1e-5))
    assert past(now, "2025", ("count", ""))["04"] is None


@pytest.mark.costly
def test_a_release_that_is_loaded_again_makes_the_same_page(place, tmp_path) -> None:
    now = released(place, "2026").with_history(released(place, "2025"))
    now.save(tmp_path / "out")
    rw.read(tmp_path / "out").save(tmp_path / "again")
    for name in ("report.html", "release.json"):
        assert (tmp_path / "out" / name).read_bytes() == (tmp_path / "again" / name).read_bytes()
    kept = json.loads((tmp_path / "out" / "release.json").read_text())["page"]["history"]
    assert kept["periods"] == ["2025"]
    assert "history-chart" in (tmp_path / "out" / "report.html").read_text()


def test_a_page_without_earlier_periods_has_no_chart_of_them(place, tmp_path) -> None:
    alone = released(place, "2026").save(tmp_path / "out")
    assert "history-chart" not in (alone / "report.html").read_text()


def test_releases_that_are_not_private_or_of_one_period_are_refused(place) -> None:
    now, before = released(place, "2026"), released(place, "2025")
    seeded = released(place, "2024", rng=Seeded(1))
    with session(records(300), None, generous()) as opened:
        asked = rw.query().group_by("county", keys=rw.Keys.product(county=COUNTIES))
        undated = opened.run(asked.count(rw.Gaussian(rho="0.1")))
    refusals = {"NOT PRIVATE": [seeded], "one period": [before, before], "two releases": [now], "no period": [undated]}
    for problem, earlier in refusals.items():
        with pytest.raises(rw.errors.ParameterError, match=problem):
            now.with_history(*earlier)
