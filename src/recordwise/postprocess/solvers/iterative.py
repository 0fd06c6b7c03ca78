"""Conjugate gradients for Newton systems too large and irregular to factor."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, TypeAlias

import numpy as np

from recordwise.postprocess.solvers.boxed import FloatArray, IntArray, Solver
from recordwise.postprocess.workload import Group

Precondition: TypeAlias = Callable[[FloatArray], FloatArray]
ACCURACY = 1e-2
"""The accuracy to which a Newton system is solved; Newton's method corrects the rest."""
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
    """An operator with extra queries below it, each by its cells."""

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
    """Solve (M diag(response) M' + diag(diagonal)) step = right."""
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
    """Return the inner product without BLAS, whose threads cost too much."""
    return float(np.einsum("i,i->", left, right))


@dataclass(frozen=True, kw_only=True, eq=False)
class Cascade:
    """Partitions, finest first, each with the finer one it sums."""

    groups: tuple[Group, ...]
    place: tuple[IntArray, ...]
    """The positions of each group's multipliers; -1 for single-cell queries, which are measured cells."""
    source: tuple[tuple[int, IntArray] | None, ...]
    """The group that each one is summed from, with the parents of its queries; None if it is summed from the cells."""
    queries: int

    @classmethod
    def of(cls, groups: Sequence[Group], indices: Sequence[IntArray], queries: int) -> "Cascade":
        order = sorted(range(len(groups)), key=lambda k: -groups[k].size)
        ranked = [groups[k] for k in order]
        source: list[tuple[int, IntArray] | None] = []
        for k, group in enumerate(ranked):
            finer = ((j, ranked[j].parents_in(group)) for j in range(k - 1, -1, -1))
            source.append(next(((j, parents) for j, parents in finer if parents is not None), None))
        return cls(groups=tuple(ranked), place=tuple(indices[k] for k in order), source=tuple(source), queries=queries)

    @property
    def cells(self) -> int:
        return self.groups[0].cells

    @cached_property
    def chains(self) -> list[list[tuple[int, IntArray]]]:
        """Groups in chains, each finer than the next, with query parents."""
        chains: list[list[int]] = []
        for k, group in enumerate(self.groups):
            for chain in chains:
                if self.groups[chain[-1]].refines(group):
                    chain.append(k)
                    break
            else:
                chains.append([k])
        return [[(k, self._parents(chain, at)) for at, k in enumerate(chain)] for chain in chains]

    def _parents(self, chain: list[int], at: int) -> IntArray:
        if at + 1 == len(chain):
            return np.zeros(self.groups[chain[at]].size, dtype=np.int64)
        parents = self.groups[chain[at]].parents_in(self.groups[chain[at + 1]])
        assert parents is not None
        return parents

    def group_sums(self, x: FloatArray) -> list[FloatArray]:
        """The sums of one table, group by group."""
        found: list[FloatArray] = []
        for group, source in zip(self.groups, self.source):
            labels, values = (group.labels, x) if source is None else (source[1], found[source[0]])
            assert labels is not None
            found.append(add_up(labels, values, group.size))
        return found

    def sums(self, x: FloatArray, /) -> FloatArray:
        result = np.zeros(self.queries + 1)
        for place, values in zip(self.place, self.group_sums(x)):
            result[place] = values
        return result[:-1]

    def spread(self, y: FloatArray, /) -> FloatArray:
        padded = np.append(y, 0.0)
        seen = [padded[place] for place in self.place]
        x = np.zeros(self.cells)
        for k in range(len(self.groups) - 1, -1, -1):
            source, labels = self.source[k], self.groups[k].labels
            if source is None:
                x += seen[k][labels]
            else:
                seen[source[0]] += seen[k][source[1]]
        return x

    def powers(self, exponent: int, /) -> "Cascade":
        return self

    def precondition(self, response: FloatArray, diagonal: FloatArray) -> Precondition:
        """Each chain solved as if the others did not exist."""
        whole, omega = self.group_sums(response), np.append(1.0 / diagonal, 0.0)
        solved = [self._eliminate(chain, whole[chain[0][0]], omega) for chain in self.chains]

        def apply(right: FloatArray) -> FloatArray:
            padded, result = np.append(right, 0.0), np.zeros(self.queries + 1)
            for chain, parts in zip(self.chains, solved):
                self._sweep(chain, parts, padded, result)
            return result[:-1]

        return apply

    def _eliminate(
        self, chain: list[tuple[int, IntArray]], bottom: FloatArray, omega: FloatArray
    ) -> list[tuple[FloatArray, FloatArray, FloatArray]]:
        """Go up the chain, computing inverse, response and omega per level."""
        parts = []
        for k, parents in chain:
            own = omega[self.place[k]]
            inverse = 1.0 / (1.0 + own * bottom)
            parts.append((inverse, inverse * bottom, own))
            bottom = add_up(parents, parts[-1][1])
        return parts

    def _sweep(
        self,
        chain: list[tuple[int, IntArray]],
        parts: list[tuple[FloatArray, FloatArray, FloatArray]],
        right: FloatArray,
        result: FloatArray,
    ) -> None:
        """Go up with the right-hand side, then down with the multipliers."""
        alpha, pulls = np.zeros(self.groups[chain[0][0]].size), []
        for (k, parents), (_, beta, omega) in zip(chain, parts):
            pulls.append(omega * (right[self.place[k]] - alpha))
            alpha = add_up(parents, alpha + beta * pulls[-1])
        above = np.zeros(1)
        for (k, parents), (inverse, _, _), pull in zip(reversed(chain), reversed(parts), reversed(pulls)):
            shift = above[parents]
            above = inverse * (shift + pull)
            result[self.place[k]] = above - shift


def add_up(labels: IntArray, values: FloatArray, size: int = 0) -> FloatArray:
    """Sums by label."""
    return np.bincount(labels, weights=values, minlength=size).astype(np.float64, copy=False)
