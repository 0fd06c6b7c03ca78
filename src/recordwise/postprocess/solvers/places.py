r"""The best linear fit of tables that cross, by recursion over places (T-ASK).

Places form a tree, and every answer is about one place: a sum of *classes* there. Two cells of a place are in one class if no
answer about the place or about one that contains it tells them apart. With S, A the covariance and the values of a place's
classes as its parts give them, B the answers of the place itself as sums of classes and W their precisions, G = B'WB:

    X = (I + G S)^-1,   l0 = X B'W (y - B A),   what the place and its parts say: A + S l0, with covariance S X;
    going down, l = l0 + X l(parent), z = A + S l, and M = -X G + X M(parent) X', V = S X + S X M(parent) X'S.

Places without parts have nested answers: their covariance is a diagonal less one product for each answer and is never
formed. So only inner places cost d^3, d their classes; all else are passes over the cells and products of matrices with vectors.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from recordwise.exact.arithmetic import FloatArray
from recordwise.postprocess.solvers.boxed import IntArray, one_thread
from recordwise.postprocess.solvers.trees import is_nested, joint_labels

NONE = -1
MOST_WORK = 2e12
"""The largest sum of d^3 over inner places, times ten multiplications."""
MOST_HELD = 4e8
"""The largest number of matrix entries of all inner places."""
SMALL = 128
"""Up to this many classes matrices are solved by numpy: a first answer comes sooner without scipy's linear algebra."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Inner:
    """A place with parts."""

    classes: slice
    """Its classes among those of its depth."""
    answers: IntArray
    """The answers about the place itself."""
    sums: Any
    """Each of them as a sum of classes."""
    above: IntArray
    """The class of the parent that contains each class, among those of its depth; empty at a root."""
    cells: slice
    """Its cells, in the order of the leaves."""
    places: slice
    """The places without parts inside it, if it is just above them."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Nested:
    """A table about the places without parts, finer ones first."""

    first: IntArray
    """Where the cells of each answer begin."""
    run: IntArray
    """The answer of each cell, numbered as in ``first``."""
    answers: IntArray
    """Which answers these are; -1 if one is not published."""
    kind: IntArray | None
    """What tells the answers of one place apart, by class above; None if each answer lies within one class."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Places:
    """Where answers cross: their places from the top down, without variances."""

    answers: int
    cells: IntArray
    """The answer that is about each cell alone, in the order of the leaves."""
    nested: tuple[Nested, ...]
    inner: tuple[tuple[Inner, ...], ...]
    """By depth."""
    place: IntArray
    """The place of each cell."""
    joined: tuple[Any, ...]
    """By depth, the matrix that adds up what is one level finer to classes."""
    labels: IntArray
    """The class just above of each cell."""

    @property
    def work(self) -> float:
        """Ten times the sum of d^3 over inner places."""
        return 10 * sum(float(_size(each.classes)) ** 3 for level in self.inner for each in level)

    @property
    def held(self) -> float:
        """The entries of two matrices of every inner place."""
        return 2 * sum(float(_size(each.classes)) ** 2 for level in self.inner for each in level)

    @one_thread()
    def factor(self, variances: FloatArray) -> "PlaceFit":
        """Return the fit of answers with these variances."""
        padded = np.append(1.0 / variances, 0.0)
        response, gain = [variances[self.cells]], []
        for table in self.nested:
            weight = padded[table.answers]
            grown = 1.0 + weight * np.add.reduceat(response[-1], table.first)
            gain.append(weight / grown)
            response.append(response[-1] / grown[table.run])
        matrices: list[list[tuple[FloatArray, FloatArray]]] = []
        below: list[FloatArray] = []
        for depth in reversed(range(len(self.inner))):
            found, passed = [], []
            for each in self.inner[depth]:
                spread = (
                    self._of_leaves(each, response, gain)
                    if depth == len(self.inner) - 1
                    else _of_parts(each, self.inner[depth + 1], below)
                )
                found.append(_eliminate(spread, each.sums, variances[each.answers]))
                if depth:
                    up = found[-1][0] @ found[-1][1]
                    passed.append((up + up.T) / 2)
            matrices.insert(0, found)
            below = passed
        return PlaceFit(self, variances, response, gain, matrices)

    @property
    def outer(self) -> int:
        """How many tables of the leaves lie within single classes."""
        return sum(each.kind is None for each in self.nested)

    def dense(self, inner: Inner, values: FloatArray) -> FloatArray:
        """Values of cells as a matrix of leaves by classes."""
        shape = _size(inner.places), _size(inner.classes)
        slot = (self.place[inner.cells] - inner.places.start) * shape[1]
        slot += self.labels[inner.cells] - inner.classes.start
        found = np.bincount(slot, values[inner.cells], minlength=shape[0] * shape[1])
        return np.asarray(found, np.float64).reshape(shape)

    def same(self, inner: Inner, nested: Nested) -> Any:
        """Which classes an answer of every leaf has in common."""
        assert nested.kind is not None
        kind = nested.kind[inner.classes]
        return kind[:, None] == kind

    def _of_leaves(self, inner: Inner, response: Sequence[FloatArray], gain: Sequence[FloatArray]) -> FloatArray:
        """The covariance of a place's classes, as the leaves give it."""
        size, outer = _size(inner.classes), self.outer
        own = self.labels[inner.cells] - inner.classes.start
        sums = np.bincount(own, response[outer][inner.cells], minlength=size)
        found = np.diag(np.asarray(sums, np.float64))
        for level in range(outer, len(self.nested)):
            each = self.nested[level]
            root = self.dense(inner, response[level] * np.sqrt(gain[level])[each.run])
            found -= np.where(self.same(inner, each), root.T @ root, 0.0)
        return found


def _of_parts(inner: Inner, parts: Sequence[Inner], below: Sequence[FloatArray]) -> FloatArray:
    """The covariance of a place's classes, as parts with parts give it."""
    size = _size(inner.classes)
    found = np.zeros((size, size))
    for part, spread in zip(parts, below):
        if inner.cells.start <= part.cells.start < inner.cells.stop:
            own = part.above - inner.classes.start
            if len(np.unique(own)) == len(own):
                found[np.ix_(own, own)] += spread
            else:
                to = sparse.csr_array((np.ones(len(own)), (own, np.arange(len(own)))), shape=(size, len(own)))
                found += to @ (to @ spread).T
    return found


def _eliminate(spread: FloatArray, sums: Any, variances: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the root R of S = R R' and T = (I + R'GR)^-1 R', so that S X = R T: nothing cancels."""
    root: Any = np.linalg.cholesky(spread)
    half = (sums @ root) / np.sqrt(variances)[:, None]
    inner = half.T @ half
    inner[np.diag_indices_from(inner)] += 1.0
    factor = np.linalg.cholesky(inner)
    return root, _over(factor, _under(factor, root.T))


def _over(root: FloatArray, values: FloatArray) -> FloatArray:
    """Divide by the transpose of a root, from the left."""
    if len(root) <= SMALL:
        # Of a matrix that is triangular already, the factors are itself and 1: nothing is rounded twice.
        return np.asarray(np.linalg.solve(root.T, values), np.float64)
    from scipy import linalg

    return np.asarray(linalg.solve_triangular(root, values, trans="T", lower=True, check_finite=False))


def _under(root: FloatArray, values: FloatArray) -> FloatArray:
    """Divide by a root, from the left."""
    if len(root) <= SMALL:
        return np.asarray(np.linalg.solve(root[::-1, ::-1], values[::-1])[::-1], np.float64)
    from scipy import linalg

    return np.asarray(linalg.solve_triangular(root, values, lower=True, check_finite=False))


def _size(part: slice) -> int:
    return int(part.stop - part.start)


@dataclass(frozen=True, slots=True, eq=False)
class PlaceFit:
    """The linear fit of answers that cross, for fixed variances."""

    places: Places
    variances: FloatArray
    response: list[FloatArray]
    """What a price of an answer moves in each cell, before each table of the leaves and after all."""
    gain: list[FloatArray]
    matrices: list[list[tuple[FloatArray, FloatArray]]]
    """The root of S, and that times X, of every inner place."""

    @one_thread()
    def fit(self, answers: FloatArray) -> FloatArray:
        """The fitted answers, of one draw or of several (last axis: answers)."""
        flat = np.reshape(answers, (-1, self.places.answers)).astype(np.float64)
        values = self._cells(flat)
        # Where variances differ a lot, roundings of the large ones are as large as the small ones: one refinement.
        left = np.zeros_like(flat)
        left[:, self.places.cells] = self.response[0] * self._spread((flat - self._sums(values)) / self.variances)
        values += self._cells(left)
        return self._sums(values).reshape(np.shape(answers))

    def _cells(self, answers: FloatArray) -> FloatArray:
        """The fitted cells, in the order of the leaves."""
        values = self._leaves(answers)
        if self.places.inner:
            price = self._prices(answers, values)[:, self.places.labels]
            values += self.response[0] * price
            for each, response, gain in zip(self.places.nested, self.response, self.gain):
                said = gain * np.add.reduceat(response * price, each.first, axis=1)
                values -= response * said[:, each.run]
        return values

    def _spread(self, weights: FloatArray) -> FloatArray:
        """Return each cell's sum of the weights of answers about it."""
        above = np.zeros((len(weights), 0))
        for depth, level in enumerate(self.places.inner):
            own = np.zeros((len(weights), self.places.joined[depth].shape[0]))
            for place in level:
                own[:, place.classes] = (place.sums.T @ weights[:, place.answers].T).T
                if depth:
                    own[:, place.classes] += above[:, place.above]
            above = own
        found = weights[:, self.places.cells]
        if self.places.inner:
            found += above[:, self.places.labels]
        padded = np.concatenate([weights, np.zeros((len(weights), 1))], axis=1)
        for each in self.places.nested:
            found += padded[:, each.answers[each.run]]
        return found

    def _sums(self, values: FloatArray) -> FloatArray:
        """All answers, from the cells."""
        result = np.zeros((len(values), self.places.answers))
        result[:, self.places.cells] = values
        for each in self.places.nested:
            asked = each.answers != NONE
            result[:, each.answers[asked]] = np.add.reduceat(values, each.first, axis=1)[:, asked]
        for level, joined in zip(reversed(self.places.inner), reversed(self.places.joined)):
            values = (joined @ values.T).T
            for place in level:
                result[:, place.answers] = (place.sums @ values[:, place.classes].T).T
        return result

    def _leaves(self, answers: FloatArray) -> FloatArray:
        """What each leaf's own answers say about its cells."""
        values = answers[:, self.places.cells]
        for each, response, gain in zip(self.places.nested, self.response, self.gain):
            missing = answers[:, each.answers] - np.add.reduceat(values, each.first, axis=1)
            values += response * (gain * missing)[:, each.run]
        return values

    def _prices(self, answers: FloatArray, values: FloatArray) -> FloatArray:
        """Return the prices of the classes just above the leaves."""
        own: list[FloatArray] = []
        below = values
        for level, parts, joined in zip(
            reversed(self.places.inner), reversed(self.matrices), reversed(self.places.joined)
        ):
            total = np.ascontiguousarray((joined @ below.T).T)
            price, below = np.empty_like(total), total.copy()
            for each, (root, shrunk) in zip(level, parts):
                here = total[:, each.classes]
                missing = (answers[:, each.answers] - (each.sums @ here.T).T) / self.variances[each.answers]
                pulled = shrunk @ (each.sums.T @ missing.T)
                price[:, each.classes] = _over(root, pulled).T
                below[:, each.classes] += (root @ pulled).T
            own.insert(0, price)
        price = np.zeros((len(answers), 0))
        for level, parts, first in zip(self.places.inner, self.matrices, own):
            above, price = price, first
            for each, (root, shrunk) in zip(level, parts):
                if len(each.above):
                    price[:, each.classes] += _over(root, shrunk @ above[:, each.above].T).T
        return price

    @one_thread()
    def covariance(self, asked: Any) -> FloatArray:
        """Return the covariance of sums of cells, given as sparse rows.

        What leaves vary by themselves, less what each place's own answers tell about its classes, from the bottom up.
        """
        cells, classes = len(self.places.cells), self.places.labels
        width = int(classes.max(initial=-1)) + 1
        joined = sparse.csr_array((np.ones(cells), (np.arange(cells), classes)), shape=(cells, width))
        moved = sparse.csr_array(asked * self.response[0][None, :])
        found, passed = (moved @ asked.T).toarray(), moved @ joined
        for each, response, gain in zip(self.places.nested, self.response, self.gain):
            sums = sparse.csr_array((response, (np.arange(cells), each.run)), shape=(cells, len(gain)))
            told = asked @ sums
            heard = sparse.csr_array(told * gain[None, :])
            found -= (heard @ told.T).toarray()
            passed = passed - heard @ (sums.T @ joined)
        above: Any = passed.tocsc()
        for depth in reversed(range(len(self.places.inner))):
            above = self._told(depth, above, found)
        return np.asarray(found)

    def _told(self, depth: int, above: Any, found: FloatArray) -> FloatArray:
        """Take what places tell from a covariance, and return what is left for their parents."""
        wider = self.places.joined[depth - 1].shape[0] if depth else 0
        up = np.zeros((len(found), wider))
        for each, (root, shrunk) in zip(self.places.inner[depth], self.matrices[depth]):
            part = sparse.csc_array(above[:, each.classes]).toarray()
            rows = np.flatnonzero(np.any(part != 0.0, axis=1))
            if not len(rows):
                continue
            here = part[rows].T
            weighted = each.sums.T @ ((each.sums @ here) / self.variances[each.answers][:, None])
            found[np.ix_(rows, rows)] -= here.T @ _over(root, shrunk @ weighted)
            if depth:
                taken = shrunk.T @ _under(root, here)
                count = len(each.above)
                to = sparse.csr_array((np.ones(count), (each.above, np.arange(count))), shape=(wider, count))
                up[rows] += (to @ taken).T
        return up

    @one_thread()
    def fitted(self) -> FloatArray:
        """The variances of all fitted answers."""
        found = np.empty(self.places.answers)
        products: list[FloatArray] = [
            np.zeros(len(self.places.cells)) for _ in range(len(self.places.nested) - self.places.outer)
        ]
        alone = np.zeros(len(self.places.cells))
        above: list[FloatArray] = []
        for depth, level in enumerate(self.places.inner):
            passed = []
            for each, (root, shrunk) in zip(level, self.matrices[depth]):
                parent = self._parent(depth, each, above)
                moved = self._moved(each, _over(root, shrunk), parent)
                sums = (each.sums @ root) @ shrunk
                found[each.answers] = _diagonal(each.sums, sums)
                if parent is not None:
                    found[each.answers] += np.einsum("ij,ij->i", sums @ parent, sums)
                if depth == len(self.places.inner) - 1:
                    self._to_leaves(each, moved, products, alone)
                else:
                    passed.append(moved)
            above = passed
        for answers, values in self._leaf_variances(products, alone):
            asked = answers != NONE
            found[answers[asked]] = values[asked]
        return found

    def _parent(self, depth: int, inner: Inner, above: Sequence[FloatArray]) -> FloatArray | None:
        """Return the containing place's matrix M, by its classes."""
        for one, matrix in zip(self.places.inner[depth - 1] if depth else (), above):
            if one.cells.start <= inner.cells.start < one.cells.stop:
                own = inner.above - one.classes.start
                return matrix[np.ix_(own, own)]
        return None

    def _moved(self, inner: Inner, inverse: FloatArray, parent: FloatArray | None) -> FloatArray:
        """The matrix M of a place."""
        weighted = sparse.diags_array(1.0 / self.variances[inner.answers]) @ inner.sums
        found = -((weighted.T @ (inner.sums @ inverse.T)).T)
        if parent is not None:
            found += inverse @ parent @ inverse.T
        return np.asarray((found + found.T) / 2)

    def _to_leaves(self, inner: Inner, moved: FloatArray, products: list[FloatArray], alone: FloatArray) -> None:
        """Multiply what each table moves by M, within its answers."""
        places, here = self.places, inner.cells
        own = places.labels[here] - inner.classes.start
        local = places.place[here] - inner.places.start
        alone[here] = np.diagonal(moved)[own]
        for level, product in zip(range(places.outer, len(places.nested)), products):
            kept = np.where(places.same(inner, places.nested[level]), moved, 0.0)
            product[here] = (places.dense(inner, self.response[level]) @ kept)[local, own]

    def _leaf_variances(self, products: list[FloatArray], alone: FloatArray) -> Iterator[tuple[IntArray, FloatArray]]:
        """Yield the answers of each table of the leaves with their variances."""
        places, outer = self.places, self.places.outer
        every = np.arange(len(places.cells))
        tables = [(every, every, places.cells), *((each.first, each.run, each.answers) for each in places.nested)]
        for level, (first, _, answers) in enumerate(tables):

            def total(values: FloatArray, first: IntArray = first) -> FloatArray:
                return np.asarray(np.add.reduceat(values, first))

            kept = total(self.response[level])
            above = range(level, len(places.nested))
            shares = {k: self.gain[k][places.nested[k].run[first]] * total(self.response[k]) for k in above}
            found = kept - sum((shares[k] * total(self.response[k]) for k in above), np.zeros(len(first)))
            if level <= outer:
                own = total(self.response[outer])
                found += own**2 * alone[first]
                found -= (
                    2
                    * own
                    * sum((shares[k] * products[k - outer][first] for k in above if k >= outer), np.zeros(len(first)))
                )
            else:
                shrunk, last = (self.response[level] / self.response[level - 1])[first], level - 1
                found += shrunk**2 * total(self.response[last] * products[last - outer])
                for k in above:
                    found -= 2 * shrunk * shares[k] * total(self.response[last] * products[k - outer])
            for k in (k for k in above if k >= outer):
                for other in range(k, len(places.nested)):
                    run = places.nested[k].run[first]
                    both = np.add.reduceat(self.response[k] * products[other - outer], places.nested[k].first)[run]
                    found += (1 if k == other else 2) * shares[k] * shares[other] * both
            yield answers, found


def _diagonal(rows: Any, product: FloatArray) -> FloatArray:
    """The diagonal of a product with the transpose of sparse rows."""
    return np.asarray(rows.multiply(product).sum(axis=1)).ravel()


# Which tree of places, and which classes.


def best_places(labels: Sequence[IntArray], axes: Sequence[Sequence[IntArray]], answers: int) -> Places | None:
    """Return the cheapest recursion; None if all take too much.

    ``labels`` has for each table the answer of every cell (-1 for none), the table of single cells first; ``axes``
    has for each dimension, and there for each table, the code of every cell.
    """
    every = np.arange(len(labels[0]))
    choices: list[tuple[float, Sequence[IntArray], Any]] = []
    for along, chain in enumerate(axes):
        others = [axis for k, axis in enumerate(axes) if k != along]
        kinds = [joint_labels([axis[t] for axis in others], len(every)) for t in range(len(labels))]
        inner = {int(own.max()) + 1 for own in chain} - {int(chain[0].max()) + 1}
        choices.append((sum(inner) * float(max(count for _, count in kinds)) ** 3, chain, [own for own, _ in kinds]))
        most = float(np.bincount(chain[0]).max())
        choices.append((choices[-1][0] + len(np.unique(chain[0])) * most**3, [every, *chain[1:]], None))
    choices.append((float(len(every)) ** 3, [every, *(np.zeros_like(every) for _ in labels[1:])], None))
    for _, chain, kinds in sorted(choices, key=lambda choice: choice[0]):
        found = _places(labels, chain, kinds, answers)
        if found is not None and found.work <= MOST_WORK and found.held <= MOST_HELD:
            return found
    return None


def _places(
    labels: Sequence[IntArray], chain: Sequence[IntArray], kinds: Sequence[IntArray] | None, answers: int
) -> Places | None:
    """Return the recursion along one chain of places, or None."""
    levels = _levels(chain)
    if levels is None:
        return None
    depth = [next(k for k, level in enumerate(levels) if level.max() == own.max()) for own in chain]
    leaf = levels[-1]
    bottom = [t for t in range(1, len(labels)) if depth[t] == len(levels) - 1]
    if kinds is None and len(leaf) != int(leaf.max()) + 1:
        return None
    own = [np.zeros_like(leaf)] * len(labels) if kinds is None else kinds
    bottom.sort(key=lambda t: -joint_labels([leaf, own[t]], len(leaf))[1])
    order = np.lexsort([own[0], *(own[t] for t in bottom), *reversed(levels)])
    classes = _classes(labels, levels, depth, order)
    nested = [_nested(labels[t][order], leaf[order], own[t][order], classes) for t in bottom]
    if any(each is None for each in nested) or not _each_in_the_next(nested):
        return None
    return Places(
        answers=answers,
        cells=labels[0][order],
        nested=tuple(each for each in nested if each is not None),
        inner=tuple(_inner(labels, levels, depth, order, classes)),
        place=leaf[order],
        joined=tuple(_joined(classes)),
        labels=classes[-1] if classes else np.zeros(len(order), np.int64),
    )


def _levels(chain: Sequence[IntArray]) -> list[IntArray] | None:
    """Return the distinct levels of places, from the top, numbered in order."""
    found: list[IntArray] = []
    for code in sorted(chain, key=lambda code: int(code.max())):
        if found and code.max() == found[-1].max():
            if not is_nested(code, chain_code := found[-1]) or not is_nested(chain_code, code):
                return None
            continue
        if found and not is_nested(code, found[-1]):
            return None
        found.append(joint_labels([*found[-1:], code], len(code))[0])
    return found


def _classes(
    labels: Sequence[IntArray], levels: Sequence[IntArray], depth: Sequence[int], order: IntArray
) -> list[IntArray]:
    """Return the class of every cell at each depth above the leaves."""
    found: list[IntArray] = []
    for k, level in enumerate(levels[:-1]):
        asked = [labels[t][order] + 1 for t in range(1, len(labels)) if depth[t] == k]
        code = level[order]
        for each in [*found[-1:], *asked]:
            code = joint_labels([code, each], len(code))[0]
        found.append(code)
    return found


def _nested(labels: IntArray, leaf: IntArray, kind: IntArray, classes: Sequence[IntArray]) -> Nested | None:
    """Return a table of the leaves; None if it nests with nothing."""
    runs, count = joint_labels([leaf, kind], len(leaf))
    first = np.flatnonzero(np.diff(runs, prepend=-1))
    if len(first) != count:
        return None
    run = np.cumsum(np.diff(runs, prepend=-1) != 0) - 1
    made = Nested(first=first, run=run, answers=labels[first], kind=None)
    if not classes or is_nested(run, classes[-1]):
        return made
    if not is_nested(classes[-1], kind):
        return None
    kinds = np.zeros(int(classes[-1].max()) + 1, dtype=np.int64)
    kinds[classes[-1]] = kind
    return Nested(first=first, run=run, answers=labels[first], kind=kinds)


def _each_in_the_next(nested: Sequence[Nested | None]) -> bool:
    runs = [each.run for each in nested if each is not None]
    return all(is_nested(finer, coarser) for finer, coarser in pairwise(runs))


def _inner(
    labels: Sequence[IntArray],
    levels: Sequence[IntArray],
    depth: Sequence[int],
    order: IntArray,
    classes: Sequence[IntArray],
) -> Iterator[tuple[Inner, ...]]:
    """Yield the inner places of each depth."""
    leaf = levels[-1][order]
    for k, level in enumerate(levels[:-1]):
        place, own = level[order], classes[k]
        size = int(own.max()) + 1
        example = np.zeros(size, dtype=np.int64)
        example[own] = np.arange(len(own))
        above = classes[k - 1][example] if k else np.zeros(0, np.int64)
        asked = [labels[t][order][example] for t in range(1, len(labels)) if depth[t] == k]
        cells = np.searchsorted(place, np.arange(int(place.max()) + 2))
        starts = np.searchsorted(place[example], np.arange(int(place.max()) + 2))
        made = []
        for here, (start, stop) in enumerate(pairwise(starts)):
            codes = np.concatenate([np.zeros(0, np.int64), *(each[start:stop] for each in asked)])
            member = np.tile(np.arange(stop - start), len(asked))[codes != NONE]
            answers, row = np.unique(codes[codes != NONE], return_inverse=True)
            shape = (len(answers), int(stop - start))
            low, high = int(cells[here]), int(cells[here + 1])
            made.append(
                Inner(
                    classes=slice(int(start), int(stop)),
                    answers=answers,
                    sums=sparse.csr_array((np.ones(len(row)), (row, member)), shape=shape),
                    above=above[start:stop],
                    cells=slice(low, high),
                    places=slice(int(leaf[low]), int(leaf[high - 1]) + 1),
                )
            )
        yield tuple(made)


def _joined(classes: Sequence[IntArray]) -> Iterator[Any]:
    """Yield by depth the sums of finer classes, or of cells."""
    for k, own in enumerate(classes):
        if k + 1 < len(classes):
            finer = np.zeros(int(classes[k + 1].max()) + 1, dtype=np.int64)
            finer[classes[k + 1]] = own
            own = finer
        size = (int(own.max()) + 1, len(own))
        yield sparse.csr_array((np.ones(len(own)), (own, np.arange(len(own)))), shape=size)
