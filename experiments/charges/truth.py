"""The true loss of lattice noise: mass functions and Renyi divergences written out here, sharing nothing with the policies.

A law on the integers with weights exp(-f(|k|)) is compared with itself shifted by n, in both directions, at orders from 1 to 1e5.
Integers near 0 and near n are added one by one; between and beyond them sums are integrals, in the logarithm of the distance from
the nearer one, where weights change by less than a millionth from one integer to the next.
"""

from collections.abc import Callable

import numpy as np

ONE_BY_ONE = 6000
DEEP = 75.0
PANEL_RATIO = 1.2
NODES, WEIGHTS = np.polynomial.legendre.leggauss(10)
ORDERS = 1 + np.geomspace(1e-6, 1e5, 110)
CLOSER = 25
Exponent = Callable[[np.ndarray], np.ndarray]


def fat_tailed(exponent: Exponent, shift: int) -> float:
    """The largest D_a/a; ``exponent`` is f(t) - f(0) at a number of lattice steps, as an array."""
    near, far, weight = _points(exponent, shift)
    log_p = np.log(weight) - exponent(near) - _log_total(exponent)
    log_q = np.log(weight) - exponent(far) - _log_total(exponent)
    ratio = exponent(far) - exponent(near)
    return max(_largest(log_p, ratio), _largest(log_q, -ratio))


def gaussian(sigma: float, shift: int) -> float:
    """The same for weights exp(-k**2/(2 sigma**2)), summed around the peak of p**a q**(1-a), which is at a times the shift."""
    apart = max(1, int(sigma / 16))
    around = np.arange(-40 * max(int(sigma), 1) - 40, 40 * max(int(sigma), 1) + 41, apart, dtype=np.float64)
    total = np.log(np.exp(-(around**2) / (2 * sigma**2)).sum())

    def divergence(order: float, moved: int) -> float:
        peak = np.round(order * moved)
        # -a k^2 - (1-a) (k-n)^2 at k = a n + e is a (a-1) n^2 - e^2, without the difference of two large numbers.
        off = around + (peak - order * moved)
        found = np.log(np.exp(-(off**2) / (2 * sigma**2)).sum()) - total
        return order * moved**2 / (2 * sigma**2) + found / (order - 1)

    # All orders that make the peak a whole number have the same D_a/a; close to 1 rounding is divided by a - 1.
    orders = np.append(ORDERS[(ORDERS > 1.01) & (ORDERS < 1e4)], [2.0, 3.0, 10.0])
    return max(divergence(float(a), moved) / float(a) for a in orders for moved in (shift, -shift))


def gaussian_tail(sigma: float, least: int) -> float:
    """The probability of at least ``least`` under weights exp(-k**2/(2 sigma**2)), smallest weights first."""
    reach = int(40 * sigma) + abs(least) + 1
    weights = np.exp(-(np.arange(-reach, reach + 1, dtype=np.float64) ** 2) / (2 * sigma**2))
    return float(np.sort(weights[reach + least :]).sum() / np.sort(weights).sum())


def _points(exponent: Exponent, shift: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Distances from 0 and from the shift, and how many integers a point stands for."""
    n = float(shift)
    single = np.arange(ONE_BY_ONE + 1, dtype=np.float64)
    beyond, counts = _arm(ONE_BY_ONE + 0.5, _reach(exponent))
    parts = [(beyond, n + beyond, counts), (n + beyond, beyond, counts)]
    if n > 2 * ONE_BY_ONE + 1:
        inner, inner_counts = _arm(ONE_BY_ONE + 0.5, n / 2)
        parts += [(inner, n - inner, inner_counts), (n - inner, inner, inner_counts)]
        ones = np.ones_like(single)
        for away in (single, -single[1:]):
            parts += [
                (np.abs(away), np.abs(n - away), ones[: len(away)]),
                (np.abs(n - away), np.abs(away), ones[: len(away)]),
            ]
    else:
        every = np.arange(-ONE_BY_ONE, shift + ONE_BY_ONE + 1, dtype=np.float64)
        parts.append((np.abs(every), np.abs(every - n), np.ones_like(every)))
    near, far, weight = (np.concatenate([part[i] for part in parts]) for i in range(3))
    return near, far, weight


def _arm(start: float, end: float) -> tuple[np.ndarray, np.ndarray]:
    """Points between two distances and how many integers each stands for."""
    panels = max(2, int(np.ceil(np.log(end / start) / np.log(PANEL_RATIO))))
    edges = np.linspace(np.log(start), np.log(end), panels + 1)
    half = np.diff(edges)[:, None] / 2
    place = np.exp(edges[:-1, None] + half * (1 + NODES))
    return place.ravel(), (place * half * WEIGHTS).ravel()


def _reach(exponent: Exponent) -> float:
    reach = ONE_BY_ONE * 2.0 ** np.arange(1, 200)
    return float(reach[np.searchsorted(exponent(reach), DEEP)])


def _log_total(exponent: Exponent) -> float:
    single = np.arange(1, ONE_BY_ONE + 1, dtype=np.float64)
    beyond, counts = _arm(ONE_BY_ONE + 0.5, _reach(exponent))
    return float(np.log(1 + 2 * (np.exp(-exponent(single)).sum() + (counts * np.exp(-exponent(beyond))).sum())))


def _largest(log_p: np.ndarray, ratio: np.ndarray) -> float:
    """The largest D_a/a over the orders, then over closer ones around the best."""
    found = [_divergence(log_p, ratio, a - 1) / a for a in ORDERS]
    best = int(np.argmax(found))
    low, high = ORDERS[max(best - 1, 0)], ORDERS[min(best + 1, len(ORDERS) - 1)]
    closer = 1 + np.geomspace(low - 1, high - 1, CLOSER)
    return float(max(max(found), *(_divergence(log_p, ratio, a - 1) / a for a in closer)))


def _divergence(log_p: np.ndarray, ratio: np.ndarray, less: float) -> float:
    """D of order 1 + less. For small exponents the mean of q/p - 1, which is 0, is added: what is left has one sign."""
    exponents = less * ratio
    if exponents.max() < 1:
        p = np.exp(log_p)
        more = np.where(np.abs(ratio) < 1, p * np.expm1(-np.clip(ratio, -1, 1)), np.exp(log_p - ratio) - p)
        return float(np.log1p(np.sum(p * np.expm1(exponents) + less * more)) / less)
    return float(np.logaddexp.reduce(log_p + exponents) / less)
