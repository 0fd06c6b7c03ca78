"""The older rules beside our plans: contributors as counted one by one, and an attack that misses the truth is noticed."""

import numpy as np
import pytest

from experiments.comparison import run
from experiments.comparison.tables import Tables, generated


@pytest.fixture(scope="module")
def small() -> Tables:
    return generated(20_000)


def test_contributors_of_every_cell_are_those_counted_one_by_one(small: Tables) -> None:
    rng = np.random.default_rng(2)
    names = [each.codes for each in small.cells.dimensions]
    records = small.records.to_pylist()
    for cell in rng.choice(len(small.cells), 25, replace=False):
        place, industry = (codes[at] for codes, at in zip(names, small.cells.codes[cell]))
        own = sorted(
            (
                each["emp"]
                for each in records
                if each["county"].startswith(place) and each["naics"].startswith(industry)
            ),
            reverse=True,
        )
        found = small.found
        assert (found.number[cell], found.total[cell], found.largest[cell]) == (len(own), sum(own), own[0])
        assert found.second[cell] == (own[1] if len(own) > 1 else 0)
    assert np.abs(small.cells.equations(absent_is_zero=True) @ small.found.total).max() == 0


def test_every_rule_is_measured_and_attacked(small: Tables, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "MOST", 5)
    targets = run.Targets.chosen(small, 1)
    found = {name: run.older(small, targets, name, 1)[0] for name in (*run.METHODS, run.MULTIPLIED)}
    assert found[run.SUPPRESSION].usable == pytest.approx(1 - found[run.SUPPRESSION].withheld)
    assert 0 < found[run.SUPPRESSION].withheld_total < 1
    assert found["rounding to 10"].withheld == found["ranges"].withheld == 0
    assert found["rounding to 10"].shown()["method"] == "rounding to 10"


def test_an_attack_that_misses_the_truth_is_noticed(small: Tables, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "MOST", 5)
    right = run.multiplied
    monkeypatch.setattr(run, "multiplied", lambda given, seed: 2.0 * right(given, seed))
    with pytest.raises(AssertionError, match="multiplicative"):
        run.older(small, run.Targets.chosen(small, 1), run.MULTIPLIED, 1)


def test_an_insider_knows_what_exact_totals_give_away_and_no_more(
    small: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "MOST", 5)
    targets = run.Targets.chosen(small, 1)
    assert np.array_equal(small.emp[targets.records], targets.largest)
    assert np.array_equal(small.within[-1][targets.records], targets.cells)
    found = {name: run.older(small, targets, name, 1)[0] for name in ("ranges", "rounding to 10", run.MULTIPLIED)}
    assert found["ranges"].close_inside == 1
    assert np.nanmax(found["ranges"].inside) == 0
    rounded = found["rounding to 10"].inside
    assert 0 < np.nanmax(rounded) <= 10 / targets.largest.min()
    assert found[run.MULTIPLIED].close_inside == 0


@pytest.mark.costly
def test_a_plan_leaves_an_insider_what_its_policy_says(small: Tables, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "MOST", 3)
    monkeypatch.setattr(run, "SIGMAS", ("0.1", "0.2"))
    rows = run.plans(small, run.Targets.chosen(small, 1), 1)
    for less, more in zip(rows[0].inside, rows[1].inside):
        assert np.isnan(less) or less < more
    assert rows[0].usable > rows[1].usable
