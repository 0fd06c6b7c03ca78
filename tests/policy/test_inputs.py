"""Tables from every library give the same losses; NULLs, empty tables and huge whole numbers are read exactly."""

from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from recordwise.errors import RecordError
from recordwise.exact.functions import log, x
from recordwise.policy import (
    ConditionColumn,
    Measure,
    Null,
    Policy,
    additive,
    among,
    by,
    compare,
    constant,
    gaussian_sum,
    selection,
    split,
)

PAY = Measure("pay", Fraction(1, 100))
COLUMNS: dict[str, list[Any]] = {
    "emp": [0, 1, 50, 51, 120, 7],
    "pay": [0.0, 2.1, 0.7, 100.01, 3.33, 1.0],
    "state": ["06", "36", None, "06", "é'\"", ""],
    "flag": [True, False, None, True, False, True],
    "size": [1.5, None, 0.1, 3.0, 5.0, -2.0],
}
POLICY = (
    split("0.1", {"emp": 50, PAY: "0.7"})
    + gaussian_sum(PAY, sigma=3).where(among("state", ["06", "é'\""]))
    + additive("emp", log(x + 2)).where(~among("flag", [True]))
    + constant(1).where(compare("size", ">", "0.1") | Null(ConditionColumn("state")))
)
EXPECTED = [POLICY.loss({name: column[row] for name, column in COLUMNS.items()}) for row in range(6)]


def arrow() -> pa.Table:
    return pa.table(COLUMNS)


TABLES: dict[str, Any] = {
    "lists": lambda: COLUMNS,
    "tuples": lambda: {name: tuple(column) for name, column in COLUMNS.items()},
    "object arrays": lambda: {name: np.array(column, dtype=object) for name, column in COLUMNS.items()},
    "arrow": arrow,
    "arrow chunks": lambda: pa.concat_tables([arrow().slice(0, 2), arrow().slice(2)]),
    "arrow batch": lambda: arrow().to_batches()[0],
    "arrow dictionary": lambda: arrow().set_column(2, "state", arrow()["state"].dictionary_encode()),
    "arrow large string": lambda: arrow().set_column(2, "state", arrow()["state"].cast("large_string")),
    "arrow decimal": lambda: arrow().set_column(1, "pay", pa.array([Decimal(str(v)) for v in COLUMNS["pay"]])),
    "arrow decimal group": lambda: arrow().set_column(
        4, "size", pa.array([None if v is None else Decimal(str(v)) for v in COLUMNS["size"]])
    ),
    "arrow arrays": lambda: {name: pa.array(column) for name, column in COLUMNS.items()},
    "pandas": lambda: pd.DataFrame(COLUMNS),
    "pandas nullable": lambda: pd.DataFrame(COLUMNS).convert_dtypes(),
    "pandas categorical": lambda: pd.DataFrame(COLUMNS).astype({"state": "category"}),
    "pandas arrow": lambda: pd.DataFrame(COLUMNS).convert_dtypes(dtype_backend="pyarrow"),
    "polars": lambda: pl.DataFrame(COLUMNS),
    "polars categorical": lambda: pl.DataFrame(COLUMNS).with_columns(pl.col("state").cast(pl.Categorical)),
    "unsigned": lambda: {**COLUMNS, "emp": np.array(COLUMNS["emp"], np.uint8)},
    "fractions": lambda: {**COLUMNS, "pay": [Fraction(str(v)) for v in COLUMNS["pay"]]},
}


@pytest.mark.parametrize("name", list(TABLES))
def test_every_kind_of_table_gives_the_same_losses(name: str) -> None:
    losses = POLICY.loss(TABLES[name]())
    assert isinstance(losses, np.ndarray)
    assert losses == pytest.approx(EXPECTED, rel=1e-12)
    assert np.all(losses >= np.nextafter(EXPECTED, 0))


@pytest.mark.parametrize("name", list(TABLES))
def test_an_empty_table_has_no_losses(name: str) -> None:
    table = TABLES[name]()
    empty = {key: column[:0] for key, column in table.items()} if isinstance(table, dict) else table[:0]
    if isinstance(table, (pa.Table, pa.RecordBatch)):
        empty = table.slice(0, 0)
    assert POLICY.loss(empty).shape == (0,)
    assert POLICY.delta(empty).shape == (0,)


def test_a_table_of_nothing_but_nulls_in_a_group_column_is_read() -> None:
    policy = constant(1).where(Null(ConditionColumn("state"))) + constant(2).where(among("state", ["06"]))
    for column in (
        [None, None],
        pa.nulls(2),
        pd.Series([None, None]),
        np.array([None, None], object),
        pl.Series([None, None]),
    ):
        assert list(policy.loss({"state": column})) == pytest.approx([1, 1])


def test_one_record_may_hold_numpy_scalars_decimals_and_fractions() -> None:
    policy = split(1, {PAY: "0.7"})
    for value in (2.1, np.float64(2.1), Decimal("2.1"), Fraction(21, 10), "2.1"):
        assert policy.loss({"pay": value}) == 9
    assert policy.loss({"pay": np.array(2.1)}) == 9
    assert gaussian_sum("emp", sigma=1).loss({"emp": np.int8(100)}) == 5000


@pytest.mark.theorem("T-OUTWARD")
@pytest.mark.parametrize("step, at", [("0.1", "0.7"), ("0.01", "0.07"), ("0.7", "2.1"), ("1/3", 1), ("0.001", "0.003")])
def test_decimals_on_a_threshold_are_not_cut_once_too_often(step: Any, at: Any) -> None:
    """ceil(2.1/0.7) is 4 in floats; the pieces are 3."""
    measure = Measure("pay", step)
    policy = split(1, {measure: at})
    for times in (1, 2, 3, 7, 1000, 12345, 99999):
        value = float(Fraction(at) * times)
        assert policy.loss({"pay": value}) == times**2
        assert policy.loss({"pay": np.array([value])})[0] == pytest.approx(times**2, rel=1e-15)
        over = float(Fraction(at) * times + Fraction(step))
        assert policy.loss({"pay": np.array([over])})[0] == pytest.approx((times + 1) ** 2, rel=1e-15)


@pytest.mark.theorem("T-OUTWARD")
@pytest.mark.parametrize("kind", ["int64", "uint64", "object", "arrow", "float64"])
def test_whole_numbers_beyond_two_to_the_53_are_never_counted_low(kind: str) -> None:
    at = 2**53
    policy = split(1, {"emp": at}) + selection(
        1, {"emp": at}, ((1, Fraction(1, 8)), (2, Fraction(1, 4)), (1000, Fraction(1, 2)))
    )
    for value in (2**53 - 1, 2**53, 2**53 + 1, 2**54, 2**54 + 1, 2**54 + 3, 3 * 2**53 + 1, 2**62 + 1, 2**63 - 1):
        column: Any = {
            "int64": lambda v: np.array([v], np.int64),
            "uint64": lambda v: np.array([v], np.uint64),
            "object": lambda v: [v],
            "arrow": lambda v: pa.array([v]),
            "float64": lambda v: np.array([float(v)]),
        }[kind](value)
        exact = int(float(value)) if kind == "float64" else value
        pieces = -(-exact // at)
        assert policy.loss({"emp": column})[0] >= pieces**2 + Fraction(pieces**2, 2)
        assert policy.delta({"emp": column})[0] >= policy.delta({"emp": exact})
        assert policy.loss({"emp": exact}) >= pieces**2


def test_whole_number_groups_are_told_apart_beyond_two_to_the_53() -> None:
    big = 2**53
    policy = constant(1).where(among("id", [big + 1])) + constant(2).where(compare("id", ">", big))
    column = [big - 1, big, big + 1, big + 2]
    for records in (np.array(column), pa.array(column), column, pd.Series(column), pl.Series(column)):
        assert list(policy.loss({"id": records})) == pytest.approx([0, 0, 3, 2])


def test_a_float_is_compared_by_the_decimal_it_prints_as() -> None:
    third = constant(1).where(compare("size", "<", Fraction(1, 3))) + constant(2).where(among("size", [Fraction(1, 3)]))
    tenth = constant(1).where(compare("size", "<=", "0.1")) + constant(2).where(among("size", ["0.1", Fraction(1, 10)]))
    column = [1 / 3, 0.1, np.nextafter(0.1, 1)]
    for policy in (third, tenth):
        single = [policy.loss({"size": value}) for value in column]
        assert list(policy.loss({"size": np.array(column)})) == pytest.approx(single)
        assert list(policy.loss({"size": column})) == pytest.approx(single)
    assert third.loss({"size": 1 / 3}) == 1
    assert tenth.loss({"size": 0.1}) == 3


def test_prefixes_count_characters_and_leave_numbers_alone() -> None:
    policy = constant(1).where(among(ConditionColumn("naics", 2), ["31", "😀a"]))
    column = ["311", "31", "3", "", "😀ab", None, 31]
    assert list(policy.loss({"naics": column})) == pytest.approx([1, 1, 0, 0, 1, 0, 0])
    assert [policy.loss({"naics": value}) for value in column] == [1, 1, 0, 0, 1, 0, 0]


def test_a_constant_policy_needs_no_columns() -> None:
    policy = constant("0.5")
    assert policy.loss({}) == 0.5
    assert policy.loss({"emp": 5}) == 0.5
    for table in (arrow(), pd.DataFrame(COLUMNS), pl.DataFrame(COLUMNS), COLUMNS):
        assert list(policy.loss(table)) == [0.5] * 6
    assert list(Policy().loss(arrow())) == [0.0] * 6


def test_columns_of_different_lengths_are_refused() -> None:
    policy = gaussian_sum("emp", sigma=1) + constant(1).where(among("state", ["06"]))
    with pytest.raises(RecordError, match="length"):
        policy.loss({"emp": [1, 2], "state": ["06"]})


def test_a_row_of_a_frame_is_no_table() -> None:
    with pytest.raises(RecordError):
        split(1, {"emp": by("state", {"06": 5})}).loss(pd.DataFrame(COLUMNS).iloc[0])


@pytest.mark.parametrize("kind", [pa.int64(), pa.float64()], ids=str)
@pytest.mark.parametrize(("order", "bound"), [("<", 5), (">", -5), ("<=", 0), (">=", 0)])
def test_a_gap_in_a_column_of_numbers_stands_in_no_order_to_any_number(kind: Any, order: str, bound: int) -> None:
    policy = constant(1).where(compare("size", order, bound))
    assert policy.loss({"size": pa.array([None, 0], kind)}).tolist() == [0, 1]
    assert policy.loss({"size": None}) == 0


@pytest.mark.parametrize("kind", [np.int64, np.uint8, np.float64])
def test_whole_numbers_are_held_against_a_bound_between_two_of_them_as_it_stands(kind: Any) -> None:
    sizes = {"size": np.array([2, 3], dtype=kind)}
    wanted = {"<": [1, 0], "<=": [1, 0], ">": [0, 1], ">=": [0, 1]}
    assert {order: constant(1).where(compare("size", order, "2.5")).loss(sizes).tolist() for order in wanted} == wanted
