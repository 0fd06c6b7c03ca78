"""Random small tables over two trees, with contributors, and slow exact ways to attack them."""

from itertools import product
from typing import Any

import numpy as np
from scipy.optimize import linprog

from recordwise.disclosure.cells import Cells, Dimension
from recordwise.disclosure.rules import Contributions


def two_trees(rng: np.random.Generator, places: int, industries: int) -> tuple[Dimension, Dimension]:
    """A flat list of places and industries in two sectors."""
    first = Dimension.from_levels("place", [(f"p{number}",) for number in range(places)])
    rows = [(f"s{int(rng.integers(2))}", f"i{number}") for number in range(industries)]
    return first, Dimension.from_levels("industry", rows)


def made_cells(trees: tuple[Dimension, ...]) -> Cells:
    """All cells of the product of the trees."""
    codes = [np.arange(len(each.codes)) for each in trees]
    return Cells.closed(trees, np.array(list(product(*codes))))


def leaves(cells: Cells) -> Any:
    """The positions of the cells without children."""
    finest = [~np.isin(np.arange(len(each.codes)), each.trees[0]) for each in cells.dimensions]
    return np.flatnonzero(np.all([own[cells.codes[:, at]] for at, own in enumerate(finest)], axis=0))


def sums_of_leaves(cells: Cells) -> Any:
    """A matrix from the finest cells to all cells, made from ancestors instead of equations."""
    above = []
    for each in cells.dimensions:
        own = np.eye(len(each.codes), dtype=bool)
        for code in range(len(each.codes)):
            reached = code
            while each.trees[0][reached] >= 0:
                reached = each.trees[0][reached]
                own[reached, code] = True
        above.append(own)
    fine = leaves(cells)
    found = np.ones((len(cells), len(fine)), bool)
    for at, own in enumerate(above):
        found &= own[np.ix_(cells.codes[:, at], cells.codes[fine, at])]
    return found.astype(float)


def contributions(rng: np.random.Generator, cells: Cells, *, most: int = 3, size: float = 4.0) -> Contributions:
    """Random contributors in the finest cells, and those of all totals."""
    fine, matrix = leaves(cells), sums_of_leaves(cells)
    own = [np.floor(rng.pareto(1.2, int(rng.integers(0, most + 1))) * size) + 1 for _ in fine]
    merged = [np.sort(np.concatenate([[0.0, 0.0], *(own[at] for at in np.flatnonzero(row))]))[::-1] for row in matrix]
    return Contributions(
        np.array([float((each > 0).sum()) for each in merged]),
        np.array([each.sum() for each in merged]),
        np.array([each[0] for each in merged]),
        np.array([each[1] for each in merged]),
        np.zeros(len(cells), bool),
    )


def enumerated(cells: Cells, low: Any, high: Any, most: int) -> Any:
    """Every table of whole numbers that agrees with the bounds, one in a row."""
    matrix = sums_of_leaves(cells)
    fine = leaves(cells)
    ranges = [range(int(low[at]), int(min(high[at], most)) + 1) for at in fine]
    tables = np.array(list(product(*ranges)), float) @ matrix.T
    return tables[np.all((tables >= low) & (tables <= high), axis=1)]


def by_leaves(cells: Cells, low: Any, high: Any, target: int) -> tuple[float, float]:
    """The feasible interval of a cell by another formulation: the finest cells are the unknowns, and another solver's front end."""
    matrix = sums_of_leaves(cells)
    capped = np.isfinite(high)
    found = []
    for sign in (1.0, -1.0):
        solved = linprog(
            sign * matrix[target],
            A_ub=np.concatenate([matrix[capped], -matrix]),
            b_ub=np.concatenate([high[capped], -low]),
            method="highs-ipm",
        )
        found.append(sign * float(solved.fun or 0.0) if solved.status == 0 else sign * -np.inf)
    return found[0], found[1]
