"""Columns, dates, measures, conditions and bands of policies, by hand and by trying every case."""

import copy
import math
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from recordwise.errors import ParameterError, RecordError, UnknownFormError
from recordwise.exact.functions import log, x
from recordwise.policy import Measure, among, both, compare, complement, constant, either
from recordwise.policy import atoms as of
from recordwise.policy import columns as cols
from recordwise.policy.bands import BandTable
from recordwise.policy.columns import ConditionColumn, Truth
from recordwise.policy.conditions import (
    EVERY,
    NONE,
    AllOf,
    AnyOf,
    Compare,
    Null,
    band_tables,
    columns_of,
    compared_columns,
    depth,
    holds,
    in_band,
    split_bands,
)
from recordwise.policy.json import condition_from_json

F = Fraction


@pytest.mark.parametrize("bound", [F(1, 3), F(2, 3), F(1, 10), F(7), F(-1, 3)], ids=str)
@pytest.mark.parametrize("order", ["<", "<=", ">", ">="])
def test_floats_are_compared_as_their_shortest_decimals(bound: Fraction, order: str) -> None:
    used, near = cols.float_comparison(order, bound)
    for value in (np.nextafter(near, -9), near, np.nextafter(near, 9)):
        read = F(repr(float(value)))
        exact = {"<": read < bound, "<=": read <= bound, ">": read > bound, ">=": read >= bound}[order]
        floats = {"<": value < near, "<=": value <= near, ">": value > near, ">=": value >= near}[used]
        assert bool(floats) == exact
    assert cols.float_members([F(1, 10), F(1, 3), "a", Truth.TRUE, F(2)]) == [0.1, 2.0]


def test_whole_numbers_stored_as_floats_are_those_that_engines_convert_them_to() -> None:
    """The shortest decimal of 2^60 is another whole number: 1152921504606847000."""
    code = 2**60
    assert cols.read_float(2.0**60) == code
    assert cols.read_float(-(2.0**60)) == -code
    assert (cols.read_float(2.0**53), cols.read_float(0.1)) == (2**53, F(1, 10))
    policy = constant(2).where(among("code", [code])) + constant(1).where(compare("code", ">", code))
    held: dict[str, list[Any]] = {"code": [float(code), np.nextafter(float(code), math.inf), 1.0]}
    for column in (held["code"], np.array(held["code"]), pa.array(held["code"])):
        assert policy.loss({"code": column}) == pytest.approx([2, 1, 0], rel=1e-12, abs=0)
    for value, loss in zip(held["code"], (2, 1, 0)):
        assert policy.loss({"code": value}) == policy.loss({"code": int(value)}) == loss
    assert constant(1).where(among("code", [F("1152921504606847000")])).loss({"code": 2.0**60}) == 0


def test_parts_of_days_are_those_of_the_calendar() -> None:
    days = [date(1, 1, 1) + timedelta(each) for each in range(0, 3652058, 9973)]
    days += [date(2020, 12, 27) + timedelta(each) for each in range(12)] + [date(9999, 12, 31)]
    found = cols.parts_of_days(np.array([(day - date(1970, 1, 1)).days for day in days]))
    for place, day in enumerate(days):
        week = day.isocalendar()
        told = {
            "year": day.year,
            "quarter": -(-day.month // 3),
            "month": day.month,
            "week": week.week,
            "isoyear": week.year,
        }
        assert {part: int(each[place]) for part, each in found.items()} == told
        assert {part: cols.part_of(day, part) for part in cols.PARTS} == told
    with pytest.raises(ParameterError):
        cols.part_of(days[0], "day")


@pytest.mark.parametrize(
    "value, day",
    [
        (date(2025, 3, 4), date(2025, 3, 4)),
        (datetime(2025, 3, 4, 23), date(2025, 3, 4)),
        (datetime(2025, 3, 4, tzinfo=UTC), None),
        ("2025-03-04", date(2025, 3, 4)),
        ("2025-03-04T10:11", date(2025, 3, 4)),
        ("2025-03-04 10:11:12.123456789", date(2025, 3, 4)),
        ("2025-03-04 10:11:12.1234567890", None),
        ("2025-03-04T10:11Z", None),
        ("2025-02-30", None),
        ("2025-3-4", None),
        (20250304, None),
        (None, None),
    ],
)
def test_the_day_a_value_stands_for(value: Any, day: date | None) -> None:
    assert cols.day_of(value) == day


@pytest.mark.costly
def test_days_that_stand_for_all_others_give_every_answer_that_there_is() -> None:
    tests = [("year", F(2021)), ("week", F(53)), ("month", F(5, 2)), ("isoyear", F(2020)), ("quarter", F(4))]
    chosen = cols.representatives(tests)

    def answers(day: date) -> tuple[Any, ...]:
        return tuple((cols.part_of(day, part) > bound, cols.part_of(day, part) == bound) for part, bound in tests)

    everything = {answers(date(1990, 1, 1) + timedelta(each)) for each in range(26000)}
    assert {answers(day) for day in chosen} == everything
    assert len(chosen) == len(everything)
    assert len(cols.representatives([])) == 1
    assert {day.year > 9990 for day in cols.representatives([("year", F(20000))])} <= {True, False}
    assert min(day.year for day in cols.representatives([("year", F(-5)), ("month", F(1))])) >= 1


def test_what_agrees_on_a_column_agrees_on_its_prefixes() -> None:
    whole, two, three = ConditionColumn("a"), ConditionColumn("a", 2), ConditionColumn("a", 3)
    year = ConditionColumn("a", part="year")
    table = [[one.determines(other) for other in (whole, two, three, year)] for one in (whole, two, three, year)]
    assert table == [
        [True, True, True, False],
        [False, True, False, False],
        [False, True, True, False],
        [False, False, False, True],
    ]
    assert not whole.determines(ConditionColumn("b"))


@pytest.mark.parametrize(
    "make",
    [
        lambda: ConditionColumn(""),
        lambda: ConditionColumn(3),  # type: ignore[arg-type]
        lambda: ConditionColumn("a", True),
        lambda: ConditionColumn("a", part="day"),
        lambda: ConditionColumn("a", 2, "year"),
        lambda: Measure(""),
        lambda: Measure("a", F(0)),
        lambda: Measure("a", F(2**53 + 1)),
        lambda: Measure("a", F(1, 2**53 + 1)),
        lambda: Measure("a", signed=1),  # type: ignore[arg-type]
        lambda: Measure.linear("a", {Measure("b"): F(0)}),
        lambda: Measure.linear("a", {Measure.linear("c", {Measure("b"): F(1)}): F(1)}),
        lambda: Measure("a", F(1), derived=((Measure("b"), F(1, 2)),)),
        lambda: Measure("a", F(1), derived=((Measure("b"), F(-1)),)),
        lambda: Measure("a", F(1), True, derived=((Measure("b"), F(1)),)),
        lambda: Measure("a", F(1), derived=((Measure("c"), F(1)), (Measure("b"), F(1)))),
        lambda: Measure("a", F(1), derived=((Measure("b"), F(1)), (Measure("b"), F(1)))),
        lambda: Measure("a", F(1), derived=((Measure("b"), F(2**54)),)),
        lambda: cols.check_one_measure_a_name([Measure("a"), Measure("a", F(1, 2))]),
        lambda: cols.check_one_measure_a_name([Measure("a"), Measure.linear("c", {Measure("a", signed=True): F(1)})]),
        lambda: compare("a", "=", 3),
        lambda: among("a", "xy"),
        lambda: among("a", 3),  # type: ignore[arg-type]
        lambda: both(EVERY, "x"),  # type: ignore[arg-type]
        lambda: of.check_thresholds(((Measure("a"), F(1)), (Measure("a"), F(2)))),
        lambda: of.check_thresholds(((Measure("a", F(1, 2)), F(1, 4)),)),
        lambda: of.check_steps([], parameter="s"),
        lambda: of.check_steps([(True, 1)], parameter="s"),
        lambda: of.check_steps([(1, 1, 1)], parameter="s"),
        lambda: of.check_knots([]),
        lambda: of.check_knots([(1, 1)]),
        lambda: of.check_knots([(1, F(1), F(1))]),
        lambda: of.PureOne(F(0), F(1)),
        lambda: of.PureOne(F(1), F(0)),
        lambda: of.PurePieces((), F(0), F(1)),
        lambda: of.PurePieces((), F(1), F(0)),
        lambda: of.ClampedSquare(Measure("a"), F(0)),
        lambda: of.ClampedSquare(Measure("a"), F(3, 2)),
        lambda: of.Additive(Measure("a"), x, "best"),
        lambda: of.Additive(Measure("a"), x**2, "pure"),
        lambda: of.Additive(Measure("a"), "x", "pure"),  # type: ignore[arg-type]
        lambda: of.LaplaceSum(Measure("a"), F(0), F(1)),
        lambda: of.LaplaceSum(Measure("a"), F(1), F(0)),
        lambda: of.LaplaceSum(Measure("a"), F(2), F(1)),
        lambda: of.GaussianTransform(Measure("a"), x, F(0)),
        lambda: of.LaplaceTransform(Measure("a"), x, F(1), F(0)),
        lambda: of.LaplaceTransform(Measure("a"), x, F(101), F(1)),
        lambda: of.CertifiedSum(Measure("a"), x, ((2, F(1)),), F(-1)),
        lambda: of.CertifiedSum(Measure("a"), x, ((2, F(1)),), F(101, 100)),
    ],
)
def test_what_makes_no_sense_is_refused(make: Any) -> None:
    with pytest.raises(ParameterError):
        make()


def test_neighbors_of_what_is_refused_are_accepted() -> None:
    assert Measure("a", F(2**53 + 2)).step == 2**53 + 2
    assert Measure("a", F(1, 2), derived=((Measure("b"), F(1, 2)),)).inputs() == (Measure("b"),)
    assert Measure("a", F(1), derived=((Measure("b"), F(2**53)),)).derived[0][1] == 2**53
    assert of.LaplaceTransform(Measure("a"), x, F(100), F(1)).grid == 100
    assert of.CertifiedSum(Measure("a"), x, ((2, F(1)),), F(1)).less == 1
    assert of.LaplaceSum(Measure("a"), F(1, 3), F(1)).grid == F(1, 3)
    cols.check_one_measure_a_name([Measure("a"), Measure.linear("c", {Measure("a"): F(1)}), Measure("a")])


def test_steps_of_measures_by_hand() -> None:
    tenth = Measure("a", F(1, 10))
    assert [tenth.steps(F(each)) for each in ("0", "0.1", "0.11", "2.1", "-0.05")] == [0, 1, 2, 21, 0]
    assert tenth.steps(F(2.1)) == 21
    assert tenth.steps(F(21, 10) * (1 + F(1, 2**49))) == 22
    assert cols.common_step([F(1, 2), F(1, 3)]) == F(1, 6)
    assert cols.common_step([F(4), F(6)]) == 2
    made = Measure.linear("rest", {Measure("pay", F(1, 2)): F(1), Measure("emp", F(3)): F(-5, 2), Measure("z"): F(0)})
    assert (made.step, made.signed, len(made.derived)) == (F(1, 2), True, 2)
    assert not Measure.linear("rest", {Measure("pay"): F(3)}).signed
    assert Measure.linear("rest", {Measure("pay", signed=True): F(3)}).signed
    assert Measure.from_json(made.to_json()) == made
    assert Measure.from_json(tenth.to_json()) == tenth


@pytest.mark.parametrize(
    "form",
    [["a", "1", "other"], ["a", "1"], ["a", 1, "signed"], ["a", "1", "signed", []], ["a", "1", "signed", [["b", "1", "signed"]]],
     ["a", "1", "signed", [["b", "1", "signed", "x"]]], ["a", "1", "signed", [["b", "1", "signed", "1/0"]]]],
)  # fmt: skip
def test_measures_that_nobody_wrote_are_refused(form: Any) -> None:
    with pytest.raises(UnknownFormError):
        Measure.from_json(form)


@pytest.mark.parametrize(
    "form", [3, ["a"], ["a", "2"], {"part": "year"}, {"part": "year", "of": "a", "more": 1}, {"part": "", "of": "a"}]
)
def test_columns_that_nobody_wrote_are_refused(form: Any) -> None:
    with pytest.raises(UnknownFormError):
        cols.column_from_json(form)


# Conditions.


A, B = among("a", ["x", "y"]), compare("n", "<", 5)
EACH = [
    A, B, among("a", ["y", "z"]), among("a", ["x"], inside=False), compare("n", ">=", 3), Null(ConditionColumn("a")),
    Null(ConditionColumn("n"), inside=False), among(ConditionColumn("a", 1), ["x"]), compare("n", ">", 5), compare("n", "<=", 3),
]  # fmt: skip
RECORDS: list[dict[str, Any]] = [
    {"a": a, "n": n} for a, n in product(["x", "y", "z", "xx", None], [F(2), F(3), F(4), F(5), F(6), None])
]


@pytest.mark.parametrize("one", EACH, ids=str)
def test_conditions_mean_what_their_parts_mean(one: Any) -> None:
    apart = complement(one)
    for other in EACH:
        joined, any_of = both(one, other), either(one, other)
        neither, not_both = complement(any_of), complement(joined)
        for record in RECORDS:
            first, second = holds(one, record), holds(other, record)
            told = [holds(each, record) for each in (joined, any_of, apart, neither, not_both)]
            meant = [first and second, first or second, not first, not (first or second), not (first and second)]
            assert told == meant
    assert condition_from_json(one.to_json()) == one
    assert complement(complement(one)) == one


def test_conditions_are_in_one_form() -> None:
    assert both() == EVERY
    assert either() == NONE
    assert (both(A, NONE), either(A, EVERY), both(A), either(B)) == (NONE, EVERY, A, B)
    assert (both(A, complement(A)), either(EACH[5], complement(EACH[5]))) == (NONE, EVERY)
    assert both(A, among("a", ["y", "z"])) == among("a", ["y"])
    assert both(A, among("a", ["z"])) == NONE
    assert both(A, among("a", ["x"], inside=False)) == among("a", ["y"])
    assert both(among("a", ["x"], inside=False), among("a", ["y"], inside=False)) == among(
        "a", ["x", "y"], inside=False
    )
    assert both(A, both(B, EACH[4])) == both(B, A, EACH[4])
    assert among("a", ["y", "x", "x"]) == A
    assert (among("a", []), among("a", [], inside=False)) == (NONE, Null(ConditionColumn("a"), inside=False))
    assert among("a", [True]) != among("a", [1])
    assert [depth(each) for each in (A, both(A, B), either(both(A, B), EACH[4]))] == [0, 1, 2]
    assert columns_of(both(A, B)) == {ConditionColumn("a"), ConditionColumn("n")}
    assert compared_columns(either(A, B)) == {"n"}
    assert compared_columns(Compare(ConditionColumn("d", part="year"), "<", F(2))) == set()
    assert split_bands(both(A, B)) == ((), both(A, B))
    assert not holds(compare("a", "<", 5), {"a": "x"})
    assert holds(among(ConditionColumn("d", part="month"), [3]), {"d": date(2025, 3, 4)})
    assert not holds(among(ConditionColumn("d", part="month"), [3]), {"d": None})
    with pytest.raises(RecordError):
        holds(among(ConditionColumn("d", part="month"), [3]), {"d": "x"})


# Bands.


def table(**how: Any) -> BandTable:
    given: dict[str, Any] = {
        "columns": (ConditionColumn("a", 1), ConditionColumn("n")),
        "edges": (F(1), F(5, 2), F(9)),
        "values": (("x", "y", None), (F(3), F(4))),
        "places": np.array([0, 1, 3, 5], np.int64),
        "bands": np.array([2, 0, 1, 2], np.int64),
    }
    return BandTable(**(given | how))


def test_bands_of_every_cell() -> None:
    made = table()
    found = {(a, n): made.band_of({"a": a, "n": n}) for a in ("xa", "y", None, "z") for n in (F(3), F(4), F(5), None)}
    listed = {("xa", F(3)): 2, ("xa", F(4)): 0, ("y", F(4)): 1, (None, F(4)): 2}
    assert found == {key: listed.get(key, 0) for key in found}  # type: ignore[call-overload]
    assert (made.size(), made.strides()) == (6, [2, 1])
    assert [each.tolist() for each in made.numbers_of_cells()] == [[0, 0, 1, 2], [0, 1, 1, 1]]
    assert made.value_numbers(0, ["y", None, "q"]).tolist() == [1, 2, -1]
    three = table(columns=(ConditionColumn("a"), ConditionColumn("n"), ConditionColumn("m")),
                  values=(("x", "y"), (F(3), F(4), F(5)), ("p", "q", "r", "s")))  # fmt: skip
    assert three.strides() == [12, 4, 1]
    assert BandTable.from_json(made.to_json()) == made
    assert BandTable.from_json(table(level=("county",)).to_json()).level == ("county",)
    assert made == table(level=("county",))
    assert made != table(edges=(F(1), F(5, 2), F(10)))
    assert made != 3
    assert copy.deepcopy(made) is made
    assert hash(made) == hash(table())
    assert made.key == f"band_{made.digest[:16]}"


def test_a_table_of_bands_is_built_from_values_in_any_order() -> None:
    cells = [(["y", None, "x"], np.array([2, 2, 0, 1])), ([4, 3], np.array([1, 0, 0, 0]))]
    made = BandTable.of(
        (ConditionColumn("a", 1), ConditionColumn("n")), (F(1), F(5, 2), F(9)), cells, np.array([2, 0, 1, 2])
    )
    assert made == table()
    assert made.values == (("x", "y", None), (F(3), F(4)))
    assert made.level == ()


@pytest.mark.parametrize(
    "how",
    [
        {"values": (("x", "y", None),)},
        {"bands": np.array([2, 0, 1])},
        {"columns": (), "values": (), "places": np.array([0]), "bands": np.array([0])},
        {"edges": ()},
        {"edges": (F(1), F(1), F(9))},
        {"edges": (F(1), F(9))},
        {"bands": np.array([2, 0, 1, -1])},
        {"places": np.array([0, 1, 1, 5])},
        {"places": np.array([0, 1, 3, 6])},
        {"places": np.array([-1, 1, 3, 5])},
        {"values": (("x", "y"), tuple(map(F, range(2**4))), ), "places": np.array([0, 1, 3, 32])},
    ],
    ids=str,
)  # fmt: skip
def test_tables_of_bands_that_make_no_sense_are_refused(how: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        table(**how)


def test_bands_in_conditions() -> None:
    made = table()
    assert in_band(made, []) == NONE
    assert in_band(made, [0, 1, 2]) == EVERY
    chosen = in_band(made, [2, 0, 0])
    assert complement(chosen) == in_band(made, [1])
    assert both(chosen, in_band(made, [1, 2])) == in_band(made, [2])
    assert both(chosen, in_band(made, [1])) == NONE
    for bad in ([3], [-1]):
        with pytest.raises(ParameterError):
            in_band(made, bad)
    assert holds(chosen, {"a": "x", "n": F(3)})
    assert not holds(chosen, {"a": "y", "n": F(4)})
    assert holds(chosen, {"a": "y", "n": F(4), made.key: 2})  # type: ignore[dict-item]
    assert band_tables([both(A, chosen), either(B, chosen)]) == {made.digest: made}
    assert columns_of(chosen) == set(made.columns)
    assert split_bands(both(A, chosen)) == ((chosen,), A)
    assert split_bands(both(A, B, chosen)) == ((chosen,), both(A, B))
    assert split_bands(chosen) == ((chosen,), EVERY)
    assert split_bands(either(A, chosen)) == ((), either(A, chosen))
    assert isinstance(either(A, chosen), AnyOf)
    assert isinstance(both(A, chosen), AllOf)
    assert condition_from_json(chosen.to_json(), {made.digest: made}) == chosen


# Atoms, exactly.


M, N = Measure("m", F(1, 2)), Measure("n")


@pytest.mark.parametrize(
    "atom, value",
    [
        (of.One(), 1),
        (of.PureOne(F(1, 3), F(1, 7)), F(1, 7)),
        (of.Pieces(((M, F(2)), (N, F(5)))), 9),
        (of.Pieces(()), 1),
        (of.PieceCount(((M, F(2)), (N, F(5)))), 3),
        (of.PieceCount(((N, F(5)),)), 3),
        (of.Square(M), F(81, 4)),
        (of.ClampedSquare(M, F(4)), 16),
        (of.ClampedSquare(M, F(5)), F(81, 4)),
        (of.Additive(N, x / 4, "pure"), F(11, 4)),
        (of.Additive(N, x, "pure"), 11),
        (of.Additive(N, x / 4, "tanh"), None),
        (of.Additive(N, log(x + 1), "pure"), None),
        (of.CertifiedSum(N, x, ((1, F(1, 4)), (5, F(1)), (21, F(5))), F(1)), F(5, 2)),
        (of.CertifiedSum(M, x, ((1, F(1, 4)), (5, F(1)), (21, F(5))), F(1)), F(2)),
        (of.CertifiedSum(N, x, ((1, F(1, 4)), (10, F(1))), F(1)), None),
        (of.SelectionDelta(((N, F(5)),), ((1, F(1, 8)), (3, F(1, 4)))), F(1, 4)),
        (of.SelectionDelta(((N, F(2)),), ((1, F(1, 8)), (3, F(1, 4)))), 1),
        (of.SelectionDelta(((N, F(20)),), ((1, F(1, 8)), (3, F(1, 4)))), F(1, 8)),
    ],
    ids=str,
)
def test_atoms_at_a_record_by_hand(atom: Any, value: Any) -> None:
    assert atom.exactly({"m": F(9, 2), "n": F(11)}) == value


def test_where_atoms_are_constant_and_what_their_pure_loss_is() -> None:
    assert of.ClampedSquare(M, F(4)).constant_from() == 8
    assert of.SelectionDelta(((M, F(4)),), ((1, F(1, 8)), (3, F(1, 4)))).constant_from() == 25
    assert of.Square(M).constant_from() is None
    assert of.PureOne(F(1, 3), F(1, 7)).pure() == (of.One(), F(1, 3))
    assert of.PurePieces(((N, F(5)),), F(1, 3), F(1, 7)).pure() == (of.PieceCount(((N, F(5)),)), F(1, 3))
    assert of.PurePieces((), F(1, 3), F(1, 7)).pure() == (of.One(), F(1, 3))
    assert of.LaplaceSum(M, F(1, 4), F(3)).pure() == (of.Additive(M, x / 3, "pure"), 1)
    assert [of.linear_slope(each) for each in (x, x / 3, x + 1, log(x + 1), x + log(x + 1))] == [
        1,
        F(1, 3),
        1,
        None,
        None,
    ]
    assert of.check_steps([(1, 1e-300), (2, 0.1)], parameter="s") == ((1, F(2) ** -200), (2, F(0.1)))
    assert of.check_steps([(1, 0)], parameter="s") == ((1, F(0)),)
