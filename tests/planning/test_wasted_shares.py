"""What shares waste: by public sizes alone, and as much as a brute-force search says."""

import numpy as np
import pytest

import recordwise as rw
from recordwise.plan import Plan, Schema
from recordwise.planning.check import Known
from recordwise.planning.search.waste import wasted_variance

SIZES = [100, 200, 400, 800]
SCHEMA = Schema.of(unit="id", measures={"emp": 1}, columns={"county": "text", "naics": "text"})


def wasted(query):
    plan = Plan(schema=SCHEMA, queries=(query,))
    return wasted_variance(plan, Known(plan=plan, usual={}, last=None).public)


def counties(**more):
    keys = rw.Keys.of({"county": list("abcd"), "size": SIZES}, size={"emp": "size"}, sized_on="public: a table")
    return rw.query().levels((), "county", keys=keys, **more)


@pytest.mark.parametrize("shares", [None, ["0.1", "0.9"]])
def test_fitted_variances_decide_where_rests_are_published(shares):
    """Four counties and their rest below the total, by the formula of two levels (T-FITVAR), on a grid of shares."""
    given = {} if shares is None else {"share": shares}
    (found,) = wasted(counties(all_other="publish", **given).sum("emp", rw.Gaussian(sigma=50)))

    def worst(share):
        total, leaf = 1 / share, 1 / (1 - share)
        fitted = leaf * (1 - leaf / (5 * leaf + total)), 1 / (1 / total + 1 / (5 * leaf))
        return np.maximum(fitted[0] / 200**2, fitted[1] / 1500**2)

    least = worst(np.linspace(1e-4, 0.9999, 20_000)).min()
    assert found.equal == pytest.approx(worst(0.5) / least, rel=0.01)
    assert found.now == pytest.approx(worst(0.5 if shares is None else 0.1) / least, rel=0.01)
    (own,) = found.shares
    assert sum(own) == 1
    assert worst(float(own[0])) == pytest.approx(least, rel=0.01)


def test_noisy_answers_decide_where_records_may_be_in_no_listed_cell():
    (found,) = wasted(counties().sum("emp", rw.Gaussian(sigma=50)))
    need = np.array([1 / 1500**2, 1 / 200**2])
    assert found.equal == pytest.approx(2 * need.max() / need.sum(), rel=0.01)
    assert "equal shares would need" in found.text()
    assert "those of the plan need" in found.text()


def test_noise_that_follows_sizes_is_taken_by_cell():
    """The relative noise is the same at both levels but for the bands, so that equal shares are nearly best."""
    (found,) = wasted(counties().sum("emp", rw.Sized(rw.Gaussian(sigma="0.05"), floor=50)))
    bands = np.array([50 * 2.0 ** np.floor(np.log2(size / 50)) for size in (1500, 200)])
    need = (bands / np.array([1500, 200])) ** 2
    assert found.equal == pytest.approx(2 * need.max() / need.sum(), rel=0.01)


def test_nothing_is_said_where_nothing_is_known():
    keys = rw.Keys.of({"county": list("abcd")})
    assert wasted(rw.query().levels((), "county", keys=keys).sum("emp", rw.Gaussian(sigma=50))) == ()
    assert wasted(counties().sum("emp", rw.LogTransform(offset=10, sigma="0.2"))) == ()
    assert wasted(counties().count(rw.Gaussian(sigma=1))) == ()
