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
