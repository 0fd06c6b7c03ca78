"""The best linear unbiased fit, its exact variances, and answers to any linear question.

Answers that form a tree are fitted in one pass up and one down (T-FITVAR). Every answer is a node with its own noise variance.
The children of a node add up to it; where they need not (a cell below the node was measured by nothing else), they say nothing
about it and the edge is cut. Works on floats, and on exact numbers in object arrays.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse

from recordwise.errors import ParameterError, own_errors_of
from recordwise.exact.arithmetic import FloatArray
from recordwise.postprocess.solvers.boxed import IntArray
from recordwise.postprocess.solvers.places import PlaceFit, Places, best_places
from recordwise.postprocess.solvers.tree import NONE, chains, nested_chains
from recordwise.postprocess.solvers.trees import grid_levels, joint_labels, two_families
from recordwise.postprocess.workload import Workload


@dataclass(frozen=True, slots=True, eq=False)
class Generation:
    """The nodes of one depth, sorted by parent."""

    nodes: slice
    parent: IntArray
    """The position of each node's parent."""
    first: IntArray
    """The beginnings of the families within the run."""
    heads: IntArray
    """The position of the parent of each family."""


@dataclass(frozen=True, slots=True, eq=False)
class AnswerTree:
    """The answers by depth; ``order`` is the answer at each position."""

    order: IntArray
    generations: tuple[Generation, ...]
    """Below the roots, from the top down."""

    @classmethod
    def of(cls, parent: IntArray) -> "AnswerTree":
        """Return the tree of answers with these parents; -1 for a root."""
        depth = np.zeros(len(parent), dtype=np.int64)
        above = np.asarray(parent)
        while np.any(inside := above != NONE):
            depth += inside
            above = np.where(inside, parent[above], NONE)
        order, position = np.flatnonzero(depth == 0), np.full(len(parent), NONE)
        position[order] = np.arange(len(order))
        parts, generations, start = [order], [], len(order)
        for level in range(1, int(depth.max(initial=0)) + 1):
            members = np.flatnonzero(depth == level)
            members = members[np.argsort(position[parent[members]], kind="stable")]
            own = position[parent[members]]
            heads, first = np.unique(own, return_index=True)
            generations.append(Generation(slice(start, start + len(members)), own, first, heads))
            position[members] = np.arange(start, start + len(members))
            start += len(members)
            parts.append(members)
        return cls(np.concatenate(parts), tuple(generations))

    def parents(self) -> IntArray:
        """Return the answer that each answer lies in; -1 for a root."""
        found = np.full(len(self.order), NONE)
        for each in self.generations:
            found[self.order[each.nodes]] = self.order[each.parent]
        return found

    def weights(self, variances: Any) -> "Weights":
        """Return the linear fit for answers with these variances."""
        own = np.asarray(variances)[self.order]
        below, up = np.zeros_like(own), own.copy()
        inner = np.zeros(len(own), dtype=bool)
        for each in reversed(self.generations):
            below[each.heads] = np.add.reduceat(up[each.nodes], each.first)
            inner[each.heads] = True
            up[each.heads] = own[each.heads] * below[each.heads] / (own[each.heads] + below[each.heads])
        share, fitted = np.zeros_like(own), up.copy()
        for each in self.generations:
            share[each.nodes] = up[each.nodes] / below[each.parent]
            fitted[each.nodes] -= share[each.nodes] ** 2 * (below[each.parent] - fitted[each.parent])
        pull = np.zeros_like(own)
        pull[inner] = below[inner] / (own[inner] + below[inner])
        return Weights(self, inner, pull, share, self.in_answer_order(fitted), up)

    def in_answer_order(self, values: Any) -> Any:
        """Values by position, in the order of the answers."""
        result = np.empty_like(values)
        result[..., self.order] = values
        return result

    def connected(self) -> Any:
        """Return whether each answer has a parent or children."""
        found = np.zeros(len(self.order), dtype=bool)
        for each in self.generations:
            found[each.heads] = found[each.nodes] = True
        return self.in_answer_order(found)


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """The linear fit for fixed variances; ``fitted`` has the fitted variances."""

    tree: AnswerTree
    inner: Any
    pull: Any
    """The weight of an inner node's own answer against the sum of its children."""
    share: Any
    """The part of what is missing from its parent that a node takes."""
    fitted: Any
    up: Any
    """The variance of what a node and all below it say about it."""

    def covariance(self, questions: Any) -> FloatArray:
        """The covariance of questions, sparse rows of weights of answers.

        Given their parent, children vary by their own variances less what their sum is known to be.
        """
        tree, asked = self.tree, sparse.csc_array(questions)[:, self.tree.order]
        found: Any = sparse.csr_array((asked.shape[0], asked.shape[0]))
        passed: Any = sparse.csr_array(asked.shape)
        for each in reversed(tree.generations):
            own = sparse.csr_array(asked[:, each.nodes] + passed[:, each.nodes])
            up, count = self.up[each.nodes], len(each.parent)
            family = np.repeat(np.arange(len(each.heads)), np.diff([*each.first, count]))
            shape = (count, len(tree.order))
            moved = own * up[None, :]
            sums = moved @ sparse.csr_array(
                (np.ones(count), (np.arange(count), family)), shape=(count, len(each.heads))
            )
            below = np.add.reduceat(up, each.first)
            found = found + moved @ own.T - (sums / below[None, :]) @ sums.T
            taken = sparse.csr_array((self.share[each.nodes], (np.arange(count), each.parent)), shape=shape)
            passed = sparse.csc_array(passed + own @ taken)
        roots = slice(0, len(tree.order) - sum(len(each.parent) for each in tree.generations))
        own = sparse.csr_array(asked[:, roots] + passed[:, roots])
        return np.asarray((found + (own * self.up[roots][None, :]) @ own.T).toarray())

    def fit(self, answers: Any) -> Any:
        """The fitted answers, of one draw or of several (last axis: answers)."""
        tree, up = self.tree, np.asarray(answers)[..., self.tree.order]
        added = np.zeros_like(up)
        for each in reversed(tree.generations):
            added[..., each.heads] = np.add.reduceat(up[..., each.nodes], each.first, axis=-1)
            total = added[..., each.heads]
            up[..., each.heads] = total + self.pull[each.heads] * (up[..., each.heads] - total)
        for each in tree.generations:
            missing = up[..., each.parent] - added[..., each.parent]
            up[..., each.nodes] += self.share[each.nodes] * missing
        return tree.in_answer_order(up)


def tree_of(rows: Any) -> AnswerTree | None:
    """Return the tree of sums of cells; None if two cross.

    Also None if one counts a cell other than exactly once.
    """
    if rows.shape[0] == 0 or not np.all(rows.data == 1.0):
        return None
    chain, length = chains(rows)
    if chain is None or not nested_chains(chain, rows.shape[0]):
        return None
    parent = np.full(rows.shape[0], NONE)
    for above, below in zip(chain.T[:-1], chain.T[1:]):
        parent[below[below != NONE]] = above[below != NONE]
    measured = length > 0
    narrowest = chain[np.flatnonzero(measured), length[measured] - 1]
    # A node with a cell of its own next to its children may differ from their sum by anything.
    open_ended = np.zeros(rows.shape[0], dtype=bool)
    open_ended[narrowest] = True
    parent[(parent != NONE) & open_ended[parent]] = NONE
    return AnswerTree.of(parent)


# Answers of which some cross, so that they form no tree: by recursion over places (T-ASK, ``solvers/places.py``).


MOST_CELLS = 1500
"""Up to this many cells, answers with cells that no answer is about alone are fitted by a dense matrix."""
MOST_WEIGHTS = 16_000_000
"""Up to this many, the weights of all answers in all fits are looked at one by one."""
MOST_SPREAD = 30_000_000
"""Up to this many weights of cells in questions, their covariance is computed together."""
SAME = 1e-13
PRODUCT = 1e-10
TWO = 2


@dataclass(frozen=True, slots=True, eq=False)
class Crossing:
    """Answers that cross, without variances."""

    rows: Any
    """Their cells."""
    linked: Any
    """Which answers others say something about; all others stay unchanged."""
    places: Places | None
    """The recursion; None if a cell is measured by no answer of its own, or if it takes too much."""
    tables: tuple[int, ...]
    """The number of answers of each table."""
    grid: IntArray | None
    """The level of each table along both axes, if every pair of levels is published over all pairs of codes."""
    made: "dict[str, _Fitted]" = field(default_factory=dict)
    bounds: dict[str, bool] = field(default_factory=dict)

    @classmethod
    def of(cls, rows: Any, tables: Sequence[int] = (), axes: Sequence[Sequence[IntArray]] = ()) -> "Crossing":
        """Return the answers of tables, one row each, the finest first.

        Args:
            rows: The cells of each answer.
            tables: The number of answers of each table; without it disjoint neighbors are taken together.
            axes: For each dimension, and there for each table, the code of every cell of the finest table.
        """
        linked = _linked(rows)
        used = sparse.csr_array(rows[linked])
        cells = np.flatnonzero(np.bincount(used.indices, minlength=rows.shape[1]))
        sizes = list(tables) if tables else _disjoint(rows)
        grid = grid_levels(rows, sizes, axes) if len(axes) == TWO and np.all(linked) else None
        labels = _labels(sparse.csr_array(rows[:, cells]), linked, sizes) if len(cells) else None
        if labels is None or (len(axes) and cells[-1] >= len(axes[0][0])):
            return cls(rows, linked, None, tuple(sizes), grid)
        if len(labels) > len(sizes):
            axes = [[*axis[:1], *axis] for axis in axes]
        codes = [[joint_labels([own[cells]], len(cells))[0] for own in axis] for axis in axes]
        return cls(rows, linked, best_places(labels, codes, rows.shape[0]), tuple(sizes), grid)

    def weights(self, variances: FloatArray) -> "CrossingWeights":
        """Return the fit of answers with these variances.

        One for all multiples of the same variances, as several statistics of a release have them.
        """
        last = self.made.get("last")
        ratio = np.zeros(1) if last is None else variances / last.variances
        if last is None or not np.all(np.abs(ratio - ratio[0]) <= SAME * ratio[0]):
            last, ratio = self._fitted(variances), np.ones(1)
            self.made["last"] = last
        return CrossingWeights(self, variances, last.fitted * ratio[0], last.fit, last.exact, last.placed)

    def _fitted(self, variances: FloatArray) -> "_Fitted":
        # No function below may refer to self: what it holds would live as long as this does, and the other way round.
        fitted, linked = variances.copy(), self.linked
        if not np.any(linked):
            return _Fitted(variances, fitted, np.array)
        if self.places is not None:
            inside = self.places.factor(np.where(linked, variances, 1.0))
            fitted[linked] = inside.fitted()[linked]

            def by_places(answers: FloatArray) -> FloatArray:
                return np.where(linked, inside.fit(answers), answers)

            return _Fitted(variances, fitted, by_places, placed=inside)
        if self.rows.shape[1] > MOST_CELLS:
            return _Fitted(variances, fitted, _least_squares(self.rows, linked, variances), exact=False)
        dense = self.rows[linked].toarray()
        # Cells that no answer tells apart have no variance of their own, but every answer has one.
        inverse = np.linalg.pinv(dense.T @ (dense / variances[linked, None]), hermitian=True)
        solved, weighted = dense @ inverse, dense.T / variances[linked]
        fitted[linked] = np.einsum("ij,ij->i", solved, dense)

        def fit(answers: FloatArray) -> FloatArray:
            result = np.array(answers, dtype=np.float64)
            result[..., linked] = (answers[..., linked] @ weighted.T) @ solved.T
            return result

        return _Fitted(variances, fitted, fit)

    def at_most_one(self, variances: FloatArray) -> bool:
        """Return whether it is proved that no weight is above 1 (T-UNIMODULAR)."""
        if "families" not in self.bounds:
            self.bounds["families"] = two_families(self.rows, self.tables)
        return self.bounds["families"] or self._is_product(variances)

    def _is_product(self, variances: FloatArray) -> bool:
        """Return whether the variance of every answer is a product over the levels of both axes."""
        if self.grid is None:
            return False
        by_table = np.split(variances, np.cumsum(self.tables)[:-1])
        if any(np.ptp(own) > SAME * own[0] for own in by_table):
            return False
        logs = np.zeros(self.grid.max(axis=0) + 1)
        logs[tuple(self.grid.T)] = np.log([own[0] for own in by_table])
        return bool(np.max(np.abs(logs - logs[:1] - logs[:, :1] + logs[0, 0])) < PRODUCT)


@dataclass(frozen=True, slots=True, eq=False)
class _Fitted:
    """The linear fit of answers that cross, for some variances."""

    variances: FloatArray
    fitted: FloatArray
    fit: Callable[[FloatArray], FloatArray]
    exact: bool = True
    placed: PlaceFit | None = None


def _least_squares(rows: Any, linked: Any, variances: FloatArray) -> Callable[[FloatArray], FloatArray]:
    # Answers that no closed form fits are few, and the solvers many.
    from recordwise.postprocess.least_squares import ols

    workload = Workload.matrix(sparse.csr_array(rows[linked]))

    def fit(answers: FloatArray) -> FloatArray:
        result = np.array(answers, dtype=np.float64)
        found = ols(workload, answers[..., linked], variances[linked], noise="gaussian").fitted
        result[..., linked] = found
        return result

    return fit


def _linked(rows: Any) -> Any:
    """Return the answers that others say something about.

    The rest have a cell that no other answer has, or none once such answers are left out.
    """
    left = np.diff(rows.indptr) > 0
    while True:
        single = left.astype(np.float64) @ rows == 1
        free = left & (rows @ single.astype(np.float64) > 0)
        if not np.any(free):
            return left
        left &= ~free


def _disjoint(rows: Any) -> list[int]:
    """How many neighbors have no cell in common, one group after another."""
    sizes, seen = [0], np.zeros(rows.shape[1], dtype=bool)
    for start, stop in pairwise(rows.indptr):
        own = rows.indices[start:stop]
        if np.any(seen[own]):
            seen[:] = False
            sizes.append(0)
        seen[own] = True
        sizes[-1] += 1
    return sizes


def _labels(rows: Any, linked: Any, tables: Sequence[int]) -> list[IntArray] | None:
    """Return each table's answer of every cell, single cells first.

    None if a cell has no answer of its own.
    """
    found, ends = [], np.cumsum([0, *tables])
    single = np.full(rows.shape[1], NONE)
    for start, stop in pairwise(ends.tolist()):
        part = rows[start:stop]
        own = np.repeat(np.arange(start, stop), np.diff(part.indptr))
        label = np.full(rows.shape[1], NONE)
        label[part.indices[linked[own]]] = own[linked[own]]
        alone = (label != NONE) & (np.diff(rows.indptr)[label] == 1) & (single == NONE)
        single[alone] = label[alone]
        found.append(label)
    if np.any(single == NONE):
        return None
    if np.array_equal(single, found[0]):
        return found
    return [single, *(np.where(label == single, NONE, label) for label in found)]


@dataclass(frozen=True, slots=True, eq=False)
class CrossingWeights:
    """The linear fit of answers that cross, for fixed variances."""

    crossing: Crossing
    variances: FloatArray
    fitted: FloatArray
    """The variances of the fitted answers."""
    fit: Callable[[FloatArray], FloatArray]
    """The fitted answers, of one draw or of several (last axis: answers)."""
    exact: bool = True
    """Whether ``fitted`` are the variances; else they are those of the answers themselves, which are larger."""
    placed: PlaceFit | None = None
    """The recursion over places, with the variances that it was made for."""

    def covariance(self, questions: Any) -> FloatArray | None:
        """Return the covariance of questions, or None if too costly."""
        if self.placed is None:
            return None
        linked, rows = self.crossing.linked, self.crossing.rows
        asked, alone = (sparse.csr_array(questions[:, np.flatnonzero(kept)]) for kept in (linked, ~linked))
        # Every cell is a column of the one answer that is about it alone.
        cells = rows[self.placed.places.cells].indices
        inside = rows[np.flatnonzero(linked)]
        if float(np.sum(np.diff(inside.indptr)[asked.indices])) > MOST_SPREAD:
            return None
        scale = self.variances[linked][:1] / self.placed.variances[linked][:1]
        found = float(scale[0]) * self.placed.covariance(sparse.csr_array((asked @ inside)[:, cells]))
        return np.asarray(found + ((alone * self.variances[~linked][None, :]) @ alone.T).toarray())

    @property
    def few(self) -> bool:
        """Whether all weights can be looked at one by one."""
        return self.exact and len(self.variances) ** 2 <= MOST_WEIGHTS

    def blocks(self) -> Iterator[tuple[int, FloatArray]]:
        """Yield the weights of some fits, with the first index."""
        count = len(self.variances)
        size = max(1, MOST_WEIGHTS // 4 // max(count, 1))
        for start in range(0, count, size):
            stop = min(start + size, count)
            unit = np.zeros((stop - start, count))
            unit[np.arange(stop - start), np.arange(start, stop)] = self.variances[start:stop]
            yield start, self.fit(unit) / self.variances

    def untouched(self) -> Any:
        """Return the answers that no other answer informs."""
        return ~self.crossing.linked


# Any question about the tables of a query (T-ASK).


@dataclass(frozen=True, slots=True, eq=False)
class Answered:
    """Best linear unbiased answers to questions, with their covariance."""

    estimates: FloatArray
    covariance: FloatArray
    largest: FloatArray
    """The largest absolute weight of a noisy answer in each estimate, for half steps (T-HALFSTEP)."""
    weights: FloatArray | None = None
    """The weight of each noisy answer in each estimate, of a few questions."""


@own_errors_of
@dataclass(frozen=True, slots=True, eq=False)
class LinearModel:
    """The noisy answers of a query's tables as one linear model (T-ASK).

    Answers are sums of the same unknown cells with independent noise of known variances. It needs only arrays, so
    that a saved release can be asked without what made it.
    """

    answers: FloatArray
    weights: "Weights | CrossingWeights"
    spread: FloatArray
    """The variances of the noisy answers."""
    estimates: FloatArray | None = None
    """The best linear unbiased estimate of every published cell, where it is known already."""

    @classmethod
    def of(
        cls,
        rows: Any,
        answers: FloatArray,
        variances: FloatArray,
        *,
        tables: Sequence[int] = (),
        axes: Sequence[Sequence[IntArray]] = (),
    ) -> "LinearModel":
        """Return the model of answers that are sums of cells.

        Args:
            rows: The cells of each answer, a sparse matrix of zeros and ones; the finest table first.
            answers: The noisy answers.
            variances: Their variances.
            tables: The number of answers of each table, where tables may cross.
            axes: For each dimension, and there for each table, the code of every cell of the finest table.

        Returns:
            The model.
        """
        tree = tree_of(rows)
        weights = Crossing.of(rows, tables, axes).weights(variances) if tree is None else tree.weights(variances)
        return cls(answers, weights, variances)

    @property
    def exact(self) -> bool:
        """Whether variances are exact, and not only upper bounds."""
        return isinstance(self.weights, Weights) or self.weights.exact

    def estimate(self) -> FloatArray:
        """Return the best linear unbiased estimate of every published cell."""
        return np.asarray(self.weights.fit(self.answers)) if self.estimates is None else self.estimates

    def variances(self) -> FloatArray:
        """Return the variances of these estimates."""
        return np.asarray(self.weights.fitted)

    def answer(
        self, questions: Any, *, fine: bool = False, use: Callable[[FloatArray], object] | None = None
    ) -> Answered:
        """Return estimates of weighted sums of published cells, many at once.

        Args:
            questions: A row for each question, sparse or dense, with the weight of each published cell.
            fine: Whether half steps hardly matter, so that of many questions the largest weights are only bounded.
            use: Is given the weights of the noisy answers in the estimates, of some questions at a time.

        Returns:
            The estimates, their covariance and their largest weights.
        """
        asked = sparse.csr_array(questions)
        if fine and use is None and asked.shape[0] * len(self.spread) > MOST_WEIGHTS:
            together = self.weights.covariance(asked)
            if together is not None:
                sds = np.sqrt(np.maximum(np.diagonal(together), 0.0))
                # A weight is the covariance of question and fitted answer over the answer's variance (Cauchy-Schwarz).
                bound = sds * float(np.max(np.sqrt(self.weights.fitted) / self.spread))
                return Answered(asked @ self.estimate(), (together + together.T) / 2, bound)
        count, covariance = asked.shape[0], np.empty((asked.shape[0], asked.shape[0]))
        largest, size = np.empty(count), max(1, MOST_WEIGHTS // max(len(self.spread), 1))
        weights = None
        for start in range(0, count, size):
            some = slice(start, start + size)
            weights = self.influences(asked[some])
            # The fit of variances times weights is the covariance of every fitted cell with the question.
            covariance[:, some] = asked @ (weights * self.spread).T
            largest[some] = np.max(np.abs(weights), axis=1, initial=0.0)
            if use is not None:
                use(weights)
        few = weights if count <= size else None
        return Answered(asked @ self.estimate(), (covariance + covariance.T) / 2, largest, few)

    def influences(self, questions: Any) -> FloatArray:
        """Return the weight of each noisy answer in the estimates of questions.

        Args:
            questions: As for ``answer``.

        Returns:
            A row for each question.
        """
        asked = sparse.csr_array(questions).toarray()
        return np.asarray(self.weights.fit(asked * self.spread) / self.spread)


# Order statistics of many draws without storing all of them: the few largest values of each column (T-FITVAR).


def rank_of(draws: int, confidence: float, *, given: bool = False) -> int:
    """Return the rank whose order statistic bounds a further draw.

    Where there are too few draws, the refusal is of what the caller chose: the draws if ``given``, and else the confidence.
    """
    # In floats the product can be just above the whole number that it is.
    rank = max(1, math.ceil((draws + 1) * confidence - 1e-9))
    if rank > draws and not given:
        most = math.floor(draws / (draws + 1) * 1e6) / 1e6
        raise ParameterError(
            parameter="confidence",
            problem=f"must be at most {most:g} where intervals are from {draws:,} draws of the noise",
        )
    if rank > draws:
        least = math.ceil(confidence / (1 - confidence) - 1e-9)
        raise ParameterError(
            parameter="draws", problem=f"must be at least {least} for intervals of {confidence:g}, not {draws}"
        )
    return rank


class Largest:
    """The order statistic of rank ``rank`` among ``draws`` values, by column."""

    __slots__ = ("_kept", "_rows", "_size")

    def __init__(self, columns: int, *, draws: int, rank: int) -> None:
        self._size = draws - rank + 1
        self._kept: list[FloatArray] = [np.empty((0, columns))]
        self._rows = 0

    def add(self, rows: FloatArray) -> None:
        """Add draws, dropping the smallest beyond twice as many as needed."""
        self._kept.append(rows)
        self._rows += len(rows)
        if self._rows >= 2 * self._size:
            self._drop()

    def value(self) -> FloatArray:
        """The order statistic, once all draws were added."""
        self._drop()
        return np.asarray(self._kept[0].min(axis=0))

    def _drop(self) -> None:
        together = np.concatenate(self._kept)
        if len(together) > self._size:
            together = np.partition(together, len(together) - self._size, axis=0)[-self._size :].copy()
        self._kept, self._rows = [together], len(together)


# What each answer weighs in the best linear fit of the cells around it, and how a fitted cell's variance changes with
# its total (T-HALFSTEP, T-MOVED). Kin are two answers of which one contains the other. In a tree all weights follow
# from two passes; where tables cross they are read from the fit's matrix.


Variances: TypeAlias = Callable[[Any, FloatArray], FloatArray]
"""The variances of some answers at given totals."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Kin:
    """Pairs of answers of which the second contains the first."""

    below: IntArray
    above: IntArray
    rise: FloatArray
    """The squared weight of the second answer in the fit of the first."""
    fall: FloatArray
    """The squared weight of the first answer in the fit of the second."""
    share: FloatArray
    """The part of a change of the second total that the first one takes."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MovedVariance:
    """The variance of every fitted answer if its total were different.

    What contains it moves as much, what it contains moves by its shares, and all other totals stay at their
    fitted values.
    """

    value: FloatArray
    """The fitted answers."""
    used: FloatArray
    """The variances of the answers that the weights were made of."""
    fitted: FloatArray
    """The variances of the fitted answers, with these."""
    own: FloatArray
    """The squared weight of each answer in its own fit."""
    kin: tuple[Kin, ...]
    variances: Variances

    def at(self, totals: FloatArray) -> FloatArray:
        """The variances of the fitted answers, each at its total of these."""
        moved = totals - self.value
        found = self.fitted + self.own * (self.variances(slice(None), totals) - self.used)
        for each in self.kin:
            above, below = self.value[each.above] + moved[each.below], self.value[each.below]
            part = self.variances(each.above, above) - self.used[each.above]
            found += np.bincount(each.below, each.rise * part, minlength=len(found))
            part = self.variances(each.below, below + each.share * moved[each.above]) - self.used[each.below]
            found += np.bincount(each.above, each.fall * part, minlength=len(found))
        return np.maximum(found, np.finfo(np.float64).tiny)


def moved_variance(
    weights: Weights | CrossingWeights,
    *,
    value: FloatArray,
    used: FloatArray,
    fitted: FloatArray,
    variances: Variances,
) -> MovedVariance:
    """Return the variances of a fit as totals move.

    Where crossing tables are too large for the matrix of weights, a cell's variance moves as that of its answer
    does.
    """
    if isinstance(weights, Weights):
        own, kin = tree_kin(weights)
    elif weights.few:
        own, kin = crossing_kin(weights)
    else:
        used = variances(slice(None), value)
        own, kin = fitted / used, ()
    return MovedVariance(value=value, used=used, fitted=fitted, own=own, kin=kin, variances=variances)


def _weights_against_children(weights: Weights) -> tuple[FloatArray, FloatArray]:
    """Return each answer's weight against its children, and of both."""
    pull = np.where(weights.inner, weights.pull, 1.0)
    heard = np.ones(len(pull))
    for each in weights.tree.generations:
        kept = heard[each.parent] * (1 - pull[each.parent])
        heard[each.nodes] = 1 - weights.share[each.nodes] * (1 - kept)
    return pull, heard


def tree_kin(weights: Weights) -> tuple[FloatArray, tuple[Kin, ...]]:
    """Return squared weights in answers' fits, and kin pairs by distance."""
    tree = weights.tree
    pull, heard = _weights_against_children(weights)
    own = heard * pull
    return tree.in_answer_order(own**2), tuple(_by_distance(tree, weights.share, pull, heard, own))


def _by_distance(tree: AnswerTree, share: Any, pull: FloatArray, heard: FloatArray, own: FloatArray) -> Iterator[Kin]:
    parent = np.full(len(tree.order), NONE)
    for each in tree.generations:
        parent[each.nodes] = each.parent
    below = np.flatnonzero(parent != NONE)
    above, taken, passed = parent[below], share[below], pull[below]
    while len(below):
        passed = passed * (1 - pull[above])
        yield Kin(
            below=tree.order[below],
            above=tree.order[above],
            rise=(taken * own[above]) ** 2,
            fall=(heard[above] * passed) ** 2,
            share=taken,
        )
        further = parent[above] != NONE
        below, taken, passed = below[further], (taken * share[above])[further], passed[further]
        above = parent[above[further]]


def crossing_kin(weights: CrossingWeights) -> tuple[FloatArray, tuple[Kin, ...]]:
    """The same where tables cross, from the matrix of weights."""
    rows = weights.crossing.rows
    common = sparse.coo_array(rows @ rows.T)
    size = np.diff(rows.indptr)
    inside = common.data == size[common.row]
    # Of two answers about the same cells, one is taken to contain the other.
    inside &= (size[common.row] < size[common.col]) | (common.row < common.col)
    low, high = common.row[inside], common.col[inside]
    own, rise, fall = np.ones(len(weights.variances)), np.zeros(len(low)), np.zeros(len(low))
    for start, block in weights.blocks():
        stop = start + len(block)
        own[start:stop] = block[np.arange(len(block)), np.arange(start, stop)] ** 2
        for found, first, second in ((rise, low, high), (fall, high, low)):
            here = (first >= start) & (first < stop)
            found[here] = block[first[here] - start, second[here]]
    share = rise * weights.variances[high] / weights.fitted[high]
    return own, (Kin(below=low, above=high, rise=rise**2, fall=fall**2, share=share),)


def largest_weights(weights: Weights | CrossingWeights) -> FloatArray:
    """Return the largest absolute weight in each fitted answer (T-HALFSTEP).

    In large tables that cross, a bound: 1 where that is proved (T-UNIMODULAR), and else by Cauchy and Schwarz.
    """
    if isinstance(weights, Weights):
        return _largest_in_tree(weights)
    if weights.few:
        return np.concatenate([np.abs(block).max(axis=1) for _, block in weights.blocks()])
    sd = np.sqrt(weights.fitted)
    bound = np.maximum(sd * np.max(sd / weights.variances), weights.fitted / weights.variances)
    return np.minimum(bound, 1.0) if weights.crossing.at_most_one(weights.variances) else bound


def _largest_in_tree(weights: Weights) -> FloatArray:
    """Return the largest absolute weight in each fitted answer of a tree."""
    tree = weights.tree
    pull, heard = _weights_against_children(weights)
    said = pull.copy()
    for each in reversed(tree.generations):
        top = np.maximum.reduceat(said[each.nodes], each.first)
        said[each.heads] = np.maximum(pull[each.heads], (1 - pull[each.heads]) * top)
    beside = np.zeros(len(pull))
    for each in tree.generations:
        share, taken = weights.share[each.nodes], 1 - heard[each.nodes]
        above = np.maximum(heard * pull, beside)[each.parent]
        beside[each.nodes] = np.maximum(taken * _others(said[each.nodes], each.first), share * above)
    return np.asarray(tree.in_answer_order(np.maximum(heard * said, beside)))


def _others(values: FloatArray, first: IntArray) -> FloatArray:
    """Return the largest value among each family's other members, or 0."""
    family = np.repeat(np.arange(len(first)), np.diff(first, append=len(values)))
    largest = values == np.maximum.reduceat(values, first)[family]
    alone = largest & (np.add.reduceat(largest.astype(np.int64), first)[family] == 1)
    second = np.maximum.reduceat(np.where(largest, 0.0, values), first)[family]
    return np.where(alone, second, np.maximum.reduceat(values, first)[family])
