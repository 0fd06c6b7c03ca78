"""Confidential summaries for the owner of the data: how large the losses of the records really are. Never published.

Losses are computed where the records are; only the counts of the bins travel, and they print as nothing but a warning.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
from sqlglot import exp

from recordwise.errors import ParameterError
from recordwise.exact import constant_ball, float_upper
from recordwise.mechanisms.clamped import Clamped
from recordwise.mechanisms.transforming import TransformedNoise
from recordwise.plan import Plan, PlannedTable
from recordwise.plan.analysis import possible_mechanisms, statistic_policy
from recordwise.plan.average import Average
from recordwise.plan.lowering import total_name
from recordwise.plan.query import Drawable
from recordwise.plan.statistics import Sum
from recordwise.plan.summaries import BIN_EDGES, COUNT, bin_name
from recordwise.policy import Policy
from recordwise.policy.concave_atoms import laplace_zcdp
from recordwise.policy.sql import amount_sql, evaluator_of, number, terms_sql

EDGES = tuple(float(edge) for edge in np.geomspace(1e-6, 1e9, 301))
"""Bins of a loss: twenty to a factor of ten."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class LossSummary:
    """CONFIDENTIAL: how many records (or firms) have a loss of at most each edge, as counted in the data."""

    edges: tuple[float, ...]
    counts: np.ndarray[tuple[int, ...], np.dtype[np.int64]]
    """One more than edges: the last bin is above all of them."""

    def share_above(self, loss: float) -> float:
        """The share with a loss above an edge (the next edge that is not below ``loss``)."""
        place = int(np.searchsorted(self.edges, loss))
        return float(self.counts[place + 1 :].sum() / max(1, self.counts.sum()))

    def cdf(self) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
        """For each edge the share with a loss of at most it."""
        return np.asarray(np.cumsum(self.counts[:-1]) / max(1, self.counts.sum()))

    def quantile(self, p: float) -> float:
        """The smallest edge that at least a share ``p`` does not exceed; infinite where no edge is enough."""
        enough = np.flatnonzero(self.cdf() >= p)
        return self.edges[enough[0]] if len(enough) else float("inf")

    def __repr__(self) -> str:
        return "<LossSummary: CONFIDENTIAL>"


def read_summary(found: pa.Table, edges: Sequence[float]) -> LossSummary:
    counts = np.zeros(len(edges) + 1, dtype=np.int64)
    counts[found.column("bin").to_numpy()] = found.column("records").to_numpy()
    return LossSummary(edges=tuple(edges), counts=counts)


def read_summaries(found: pa.Table, count: int) -> tuple[LossSummary, ...]:
    """Several histograms that were made in one pass."""
    records, summaries = found.column(COUNT).to_numpy(), []
    for place in range(count):
        bins = found.column(bin_name(place))
        counts = np.zeros(len(BIN_EDGES) + 1, dtype=np.int64)
        counts[bins.drop_null().to_numpy()] = records[bins.is_valid().to_numpy()]
        summaries.append(LossSummary(edges=BIN_EDGES, counts=counts))
    return tuple(summaries)


def realised_tree(plan: Plan, table: PlannedTable, dialect: str) -> exp.Expr:
    """The realised loss of a record in its cell: what it changed in each answer, summed over the statistics of a table."""
    first, *rest = realised_trees(plan, table, Policy(), dialect).values()
    total = first
    for part in rest:
        total = exp.Add(this=total, expression=part)
    return exp.Paren(this=total)


def realised_trees(plan: Plan, table: PlannedTable, extra: Policy, dialect: str) -> dict[str, exp.Expr]:
    """The realised loss of a record by each statistic of a table, each with an ``extra`` policy added.

    Noise that is the same for every cell costs what its tight policy says, whatever else is in the cell. A transform costs what f
    of the cell's total with and without the record costs, plus one grid step (T-GRID).
    """
    parts: dict[str, exp.Expr] = {}
    for statistic in plan.queries[table.query].statistics:
        if isinstance(statistic, Average):
            raise ParameterError(parameter="query", problem="has an average; ask for its sum and its count instead")
        part = _realised(plan, table, statistic, dialect)
        if extra.rho:
            part = exp.Add(this=part, expression=exp.Paren(this=terms_sql(extra.rho, dialect)))
        parts[statistic.alias] = exp.Paren(this=part)
    return parts


def _realised(plan: Plan, table: PlannedTable, statistic: Drawable, dialect: str) -> exp.Expr:
    mechanisms = possible_mechanisms(plan, table, statistic)
    if isinstance(statistic, Sum) and any(isinstance(each, TransformedNoise) for each in mechanisms):
        return _transformed(plan, table, statistic, mechanisms[0], dialect)
    if isinstance(statistic, Sum) and isinstance(mechanisms[0], Clamped):
        return _clamped(statistic, mechanisms[0], dialect)
    policy = statistic_policy(statistic, table.shape, plan.schema, tight=True)
    return exp.Paren(this=terms_sql(policy.rho, dialect))


def _clamped(statistic: Sum, mechanism: Clamped, dialect: str) -> exp.Expr:
    """A record smaller than the bound changed the sum by what it has, not by the bound."""
    sql, amount = evaluator_of(dialect), amount_sql(statistic.measure)
    size = exp.Least(this=amount, expressions=[number(float(mechanism.to))], ignore_nulls=False)
    return sql.multiply(number(float_upper(1 / (2 * mechanism.noise_sigma**2))), sql.power(size, Fraction(2)))


def _transformed(plan: Plan, table: PlannedTable, statistic: Sum, mechanism: Any, dialect: str) -> exp.Expr:
    measure = plan.schema.measure(statistic.measure)
    step = measure.step if measure else Fraction(1)
    sql, grid = evaluator_of(dialect), mechanism.grid(step)
    steps = exp.column(total_name(table, statistic.totals(plan.schema)[0]), quoted=True)
    whole = sql.multiply(exp.cast(steps, "double"), number(float(step)))
    amount = exp.cast(exp.column(exp.to_identifier(statistic.measure, quoted=True)), "double")
    without = exp.Greatest(
        this=exp.Paren(this=exp.Sub(this=whole.copy(), expression=amount.copy())),
        expressions=[number(0.0)],
        ignore_nulls=False,
    )
    rise = mechanism.function.increase
    change = exp.Paren(this=exp.Sub(this=rise(sql, whole), expression=rise(sql, without)))
    shift = sql.add(exp.Greatest(this=change, expressions=[number(0.0)], ignore_nulls=False), number(float(grid)))
    if mechanism.sigma is not None:
        loss = sql.multiply(number(float(1 / (2 * mechanism.sigma**2))), sql.power(shift, Fraction(2)))
    else:
        epsilon = sql.divide(shift, sql.constant(constant_ball(mechanism.laplace_scale)))
        loss = laplace_zcdp(sql, epsilon, grid / mechanism.laplace_scale)
    return sql.if_positive(amount, loss)
