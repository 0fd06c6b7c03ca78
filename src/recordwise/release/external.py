"""Mechanisms from elsewhere (a callable or an OpenDP measurement) on the unit-split table: what they cost and what they publish.

OpenDP itself is not imported here; a measurement is recognized by what it offers.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from recordwise.errors import ExternalError, KeysError, ParameterError, PlanError
from recordwise.exact.numbers import Number, fraction_text, positive
from recordwise.mechanisms.described import parameter_json
from recordwise.plan.column_types import threshold_problems
from recordwise.plan.cost import check_policy
from recordwise.plan.describe import predicate_json
from recordwise.plan.keys import as_arrow
from recordwise.plan.plan import predicate_problems
from recordwise.plan.predicates import Predicate
from recordwise.plan.predicates import condition as policy_condition
from recordwise.plan.schema import Schema, policy_measure
from recordwise.plan.splitting import PIECE, Splitting, check_thresholds
from recordwise.plan.sql.grammar import parse_predicate
from recordwise.policy.constructors import By
from recordwise.policy.constructors import split as split_policy
from recordwise.policy.conversions import pure_to_zcdp
from recordwise.policy.measure import Measure
from recordwise.policy.policy import Policy
from recordwise.release.tables import publishable

CHARGED = "The charge stays in the ledger and nothing was published."
NOT_CHARGED = "Nothing was spent."


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalMechanism:
    """A mechanism that is ``rho``-zCDP when one row is added or removed."""

    name: str
    rho: Fraction
    known_from: str
    column: str | None
    """The one column it reads; None if it takes the whole table."""
    prepare: Callable[[pa.Table], Any]
    """Row by row, from the split table to what the mechanism takes; refuses rows outside its domain."""
    call: Callable[[Any], Any]

    def run(self, rows: Any) -> pa.Table:
        """Call it. What it raises can quote a record, so only the kind is told."""
        try:
            result = self.call(rows)
        except Exception as error:
            failed = ExternalError(mechanism=self.name, problem=f"failed with {type(error).__name__}", state=CHARGED)
        else:
            return published(result, self.name)
        raise failed from None


def refused(name: str, problem: str, advice: str = "") -> ExternalError:
    """A refusal before anything was spent."""
    return ExternalError(mechanism=name, problem=f"was refused: it {problem}", state=NOT_CHARGED, advice=advice)


def published(result: Any, name: str) -> pa.Table:
    """A result as a table: a frame or mapping as it is, a list or a number as one column ``value``."""
    try:
        if isinstance(result, pa.Table | Mapping) or hasattr(result, "columns"):
            table = as_arrow(dict(result) if isinstance(result, Mapping) else result)
        else:
            table = pa.table({"value": pa.array(np.atleast_1d(np.asarray(result)))})
        plain = [_plain(column) for column in table.columns]
    except (KeysError, ParameterError, pa.ArrowException, TypeError, ValueError):
        raise ExternalError(
            mechanism=name, problem="gave back something that is no table, list or number", state=CHARGED
        ) from None
    return pa.table(plain, names=table.column_names)


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_large_string(column.type) or pa.types.is_string_view(column.type):
        column = column.cast(pa.string())
    if not publishable(column.type):
        raise ParameterError(parameter="result", problem="has a column that is neither numbers, text nor truth values")
    return column


METRICS = ("SymmetricDistance()", "InsertDeleteDistance()")
"""The metrics that count rows added or removed; the split table has a fixed order, so that either will do."""
GROUP_POWER = {"ZeroConcentratedDivergence": 2, "MaxDivergence": 1}
"""How the loss of k rows may grow with k (T-FOREIGN)."""
SIZES = (*range(2, 65), *(2**power for power in range(7, 17)))
"""Numbers of rows at which a privacy map is asked whether it grows no faster than that."""
ROUNDING = Fraction(1, 10**9)
"""Relative slack for the upward rounding inside a map."""
WRAP = "Wrap it in a Python callable and declare its rho."
SIZED = "A domain of known size does that: leave the size out."


def is_opendp(mechanism: Any) -> bool:
    """Told by its name, so that nobody needs OpenDP who does not use it."""
    kind = type(mechanism)
    return kind.__module__.partition(".")[0] == "opendp" and kind.__name__ == "Measurement"


def read_opendp(measurement: Any, *, name: str, column: str | None) -> ExternalMechanism:
    """Metric, measure, domain and map are asked before a row is read."""
    from importlib.metadata import version

    if column is None:
        raise ParameterError(parameter="column", problem="must name the column whose values the measurement takes")
    metric = str(measurement.input_metric)
    if metric not in METRICS:
        raise refused(name, f"counts neighbours by {metric}, not by rows added or removed")
    carrier = str(measurement.input_domain.carrier_type)
    if carrier not in CARRIERS:
        raise refused(name, f"takes {carrier}, not a vector of numbers, truth values or text", WRAP)
    rho = per_row_loss(measurement, name)
    return ExternalMechanism(
        name=name,
        rho=rho,
        known_from=f"the privacy map of OpenDP {version('opendp')}",
        column=column,
        prepare=lambda rows: _members(rows.column(column), measurement, carrier, name),
        call=measurement,
    )


def per_row_loss(measurement: Any, name: str) -> Fraction:
    """The zCDP loss of one row; pure DP is converted. A map that outgrows group privacy is refused: it says something else."""
    measure = str(measurement.output_measure)
    if measure not in GROUP_POWER:
        raise refused(name, f"measures its loss by {measure}, not by zCDP or pure DP")
    one = _mapped(measurement, 1, name)
    for rows in SIZES:
        if _mapped(measurement, rows, name) > one * rows ** GROUP_POWER[measure] * (1 + ROUNDING):
            raise refused(
                name, f"has a map whose loss for {rows} rows is above what one row and group privacy allow", SIZED
            )
    return one if measure == "ZeroConcentratedDivergence" else Fraction(pure_to_zcdp(float(one)))


def _mapped(measurement: Any, rows: int, name: str) -> Fraction:
    loss = float(measurement.map(rows))
    if not (math.isfinite(loss) and loss >= 0):
        raise refused(name, f"promises nothing for {rows} rows")
    return Fraction(loss)


CARRIERS: dict[str, tuple[Any, Callable[[Any], Any]]] = {
    **{f"Vec<{name}>": (kind, int) for name, kind in {"i8": np.int8, "i16": np.int16, "i32": np.int32}.items()},
    **{f"Vec<{name}>": (kind, int) for name, kind in {"u8": np.uint8, "u16": np.uint16, "u32": np.uint32}.items()},
    **{f"Vec<{name}>": (kind, int) for name, kind in {"i64": np.int64, "u64": np.uint64, "usize": np.uint64}.items()},
    "Vec<f64>": (None, float),
    "Vec<f32>": (None, float),
    "Vec<bool>": (None, bool),
    "Vec<String>": (None, str),
}


def _members(values: pa.ChunkedArray, measurement: Any, carrier: str, name: str) -> list[Any]:
    """The rows as the measurement takes them. OpenDP wraps integers that do not fit and leaves bounds to its caller."""
    outside = refused(
        name, "has a domain that does not hold every row of the split table", "Compare it with the thresholds."
    )
    kind, convert = CARRIERS[carrier]
    try:
        listed = [convert(value) for value in values.to_pylist()]
    except (TypeError, ValueError):
        raise outside from None
    if kind is not None and listed and not np.iinfo(kind).min <= min(listed) <= max(listed) <= np.iinfo(kind).max:
        raise outside
    try:
        member = bool(measurement.input_domain.member(listed))
    except Exception:
        member = False
    if not member:
        raise outside
    return listed


DECLARED = "declared by the caller, not checked by recordwise"


def read_external(mechanism: Any, *, name: str, rho: Number | None, column: str | None) -> ExternalMechanism:
    """A callable with its declared loss, or an OpenDP measurement with the loss of its own map."""
    if is_opendp(mechanism):
        if rho is not None:
            raise ParameterError(parameter="rho", problem="is not declared for an OpenDP measurement: its map says it")
        return read_opendp(mechanism, name=name, column=column)
    if not callable(mechanism):
        raise ParameterError(parameter="mechanism", problem="is neither callable nor an OpenDP measurement")
    if rho is None:
        raise ParameterError(
            parameter="rho",
            problem="must be declared for a callable",
            advice="Its zCDP when one row is added or removed.",
        )
    loss = positive(rho, parameter="rho")
    select: Callable[[pa.Table], Any] = (lambda rows: rows) if column is None else (lambda rows: rows.column(column))
    return ExternalMechanism(name=name, rho=loss, known_from=DECLARED, column=column, prepare=select, call=mechanism)


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitRows:
    """Which rows an external mechanism sees: how records are split, and which of them take part."""

    splitting: Splitting
    condition: Predicate | None

    @classmethod
    def of(cls, split: Mapping[str, Number | By], where: str | None, column: str | None, schema: Schema) -> "SplitRows":
        """Checked against the schema before anything is read."""
        splitting = Splitting.of(split)
        condition = None if where is None else parse_predicate(where)
        problems = [] if condition is None else predicate_problems(condition, schema)
        problems += threshold_problems(dict(splitting.thresholds), schema)
        known = {schema.unit, schema.firm, *schema.column_names(), *schema.measure_names(), PIECE}
        if column is not None and column not in known:
            problems.append(f"'{column}' is not a column of the split table")
        if problems:
            raise PlanError(problems=tuple(problems))
        check_thresholds(splitting, schema)
        return cls(splitting=splitting, condition=condition)

    def policy(self, rho: Fraction, schema: Schema) -> Policy:
        """rho * pieces**2, for the records that take part (T-FOREIGN, T-WHERE)."""
        thresholds: dict[Measure | str, Number | By] = {
            policy_measure(name, schema): at for name, at in self.splitting.thresholds
        }
        whole = split_policy(rho, thresholds)
        return check_policy(whole if self.condition is None else whole.where(policy_condition(self.condition)), schema)

    def to_json(self, external: ExternalMechanism) -> dict[str, Any]:
        """For the ledger and release.json."""
        return {
            "foreign": external.name,
            "where": None if self.condition is None else predicate_json(self.condition),
            "split": {name: parameter_json(at) for name, at in self.splitting.thresholds},
            "column": external.column,
            "rho_per_row": fraction_text(external.rho),
            "loss_known_from": external.known_from,
        }
