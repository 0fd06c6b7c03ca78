"""What notes of basic tables say about bias: estimated for the release itself, from public numbers alone."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import recordwise as rw
from build import employers
from recordwise.noise import Seeded
from recordwise.release.basic import bias_text
from recordwise.release.tables import BasicNote, ClassBias

PLACES, CODES = [f"{n:02d}" for n in range(6)], [f"{n:02d}" for n in range(60)]
SIGMA, LIMITS = 10, (0.0, 1.0, 3.0, 10.0, None)


def totals(empty: float, middle: float) -> Any:
    """Places by codes; a share of the cells is empty."""
    rng = np.random.default_rng(3)
    sizes = np.floor(np.exp(rng.normal(middle, 1.8, (6, 60))))
    return np.where(rng.random((6, 60)) > empty, sizes, 0).astype(np.int64)


def release(cells: Any, seed: int, *, crossed: bool) -> rw.Release:
    place, code = np.nonzero(cells)
    table = pa.table(
        {
            "id": np.arange(len(place)),
            "emp": cells[place, code],
            "place": np.array(PLACES)[place],
            "code": np.array(CODES)[code],
        }
    )
    keys = rw.Keys.product(place=PLACES, code=CODES)
    by = rw.query().levels((), "place") if crossed else rw.query().group_by("place")
    asked = by.levels((), rw.prefix("code", 1), "code", keys=keys).sum("emp", rw.Gaussian(sigma=SIGMA), alias="emp")
    with employers(table, ledger=None) as session:
        return session.run(asked, rng=Seeded(seed))


def exact(cells: Any, table: Any) -> Any:
    """The totals of the cells of a published table, in its order."""
    kinds = {"place": [0, np.arange(6)], "code": [1, np.arange(60)], "code1": [1, np.arange(60) // 10]}
    sums = cells
    for axis, name in ((1, "code1" if "code1" in table.keys else "code"), (0, "place")):
        if name not in table.keys:
            sums = sums.sum(axis=axis, keepdims=True)
        elif name == "code1":
            sums = np.add.reduceat(sums, np.arange(0, 60, 10), axis=1)
    assert set(table.keys) <= kinds.keys()
    return sums.ravel()


@pytest.mark.filterwarnings("ignore::recordwise.errors.UnkeptLedgerWarning")
@pytest.mark.parametrize(
    ("empty", "middle", "crossed"), [(0.4, 2.5, False), (0.0, 4.0, False), (0.8, 3.0, False), (0.4, 2.5, True)]
)
@pytest.mark.costly
def test_the_bias_in_notes_is_that_of_releases_drawn_again_from_the_same_records(empty, middle, crossed) -> None:
    """Four releases with fixed seeds; the mean of fit - best by class of the exact totals is the bias."""
    cells, said, found = totals(empty, middle), np.zeros((2, 5)), np.zeros((2, 5))
    for seed in range(4):
        fitted = release(cells, seed, crossed=crossed).consistent(complete=True)
        assert fitted.published.fit is not None
        for each in fitted.published.fit.fits["q1:emp"].left:
            said[:, LIMITS.index(each.up_to)] += each.bias, 1
        for table in fitted.tables:
            fit, best, sd = (table.data.column(f"emp_{end}").to_numpy() for end in ("fit", "best", "best_sd"))
            number = np.searchsorted(LIMITS[:-1], exact(cells, table) / sd)
            np.add.at(found[0], number, (fit - best) / sd)
            np.add.at(found[1], number, 1)
    enough = found[1] > 4 * 20
    difference = (said[0] / said[1] - found[0] / found[1])[enough]
    assert np.abs(difference).max() < 0.13
    assert np.abs(found[0] / found[1])[enough].max() > 0.1


@pytest.mark.filterwarnings("ignore::recordwise.errors.UnkeptLedgerWarning")
@pytest.mark.costly
def test_the_note_of_a_basic_table_states_it_by_size_class_and_says_the_same_again(tmp_path) -> None:
    made = release(totals(0.4, 2.5), 1, crossed=False)
    basic, again = (made.basic(complete=True) for _ in range(2))
    notes = [each.published.basic for each in (basic, again)]
    assert notes[0] is not None
    assert notes[0] == notes[1]
    text = notes[0].bias_of(1, "emp")
    assert "Estimated for this release" in text
    assert "cells of 0 are 0.1" in text
    assert "standard errors of emp_best" in text
    saved = rw.read(basic.save(tmp_path / "out")).published
    assert saved.basic == notes[0]
    assert saved.fit == basic.published.fit
    assert basic.published.fit is not None
    assert basic.published.fit.fits["q1:emp"].left[0].up_to == 0
    assert made.consistent(method="ols", complete=True).published.fit.fits["q1:emp"].left == ()  # type: ignore[union-attr]


def test_words_of_classes_and_notes_of_earlier_versions() -> None:
    classes = (ClassBias(up_to=0.0, cells=9, bias=0.123), ClassBias(up_to=1.0, cells=5, bias=-0.04))
    text = bias_text((*classes, ClassBias(up_to=None, cells=2, bias=0.001)))
    assert text.endswith(
        "cells of 0 are 0.12 too high, cells of 0 to 1 standard errors are 0.04 too low, cells of more than 1 are not off on "
        "average, in standard errors of NAME_best."
    )
    old = BasicNote.read(
        {
            "tables": {},
            "rounded_to": {},
            "largest_change": {},
            "status": {"limits": {"good": 0.1}, "otherwise": "x", "withheld": []},
            "digest": "d",
            "bias": "NAME is off",
        }
    )
    assert old.bias_of(1, "emp") == "emp is off"
    assert old.to_json()["bias"] == "NAME is off"
