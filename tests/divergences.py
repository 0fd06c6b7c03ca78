"""Divergences of what is really drawn: mass functions of the laws a release hands to the sampler, on windows of the lattice.

Every sum below has terms that are not negative, so what lies outside the window can only be missing: a divergence found here is
never above the truth, and a formula that it exceeds is wrong.
"""

from contextlib import ExitStack
from functools import lru_cache
from unittest.mock import patch

import numpy as np

from recordwise.mechanisms import fat_tailed
from recordwise.mechanisms import gaussian as gaussian_noise
from recordwise.mechanisms import transformed as transforming
from recordwise.noise import Seeded

ORDERS = (1.0, 1.001, 1.5, 2.0, 5.0, 20.0)
ROUNDING = 1 + 1e-9


def renyi(log_p, log_q, order):
    """The divergence of one law from another; order 1 is that of Kullback and Leibler."""
    log_p, log_q = np.ravel(log_p), np.ravel(log_q)
    seen = log_p > -np.inf
    if np.any(log_q[seen] == -np.inf):
        return np.inf
    log_p, log_q = log_p[seen], log_q[seen]
    if order == 1:
        p, q = np.exp(log_p), np.exp(log_q)
        return float(np.sum(p * (log_p - log_q) - p + q))
    return float(np.logaddexp.reduce(order * log_p + (1 - order) * log_q)) / (order - 1)


def zcdp(log_p, log_q):
    """The largest D_a/a over the orders, in both directions: the loss is at least that."""
    return max(renyi(*pair, order) / order for order in ORDERS for pair in ((log_p, log_q), (log_q, log_p)))


def hockey_stick(log_p, log_q, epsilon):
    """The largest P(S) - e^epsilon Q(S), in both directions."""
    p, q = np.exp(np.ravel(log_p)), np.exp(np.ravel(log_q))
    return max(float(np.sum(np.maximum(one - np.exp(epsilon) * other, 0.0))) for one, other in ((p, q), (q, p)))


def log_pmf(law, points):
    """``law.log_pmf(points)``, read off a table: certified probabilities take microseconds each, and windows overlap."""
    reach = 1 << int(np.abs(points).max()).bit_length()
    if reach > 4 * len(points):
        return np.asarray(law.log_pmf(points))
    return _log_pmf(law, reach)[points + reach]


@lru_cache(maxsize=64)
def _log_pmf(law, reach):
    return np.asarray(law.log_pmf(np.arange(-reach, reach + 1)))


def handed_to_the_sampler(mechanism, total, step=1):
    """The lattice point and the law that the release of one total draws with."""
    seen = []

    def spy(points, law, source):
        seen.append((int(points[0]), law))
        return points

    with ExitStack() as stack:
        for module in (gaussian_noise, fat_tailed, transforming):
            stack.enter_context(patch.object(module, "noised", spy))
        mechanism.release([total], step=step, rng=Seeded(1))
    ((point, law),) = seen
    return point, law


def published(mechanism, total, reach, step=1):
    """Log-probabilities of what is published for a cell, at the lattice points from -reach to reach."""
    point, law = handed_to_the_sampler(mechanism, total, step)
    return log_pmf(law, np.arange(-reach, reach + 1) - point)


def both_cells(first, second):
    """The joint law of two cells, drawn independently."""
    return first[:, None] + second[None, :]


def selected(law, pieces, reach=60):
    """Log-probabilities of what is seen of one key: not published, then the numbers from the threshold on."""
    if pieces == 0:
        return np.append(0.0, np.full(reach, -np.inf))
    shown = log_pmf(law.noise, law.threshold + np.arange(reach) - pieces)
    hidden = float(law.noise.log_cdf(law.threshold - 1 - pieces))
    return np.append(hidden, shown)
