"""Newton systems too large and too irregular to factor: conjugate gradients on the queries, one pass over the cells a step."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, TypeAlias

import numpy as np

from recordwise.postprocess.solvers.boxed import FloatArray, IntArray, Solver

Precondition: TypeAlias = Callable[[FloatArray], FloatArray]
ACCURACY = 1e-2
"""How far one Newton system is solved; Newton's method makes up for the rest."""
MOST_STEPS = 2000


class Operator(Protocol):
    """The rows of M for one table."""

    @property
    def queries(self) -> int: ...
    @property
    def cells(self) -> int: ...
    def sums(self, x: FloatArray, /) -> FloatArray: ...
    def spread(self, y: FloatArray, /) -> FloatArray: ...
    def powers(self, exponent: int, /) -> "Operator": ...
    def precondition(self, response: FloatArray, diagonal: FloatArray) -> Precondition: ...


@dataclass(frozen=True, kw_only=True, eq=False)
class SparseRows:
    """Any sparse rows, with a diagonal preconditioner."""

    rows: Any

    @cached_property
    def columns(self) -> Any:
        return self.rows.T.tocsr()

    @property
    def queries(self) -> int:
        return int(self.rows.shape[0])

    @property
    def cells(self) -> int:
        return int(self.rows.shape[1])

    def sums(self, x: FloatArray, /) -> FloatArray:
        return np.asarray(self.rows @ x)

    def spread(self, y: FloatArray, /) -> FloatArray:
        return np.asarray(self.columns @ y)

    def powers(self, exponent: int, /) -> "SparseRows":
        return SparseRows(rows=abs(self.rows).power(exponent))

    def precondition(self, response: FloatArray, diagonal: FloatArray) -> Precondition:
        scale = 1.0 / (self.powers(2).sums(response) + diagonal)
        return lambda right: scale * right


@dataclass(frozen=True, kw_only=True, eq=False)
class WithExtras:
    """An operator and below it a few more queries, given by the cells each of them sums."""

    base: Operator
    member: FloatArray

    @property
    def queries(self) -> int:
        return self.base.queries + len(self.member)

    @property
    def cells(self) -> int:
        return self.base.cells

    def sums(self, x: FloatArray, /) -> FloatArray:
        return np.concatenate([self.base.sums(x), np.einsum("ec,c->e", self.member, x)])

    def spread(self, y: FloatArray, /) -> FloatArray:
        extra = np.einsum("ec,e->c", self.member, y[self.base.queries :])
        return np.asarray(self.base.spread(y[: self.base.queries]) + extra)

    def powers(self, exponent: int, /) -> "WithExtras":
        return WithExtras(base=self.base.powers(exponent), member=self.member)

    def precondition(self, response: FloatArray, diagonal: FloatArray) -> Precondition:
        split = self.base.queries
        condition = self.base.precondition(response, diagonal[:split])
        scale = 1.0 / (np.einsum("ec,c->e", self.member, response) + diagonal[split:])
        return lambda right: np.concatenate([condition(right[:split]), scale * right[split:]])


@dataclass(frozen=True, kw_only=True, eq=False)
class IterativeSystem:
    """An operator with conjugate gradients for its Newton systems, draw by draw."""

    operator: Operator
    exact: bool = False

    @property
    def queries(self) -> int:
        return self.operator.queries

    def sums(self, x: FloatArray, /) -> FloatArray:
        return np.stack([self.operator.sums(row) for row in x])

    def spread(self, y: FloatArray, /) -> FloatArray:
        return np.stack([self.operator.spread(row) for row in y])

    def powers(self, exponent: int, /) -> "IterativeSystem":
        return IterativeSystem(operator=self.operator.powers(exponent))

    def take(self, chosen: IntArray, /) -> "IterativeSystem":
        return self

    def solver(self, response: FloatArray, diagonal: FloatArray, /) -> Solver:
        def solve(right: FloatArray) -> FloatArray:
            return np.stack(
                [
                    conjugate_gradients(self.operator, response[k % len(response)], diagonal[k % len(diagonal)], row)
                    for k, row in enumerate(right)
                ]
            )

        return solve


def conjugate_gradients(
    operator: Operator, response: FloatArray, diagonal: FloatArray, right: FloatArray
) -> FloatArray:
    """Solve (M diag(response) M' + diag(diagonal)) step = right to the accuracy a Newton step needs."""
    condition = operator.precondition(response, diagonal)
    step, residual = np.zeros(len(right)), right.copy()
    scaled = condition(residual)
    direction, size = scaled, dot(residual, scaled)
    goal = ACCURACY**2 * size
    for _ in range(MOST_STEPS):
        if size <= goal:
            break
        image = operator.sums(response * operator.spread(direction)) + diagonal * direction
        length = size / dot(direction, image)
        step += length * direction
        residual -= length * image
        scaled = condition(residual)
        before, size = size, dot(residual, scaled)
        direction = scaled + (size / before) * direction
    return step


def dot(left: FloatArray, right: FloatArray) -> float:
    """The inner product without BLAS, whose threads cost more than they bring at this size."""
    return float(np.einsum("i,i->", left, right))
