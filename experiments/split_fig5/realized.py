"""What the tables really tell about a record or a firm: the squares of what it changes, cell by cell.

With Gaussian noise the realized loss is the sum over queries of (change of the answer)^2/(2 sigma^2). A record whose cell has too
few establishments to be asked changes nothing. Noise is the same at every NAICS level, so the squares are added up over levels
before any scheme is looked at.
"""

from dataclasses import dataclass

import numpy as np

import recordwise as rw
from experiments.establishments import MEASURES
from experiments.establishments_schemes import SPLITTING, share
from experiments.establishments_tables import ATTRIBUTES, OUTSIDE, Tables, pair_begins


@dataclass(frozen=True, slots=True, eq=False)
class Changes:
    """By attribute: the squared changes of one record or firm, added up over all queries."""

    squares: dict[str, np.ndarray]

    def losses(self, scheme: str, budget: int) -> np.ndarray:
        """The realized loss of each."""
        rates = loss_rates(scheme, budget)
        return np.asarray(sum(rates[name] * self.squares[name] for name in ATTRIBUTES))


def loss_rates(scheme: str, budget: int) -> dict[str, float]:
    """The loss of a change by 1 in each attribute."""
    part = share(budget)
    return {"estab": rw.Gaussian(rho=part).loss_at_shift(1)} | {
        name: rw.UnitSplit(at=SPLITTING[scheme][name], rho=part).loss_at_shift(1) for name in MEASURES
    }


def record_changes(made: Tables, levels: int | None = None) -> Changes:
    """Of every establishment, in the order of the records; in the first ``levels`` tables of each attribute alone."""
    asked = np.zeros(len(made.records))
    for level in made.levels[:levels]:
        asked += level.query != OUTSIDE
    sums = {name: asked * made.records.measures[name].astype(np.float64) ** 2 for name in MEASURES}
    return Changes({"estab": asked, **sums})


def firm_changes(made: Tables) -> Changes:
    """Of every firm leaving with all its establishments, firms in ascending order (T-CELLS)."""
    firm = made.records.firm[made.by_firm]
    number = np.cumsum(np.append(True, firm[1:] != firm[:-1])) - 1
    squares = {name: np.zeros(number[-1] + 1) for name in ATTRIBUTES}
    for level in made.levels:
        query = level.query[made.by_firm]
        first = np.flatnonzero(pair_begins(firm, query))
        inside = query[first] != OUTSIDE
        owner = number[first][inside]
        rows = np.diff(first, append=len(firm))[inside].astype(np.float64)
        squares["estab"] += np.bincount(owner, rows**2, minlength=len(squares["estab"]))
        for name in MEASURES:
            change = np.add.reduceat(made.records.measures[name][made.by_firm], first)[inside].astype(np.float64)
            squares[name] += np.bincount(owner, change**2, minlength=len(squares[name]))
    return Changes(squares)
