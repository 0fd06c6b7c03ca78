"""An independent exact sampler, compared by chi-square."""

from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from build import few
from recordwise.noise import DiscreteGaussian, DiscreteLaplace, LatticeLaw

opendp = pytest.importorskip("opendp.prelude", reason="the opendp extra is not installed")
SIZE = 100_000
FALSE_ALARM = 1e-9
"""A scale 10 % off moves the statistic from about 80 to 500 or more; 1e-9 is reached at about 170."""


def theirs(kind: str, scale: float) -> np.ndarray:
    opendp.enable_features("contrib")
    space = (
        opendp.vector_domain(opendp.atom_domain(T=int)),
        (opendp.l2_distance if kind == "gaussian" else opendp.l1_distance)(T=int),
    )
    make = opendp.m.make_gaussian if kind == "gaussian" else opendp.m.make_laplace
    return np.array(make(*space, scale=scale)([0] * SIZE))


def p_value(mine: np.ndarray, other: np.ndarray) -> float:
    """Two samples against each other, in cells that hold at least 40 of both together."""
    edges = np.unique(np.quantile(np.concatenate([mine, other]), np.linspace(0, 1, 80)).astype(np.int64))
    counts = np.stack(
        [np.bincount(np.searchsorted(edges, sample), minlength=len(edges) + 1) for sample in (mine, other)]
    )
    counts = counts[:, counts.sum(axis=0) >= 40]
    return float(stats.chi2_contingency(counts).pvalue)


@pytest.mark.parametrize("scale", few([50.0, 1.0], 1))
@pytest.mark.parametrize("kind, law", [("gaussian", DiscreteGaussian), ("laplace", DiscreteLaplace)])
@pytest.mark.costly
def test_two_independent_exact_samplers_cannot_be_told_apart_but_a_scale_ten_percent_off_can(
    kind: str, law: Callable[[float], LatticeLaw], scale
):
    other = theirs(kind, scale)
    assert p_value(law(scale).sample(SIZE), other) > FALSE_ALARM
    assert p_value(law(scale * 1.1).sample(SIZE), other) < FALSE_ALARM
