"""Quantiles of a measure, from noisy counts on a public grid (T-QUANTILE)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from recordwise.errors import SqlError
from recordwise.exact.arithmetic import FloatArray
from recordwise.exact.numbers import rational
from recordwise.noise.randomness import BitSource, Secure
from recordwise.plan.schema import Measure, Schema
from recordwise.plan.statistics.base import NOT_UNBIASED, Drawable, EntryReader, NamedMechanisms, NoisyColumn, Statistic
from recordwise.plan.statistics.totals import BinCounts, CountBins, ExactTable, IntArray, Total
from recordwise.policy.firms import MOST_TREE_LEVELS, NODES, Joint

if TYPE_CHECKING:
    from sqlglot import exp

    from recordwise.mechanisms.base import Mechanism
    from recordwise.mechanisms.quantile import QuantileEstimates, TreeQuantile
    from recordwise.plan.cost import CellMechanism
    from recordwise.plan.file.node import Node

NODES_AT_ONCE = 1 << 22
QUANTILE_FIELDS = ("value", "low", "high", "spread_low", "spread_high")


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantile(Drawable):
    """A quantile of a measure, at equal loss for every record (T-QUANTILE)."""

    measure: str
    p: Fraction
    mechanism: "TreeQuantile"

    word: ClassVar[str] = "quantile"
    means: ClassVar[str] = "a quantile of {of}"
    sql_key: ClassVar[str | None] = "grid"

    def default_alias(self) -> str:
        if self.p * 2 == 1:
            return f"median_{self.measure}"
        return f"quantile_{self.measure}_{float(self.p)}".replace(".", "_")

    @property
    def of(self) -> str | None:
        return self.measure

    def problems(self, schema: Schema) -> list[str]:
        problems = []
        measure = schema.measure(self.measure)
        if measure is None:
            problems.append(f"a quantile is requested of '{self.measure}', which is not a measure")
        elif self.mechanism.grid.steps(measure.step)[-1] < 1:
            problems.append(f"the grid of '{self.alias}' ends below one step of '{self.measure}'")
        if not 0 < self.p < 1:
            problems.append(f"the p of '{self.alias}' is not between 0 and 1")
        return problems

    def shares_tree(self, other: object) -> bool:
        """Whether both can be computed from the same noisy counts."""
        return isinstance(other, Quantile) and (self.measure, self.mechanism) == (other.measure, other.mechanism)

    def parts(self, drawn: Sequence[Drawable]) -> tuple[Drawable, ...]:
        """Return the first quantile of the same tree, which answers all."""
        return next(((each,) for each in drawn if self.shares_tree(each)), (self,))

    def totals(self, schema: Schema) -> tuple[Total, ...]:
        return ()

    def bins(self) -> tuple[CountBins, ...]:
        return (CountBins(self.measure, self.mechanism.grid),)

    def step(self, schema: Schema) -> Fraction:
        measure = schema.measure(self.measure)
        return Fraction(1) if measure is None else measure.step

    def joint(self, mechanism: "Mechanism", schema: Schema) -> Joint:
        """Return the joint bound: one node per level counts a record."""
        grid = _tree(mechanism).grid
        levels = min(grid.bits, MOST_TREE_LEVELS)
        spacing, step = 1 << (grid.bits - levels), self.step(schema)
        last = grid.steps(step)[spacing - 1 : grid.size - 1 : spacing]
        return Joint(kind=NODES, measure=self.measure, points=tuple(each * step for each in last), levels=grid.bits)

    def lattice_noise(self, mechanism: "Mechanism", schema: Schema) -> tuple[Fraction, int] | None:
        """A node at each level of the tree counts the record."""
        tree = _tree(mechanism)
        return tree.noise_sigma, tree.grid.bits

    def example_sql(self, column: str) -> str:
        return f"MEDIAN({column})"

    def dry_run(self, mechanism: "Mechanism", schema: Schema, *, confidence: float) -> None:
        tree = _tree(mechanism)
        nothing = np.zeros((1, tree.grid.size), dtype=np.int64)
        tree.estimate(tree.release(nothing, rng=Secure()), p=float(self.p), confidence=confidence)

    def draw(
        self,
        exact: ExactTable,
        served: Sequence["CellMechanism"],
        schema: Schema,
        rng: BitSource,
        *,
        asked: Sequence[Statistic],
        confidence: float,
    ) -> Any:
        """Return all quantiles of this tree, by alias, to save memory."""
        (bins,), (serving,), measure = self.bins(), served, schema.measure(self.measure)
        assert measure is not None
        shares = {each.alias: each.p for each in asked if isinstance(each, Quantile) and self.shares_tree(each)}
        return draw_quantiles(
            shares, _tree(serving.mechanism), measure, exact.bins[bins], exact.cells, rng, confidence=confidence
        )

    def column(self, answers: Sequence[Any], *, confidence: float) -> NoisyColumn:
        (columns,) = answers
        column: NoisyColumn = columns[self.alias]
        return column

    def description(self) -> dict[str, Any]:
        return Statistic.description(self) | {"p": self.p, "unbiased": False, "mechanism": self.mechanism}

    def entry(self) -> dict[str, Any]:
        return {"p": self.p, **self.mechanism.given_parameters()}

    @classmethod
    def read_entry(cls, column: str, node: "Node", reader: EntryReader) -> Statistic | None:
        """Read a quantile's entry.

        ``quantile.payann = { p = 0.5, grid = { log = [1, 1e9], bits = 10 }, rho = 0.1 }``.
        """
        from recordwise.mechanisms.quantile import TreeQuantile

        entries = node.table("p", "grid", "rho", "as", needed=("p", "grid", "rho"))
        p = entries["p"].number() if "p" in entries else None
        alias = entries["as"].text() if "as" in entries else ""
        tree = reader.build_mechanism(TreeQuantile, node, entries)
        if p is None or tree is None or alias is None:
            return None
        return node.attempt(lambda: cls(alias=alias, measure=column, p=rational(p, parameter="p"), mechanism=tree))

    @classmethod
    def read_sql_mechanism(cls, node: "Node", reader: EntryReader) -> Any | None:
        from recordwise.mechanisms.quantile import TreeQuantile

        return reader.build_mechanism(TreeQuantile, node, node.table("grid", "rho", needed=("grid", "rho")))

    @classmethod
    def read_sql(cls, node: "exp.Expr", alias: str | None, mechanisms: NamedMechanisms) -> Statistic | None:
        from recordwise.mechanisms.quantile import TreeQuantile

        found = _column_and_share(node)
        if found is None:
            return None
        column, p = found
        mechanism = mechanisms.take(alias, column)
        if not isinstance(mechanism, TreeQuantile):
            raise SqlError(construct="a quantile without a grid", advice="Give it TreeQuantile(grid=..., rho=...).")
        return cls(alias=alias or "", measure=column, p=p, mechanism=mechanism)


def _column_and_share(node: "exp.Expr") -> tuple[str, Fraction] | None:
    """Return the column and share of a SQL quantile.

    MEDIAN(x), QUANTILE_CONT(x, p) or PERCENTILE_CONT(p) WITHIN GROUP (ORDER BY x).
    """
    from sqlglot import exp

    from recordwise.plan.sql.grammar import aggregated_column, only

    if type(node) is exp.Median:
        only(node, "this")
        return aggregated_column(node.this), Fraction(1, 2)
    if type(node) is exp.PercentileCont:
        only(node, "this", "expression")
        return aggregated_column(node.this), _share(node.args.get("expression"))
    if type(node) is exp.WithinGroup and type(node.this) is exp.PercentileCont:
        only(node, "this", "expression")
        only(node.this, "this")
        order = node.args["expression"]
        only(order, "expressions")
        (ordered,) = order.expressions if len(order.expressions) == 1 else (order,)
        if type(ordered) is not exp.Ordered or ordered.args.get("desc"):
            raise SqlError(construct="WITHIN GROUP of an expression", advice="Write ORDER BY column.")
        only(ordered, "this", "nulls_first")
        return aggregated_column(ordered.this), _share(node.this.this)
    return None


def _share(node: "exp.Expr | None") -> Fraction:
    from recordwise.plan.sql.grammar import literal

    share = None if node is None else literal(node)
    if not isinstance(share, Fraction) or not 0 < share < 1:
        raise SqlError(construct="a quantile whose share is not a number between 0 and 1")
    return share


def _tree(mechanism: "Mechanism") -> "TreeQuantile":
    from recordwise.mechanisms.quantile import TreeQuantile

    assert isinstance(mechanism, TreeQuantile)
    return mechanism


def draw_quantiles(
    shares: Mapping[str, Fraction],
    mechanism: "TreeQuantile",
    measure: Measure,
    bins: BinCounts,
    cells: int,
    rng: BitSource,
    *,
    confidence: float,
) -> dict[str, NoisyColumn]:
    """Return every cell's quantiles by alias, from the same noisy trees."""
    found: dict[str, list[QuantileEstimates]] = {alias: [] for alias in shares}
    at_once = max(1, NODES_AT_ONCE // (2 * mechanism.grid.size))
    for first in range(0, cells, at_once):
        count = min(at_once, cells - first)
        here = slice(*np.searchsorted(bins.position, [first, first + count]))
        leaves = np.zeros((count, mechanism.grid.size), dtype=np.int64)
        leaves[bins.position[here] - first, bins.point[here]] = bins.held[here]
        noisy = mechanism.release(leaves, rng=rng)
        for alias, p in shares.items():
            found[alias].append(mechanism.estimate(noisy, p=float(p), confidence=confidence))
    return {alias: _noisy_column(alias, _join_estimates(parts), mechanism, measure) for alias, parts in found.items()}


def _join_estimates(parts: "list[QuantileEstimates]") -> dict[str, IntArray]:
    nothing = np.empty(0, dtype=np.int64)
    return {name: np.concatenate([nothing, *(getattr(part, name) for part in parts)]) for name in QUANTILE_FIELDS}


def _noisy_column(
    alias: str, positions: dict[str, IntArray], mechanism: "TreeQuantile", measure: Measure
) -> NoisyColumn:
    """Return grid positions as amounts.

    Values up to the first point may be 0. An upper end at the last point carries no information and is left
    empty, unless the measure's public bound is no larger.
    """
    points = np.array([float(steps * measure.step) for steps in mechanism.grid.steps(measure.step)])
    below = np.concatenate([[0.0], points])
    above = np.concatenate([points[:-1], [points[-1] if measure.bound <= points[-1] else np.nan]])
    spread: FloatArray = (points[positions["spread_high"]] - below[positions["spread_low"] + 1]) / 2
    return NoisyColumn(
        alias=alias,
        value=points[positions["value"]],
        standard_error=spread,
        low=below[positions["low"] + 1],
        high=above[positions["high"]],
        flag=f"{NOT_UNBIASED}: a quantile is read off a public grid",
    )
