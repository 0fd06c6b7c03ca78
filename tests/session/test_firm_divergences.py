"""What is stated about a firm, held against what a run hands to the sampler with all its establishments and without them."""

from contextlib import ExitStack
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest

import build
import recordwise as rw
from build import few
from divergences import ORDERS, ROUNDING, log_pmf, renyi
from recordwise.mechanisms import fat_tailed, quantile
from recordwise.mechanisms import gaussian as gaussian_noise
from recordwise.mechanisms import transformed as transforming
from recordwise.mechanisms.base import noised
from recordwise.noise import DiscreteGaussian, Seeded

OTHERS = 40
COUNTIES, CODES = ["01", "02", "03"], ["111", "112", "221"]
REACH = 2500
MOST_EMP = 30
AT = rw.by("county", {"01": 5}, default=25)
SUMS = [
    rw.Gaussian(sigma=9),
    rw.UnitSplit(at=10, rho="0.2"),
    rw.UnitSplit(at=AT, rho="0.2"),
    rw.Clamped(to=6, rho="0.3"),
    rw.GeneralizedGaussian(shape=1, scale=15, lattice=1),
    rw.GeneralizedGaussian(shape="1/2", scale=3, lattice=1),
    rw.Polylog(power=2, rate=1, offset=3, scale=4, lattice=1),
    rw.LogTransform(offset=4, sigma="1/2"),
    rw.RootTransform(degree=2, offset=1, sigma="1/2"),
]


def table(chance, firm_units):
    """Records of other firms, then those of firm 0."""
    rows = OTHERS + firm_units
    return {
        "id": np.arange(rows),
        "firm": np.where(np.arange(rows) < OTHERS, chance.integers(1, 30, rows), 0),
        "county": chance.choice([*COUNTIES, "99"], rows),
        "naics": chance.choice(CODES, rows),
        "emp": chance.integers(0, MOST_EMP, rows),
        "pay": chance.integers(0, 90, rows),
    }


def random_query(chance):
    """A table or several levels of one, with a few statistics and perhaps a condition."""
    keys = rw.Keys.product(county=COUNTIES, naics=CODES)
    asked = rw.query().group_by("county", keys=keys)
    asked = asked.levels(rw.prefix("naics", [1, 3])) if chance.random() < 0.4 else asked.group_by("naics", keys=keys)
    if chance.random() < 0.4:
        asked = rw.query().group_by("county", keys=rw.Keys.of({"county": COUNTIES}))
    if chance.random() < 0.3:
        asked = asked.where(chance.choice(["emp > 10", "naics <> '111'", "pay < 60 or county = '01'"]))
    for number in range(chance.integers(1, 3)):
        asked = asked.sum(chance.choice(["emp", "pay"]), SUMS[chance.integers(len(SUMS))], alias=f"s{number}")
    if chance.random() < 0.5:
        asked = asked.count(rw.Gaussian(rho="0.05"))
    if chance.random() < 0.3:
        asked = asked.count_distinct("firm", rw.Gaussian(rho="0.04"))
    if chance.random() < 0.3:
        asked = asked.quantile("emp", p="0.5", grid=rw.mechanisms.Grid.linear(0, MOST_EMP, bits=4), rho="0.2")
    return asked


def handed_over(rows, queries, how):
    """The exact points and the laws of everything that a run draws; and what it states."""
    seen = []

    def spy(points, law, source):
        seen.append((np.asarray(points, np.int64), law))
        return noised(points, law, source)

    def nodes(sigma):
        law = DiscreteGaussian(sigma)
        return SimpleNamespace(add_to=lambda points, source: spy(points, law, source))

    with ExitStack() as stack:
        for module in (gaussian_noise, fat_tailed, transforming):
            stack.enter_context(patch.object(module, "noised", spy))
        stack.enter_context(patch.object(quantile, "DiscreteGaussian", nodes))
        session = stack.enter_context(build.session(pa.table(rows), max_outside="accept", **how))
        release = session.run(*queries, rng=Seeded(3))
    return seen, release


def divergences(there, gone):
    """D_a/a of everything drawn, at each order and in both directions: numbers drawn independently add up."""
    window, found = np.arange(-REACH, REACH + 1), np.zeros((2, len(ORDERS)))
    for (points, law), (before, same) in zip(there, gone, strict=True):
        assert law == same
        for shift in (points - before)[points != before].tolist():
            if isinstance(law, DiscreteGaussian):
                # The same at every order that makes a times the shift a whole number.
                found += float(shift**2 / (2 * law.sigma**2))
                continue
            p, q = (log_pmf(law, window - at) for at in (shift, 0))
            found += [[renyi(*pair, order) / order for order in ORDERS] for pair in ((p, q), (q, p))]
    return found.max()


@pytest.mark.theorem("T-CELLS")
@pytest.mark.parametrize("plans", few([4, 8], 1))
@pytest.mark.costly
def test_no_firm_loses_more_by_a_random_plan_than_is_stated_for_it(opens, plans: int) -> None:
    """On both engines; that the losses of its establishments added up are too small shows that the check has teeth."""
    chance = np.random.default_rng(64)
    how, exceeded = opens.session_options(), 0
    for _ in range(plans if opens.name == "duckdb" else plans // 2):
        units = int(chance.integers(2, 9))
        rows = table(chance, units)
        queries = [random_query(chance) for _ in range(chance.integers(1, 3))]
        own = {name: column[OTHERS:] for name, column in rows.items()}
        there, release = handed_over(rows, queries, how)
        gone, _ = handed_over({name: column[:OTHERS] for name, column in rows.items()}, queries, how)
        truth, stated = divergences(there, gone), release.firms.loss(own)
        assert truth <= stated.rho * ROUNDING
        assert stated.rho <= np.sqrt(release.policy.loss(own)).sum() ** 2 * ROUNDING
        exceeded += truth > release.policy.loss(own).sum() * 1.01
        with build.session(pa.table(own), max_outside="accept", **how) as alone:
            counted = alone.owner.firm_loss_summary(*queries)
        assert counted.counts.sum() == 1
        assert counted.quantile(1.0) * ROUNDING >= stated.rho
    assert exceeded >= 1
