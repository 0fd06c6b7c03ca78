r"""The problem behind every fit, and what a solver of it returns.

    minimize  1/2 sum_i d_i (x_i - a_i)^2 + 1/2 sum_q w_q (z_q - b_q)^2
    subject to  z = M x,  low <= x <= high,  floor <= z <= ceiling

Cells measured directly give d and a; the other queries are the rows of M. NNLS has low = 0 and no other bound; a total held
held fixed has floor = ceiling. With multipliers y for z = M x the solution is x = clip(a + M'y/d), z = clip(b - y/w), and y is the
root of the monotone, piecewise linear F(y) = M x(y) - z(y) (T-DUAL, docs/theory/postprocess.md).
"""

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any, Protocol, TypeAlias

import numpy as np
import scipy
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]

LEVELS = ((1e-3, 1e-7), (1.0, 1.0))
"""Proximal weights on held queries and on cells, relative to the curvature, in the first round and in all later ones."""
LOOSE_LEVELS = ((1e-3, 1e-5), (1e-2, 1e-4))
"""The same if cells are not measured; smaller weights would leave too few digits."""
INNER_TOLERANCE = 3e-14
"""Relative mismatch at which a Newton run stops; rounding seldom allows less."""
OUTER_TOLERANCE = 1e-11
"""Relative mismatch left by the proximal term at which the rounds stop."""
SMALL = 1e-12
"""Below this, or once it no longer halves the mismatch, a full step that stayed on its linear piece is the last one."""
NEAR = 1e-9
"""Below this, a step that does not halve the mismatch is the last one, for the same reason."""
MAX_STEPS = 500
MAX_ROUNDS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxedProblem:
    """The data of the problem, one row per draw or shared."""

    precision: FloatArray
    """d; zero for a cell that was not measured directly."""
    target: FloatArray
    low: FloatArray
    high: FloatArray
    weight: FloatArray
    answer: FloatArray
    floor: FloatArray
    ceiling: FloatArray

    @property
    def draws(self) -> int:
        return max(len(self.target), len(self.answer), len(self.floor))

    def take(self, chosen: IntArray) -> "BoxedProblem":
        """The problem of some of the draws."""
        return BoxedProblem(**{name: rows_of(getattr(self, name), chosen) for name in BoxedProblem.__slots__})

    @property
    def arrays(self) -> tuple[FloatArray, ...]:
        """All parts, in order."""
        return tuple(getattr(self, name) for name in BoxedProblem.__slots__)

    @property
    def bounded(self) -> FloatArray:
        """1 for each query with a bound, which needs a proximal term."""
        return (np.isfinite(self.floor) | np.isfinite(self.ceiling)).astype(np.float64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Solution:
    """What a solver found for each draw."""

    x: FloatArray
    y: FloatArray
    iterations: IntArray


Solver: TypeAlias = Callable[[FloatArray], FloatArray]
"""Solves a factored Newton system for one right-hand side per draw."""


class System(Protocol):
    """An operator with a solver.

    For the rows M, it solves (M diag(response) M' + diag(diagonal)) step = right.
    """

    @property
    def queries(self) -> int: ...
    @property
    def exact(self) -> bool:
        """Whether its solver is exact up to rounding."""

    def sums(self, x: FloatArray, /) -> FloatArray: ...
    def spread(self, y: FloatArray, /) -> FloatArray: ...
    def powers(self, exponent: int, /) -> "System":
        """The same rows with |coefficient|^exponent."""

    def take(self, chosen: IntArray, /) -> "System": ...
    def solver(self, response: FloatArray, diagonal: FloatArray, /) -> Solver: ...


def rows_of(array: FloatArray, chosen: IntArray | slice) -> FloatArray:
    """The chosen rows; a shared row stays shared."""
    return array if len(array) == 1 else array[chosen]


def curvature(problem: BoxedProblem, system: System) -> tuple[FloatArray, FloatArray]:
    """Return the diagonals that scale the proximal terms.

    Of the primal Hessian per cell, and of the dual Hessian per query; ones if no proximal term is needed.
    """
    if np.all(problem.precision > 0) and not np.any(problem.bounded):
        return np.ones((1, problem.precision.shape[1])), np.ones((1, system.queries))
    squares = system.powers(2)
    cells = problem.precision + squares.spread(problem.weight * np.isinf(problem.floor))
    cells = np.where(cells > 0, cells, 1.0)
    return cells, squares.sums(1.0 / np.where(problem.precision > 0, problem.precision, cells))


def proximal_weights(problem: BoxedProblem) -> tuple[tuple[float, float], tuple[float, float]]:
    """The proximal weights a problem needs."""
    return LEVELS if np.all(problem.precision > 0) else LOOSE_LEVELS


# Matrices here are small and many. The threads of a matrix library wait for each other by spinning, so that on busy cores
# they take a hundred times as long as one.


@contextmanager
def one_thread() -> Iterator[None]:
    """Let matrix libraries use one thread for a while.

    The setting is one for the process: of several callers at once the first changes it and the last restores it.
    """
    with _LIMITED.lock:
        if not _LIMITED.callers:
            _LIMITED.before = [(write, read()) for read, write in _matrix_libraries()]
            for write, _ in _LIMITED.before:
                write(1)
        _LIMITED.callers += 1
    try:
        yield
    finally:
        with _LIMITED.lock:
            _LIMITED.callers -= 1
            if not _LIMITED.callers:
                for write, before in _LIMITED.before:
                    write(before)


class _Limited:
    """Who has limited the threads of matrix libraries, and what they were."""

    def __init__(self) -> None:
        self.lock, self.callers = Lock(), 0
        self.before: list[tuple[Any, int]] = []


_LIMITED = _Limited()


@cache
def _matrix_libraries() -> list[tuple[Any, Any]]:
    """How the threads of numpy's and scipy's OpenBLAS are set."""
    folders = [Path(str(module.__file__)).parent for module in (np, scipy)]
    named = [folder.with_name(f"{folder.name}.libs") for folder in folders] + [each / ".dylibs" for each in folders]
    found = []
    for path in [each for folder in named if folder.is_dir() for each in folder.glob("*openblas*")]:
        library = ctypes.CDLL(str(path))
        for ends in [(start, end) for start in ("scipy_", "") for end in ("64_", "")]:
            names = [f"{ends[0]}openblas_{verb}_num_threads{ends[1]}" for verb in ("get", "set")]
            if all(hasattr(library, name) for name in names):
                found.append((getattr(library, names[0]), getattr(library, names[1])))
                break
    return found
