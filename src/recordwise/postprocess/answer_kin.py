"""What each answer weighs in the best linear fit of the cells around it, and how a fitted cell's variance moves with its total
(T-HALFSTEP, T-MOVED).

Kin are two answers of which one contains the other. In a tree all weights follow from two passes; where tables cross they are
read from the fit's matrix.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse

from recordwise.exact.arithmetic import FloatArray
from recordwise.postprocess.answer_tree import AnswerTree, Weights
from recordwise.postprocess.crossing import CrossingWeights
from recordwise.postprocess.solvers.boxed import IntArray
from recordwise.postprocess.solvers.forest import NONE

Variances: TypeAlias = Callable[[Any, FloatArray], FloatArray]
"""The variances of some answers at given totals."""
MOST_WEIGHTS = 4_000_000
"""The weights of crossing answers that are held at a time."""


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
    """The variance of every fitted answer if its own total is another one: what contains it moves as much, what it contains by its
    shares, and all other totals stay at their fitted values."""

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
    """The variances of a fit as totals move. Where tables that cross are too large for the matrix of weights, a cell's
    variance moves as that of its own answer does."""
    if isinstance(weights, Weights):
        own, kin = tree_kin(weights)
    elif weights.fitted is not None:
        own, kin = crossing_kin(weights)
    else:
        used = variances(slice(None), value)
        own, kin = fitted / used, ()
    return MovedVariance(value=value, used=used, fitted=fitted, own=own, kin=kin, variances=variances)


def _heard(weights: Weights) -> tuple[FloatArray, FloatArray]:
    """By position: the weight of an answer against what its children say, and that of both together in its own fit."""
    pull = np.where(weights.inner, weights.pull, 1.0)
    heard = np.ones(len(pull))
    for each in weights.tree.generations:
        kept = heard[each.parent] * (1 - pull[each.parent])
        heard[each.nodes] = 1 - weights.share[each.nodes] * (1 - kept)
    return pull, heard


def tree_kin(weights: Weights) -> tuple[FloatArray, tuple[Kin, ...]]:
    """The squared weights of answers in their own fits, and all pairs of kin, by their distance in the tree."""
    tree = weights.tree
    pull, heard = _heard(weights)
    own = heard * pull
    return tree.unsorted(own**2), tuple(_by_distance(tree, weights.share, pull, heard, own))


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
    places, rows = np.flatnonzero(weights.asked), weights.rows
    common = sparse.coo_array(rows @ rows.T)
    size = np.diff(rows.indptr)
    inside = (common.data == size[common.row]) & (common.row != common.col)
    # Of two answers about the same cells, one is taken to contain the other.
    inside &= (size[common.row] < size[common.col]) | (common.row < common.col)
    low, high = common.row[inside], common.col[inside]
    own, rise, fall = np.ones(len(weights.variances)), np.zeros(len(low)), np.zeros(len(low))
    for start, block in weights.blocks(MOST_WEIGHTS):
        stop = start + len(block)
        own[places[start:stop]] = block[np.arange(len(block)), np.arange(start, stop)] ** 2
        for found, first, second in ((rise, low, high), (fall, high, low)):
            here = (first >= start) & (first < stop)
            found[here] = block[first[here] - start, second[here]]
    below, above = places[low], places[high]
    assert weights.fitted is not None
    share = rise * weights.variances[above] / weights.fitted[above]
    return own, (Kin(below=below, above=above, rise=rise**2, fall=fall**2, share=share),)


def largest_weights(weights: Weights | CrossingWeights) -> FloatArray:
    """The largest weight, without its sign, of any answer in each fitted answer (T-HALFSTEP)."""
    if isinstance(weights, Weights):
        return _largest_in_tree(weights)
    found = np.ones(len(weights.variances))
    parts = [np.abs(block).max(axis=1) for _, block in weights.blocks(MOST_WEIGHTS)]
    found[weights.asked] = np.concatenate(parts) if parts else ()
    return found


def _largest_in_tree(weights: Weights) -> FloatArray:
    """Up: the largest weight in what a node and all below it say. Down: that of a sibling's or of an answer above."""
    tree = weights.tree
    pull, heard = _heard(weights)
    said = pull.copy()
    for each in reversed(tree.generations):
        top = np.maximum.reduceat(said[each.nodes], each.first)
        said[each.heads] = np.maximum(pull[each.heads], (1 - pull[each.heads]) * top)
    beside = np.zeros(len(pull))
    for each in tree.generations:
        share, taken = weights.share[each.nodes], 1 - heard[each.nodes]
        above = np.maximum(heard * pull, beside)[each.parent]
        beside[each.nodes] = np.maximum(taken * _others(said[each.nodes], each.first), share * above)
    return np.asarray(tree.unsorted(np.maximum(heard * said, beside)))


def _others(values: FloatArray, first: IntArray) -> FloatArray:
    """The largest value among the other members of each family; 0 where there is none."""
    family = np.repeat(np.arange(len(first)), np.diff(first, append=len(values)))
    largest = values == np.maximum.reduceat(values, first)[family]
    alone = largest & (np.add.reduceat(largest.astype(np.int64), first)[family] == 1)
    second = np.maximum.reduceat(np.where(largest, 0.0, values), first)[family]
    return np.where(alone, second, np.maximum.reduceat(values, first)[family])
