"""The three bounds on a firm's loss from the losses of its establishments, for millions of firms at once.

``rw.policy.group_loss`` computes the same for one firm with outward rounding; a test holds them together.
"""

import numpy as np

RATIOS = 1 + np.geomspace(1e-4, 1e4, 161)
"""The k of Lemma 5 that are tried. Each gives a valid bound; the best of them is within 1 % of the infimum."""


def firm_starts(firm: np.ndarray) -> np.ndarray:
    """Where each firm begins in records that are sorted by firm."""
    return np.flatnonzero(np.append(True, firm[1:] != firm[:-1]))


def simple(losses: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Lemma 4: the number of records times the sum of their losses."""
    return np.diff(starts, append=len(losses)) * np.add.reduceat(losses, starts)


def tight(losses: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """T-GROUP: the square of the sum of roots."""
    return np.add.reduceat(np.sqrt(losses), starts) ** 2


def advanced(losses: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Lemma 5: the least over k of sum_j k^j/(k-1) P_j, losses descending; for one record its own loss."""
    sizes = np.diff(starts, append=len(losses))
    bounds = np.add.reduceat(losses, starts)
    several = sizes > 1
    member = np.repeat(several, sizes)
    owner = np.repeat(np.arange(np.sum(several)), sizes[several])
    inside = losses[member][np.lexsort((-losses[member], owner))]
    begins = np.cumsum(sizes[several]) - sizes[several]
    place = np.arange(len(inside)) - np.repeat(begins, sizes[several]) + 1
    bounds[several] = least_over_ratios(inside, place, begins)
    return bounds


def least_over_ratios(losses: np.ndarray, place: np.ndarray, begins: np.ndarray) -> np.ndarray:
    """Powers that leave the floats are infinite: another k decides."""
    best = np.full(len(begins), np.inf)
    if not len(begins):
        return best
    with np.errstate(over="ignore"):
        for ratio in RATIOS:
            terms = np.exp(place * np.log(ratio)) * losses
            np.minimum(best, np.add.reduceat(terms, begins) / (ratio - 1), out=best)
    return best


BOUNDS = {"simple": simple, "advanced": advanced, "tight": tight}
