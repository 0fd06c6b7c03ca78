"""What records of a firm lose together and what a series costs a unit, cell by cell with pencil and paper."""

import math
from fractions import Fraction
from typing import Any

import pytest

from recordwise.errors import ParameterError, RecordError, UnknownFormError
from recordwise.policy import (
    ConditionColumn,
    Measure,
    Policy,
    additive,
    among,
    compare,
    constant,
    gaussian_sum,
    pure_constant,
    pure_split,
    selection,
    split,
)
from recordwise.policy.conditions import EVERY
from recordwise.policy.firms import CellKey, FirmPart, FirmPolicy, Joint, same_cell, taken_part
from recordwise.policy.render.html import LogAxis
from recordwise.policy.series import (
    Series,
    Step,
    columns_key,
    declared_budget,
    history_losses,
    later_code,
    needed_names,
    period_length,
    record_at,
    renaming,
)

F = Fraction
COUNTY, INDUSTRY = CellKey(column=ConditionColumn("county")), CellKey(column=ConditionColumn("naics", 2))
SUM = gaussian_sum("emp", sigma=10)
UNITS: dict[str, list[Any]] = {
    "county": ["01", "01", "02", "01"],
    "naics": ["111", "112", "111", "221"],
    "emp": [10, 30, 20, 40],
}


def loss(part: FirmPart, units: Any = UNITS) -> float:
    return FirmPolicy(parts=(part,)).loss(units).rho


def test_roots_are_added_within_a_cell_and_losses_over_cells() -> None:
    roots = FirmPart(policy=SUM, cells=(COUNTY, INDUSTRY))
    # Cells: (01, 11) has 10 and 30, (02, 11) has 20, (01, 22) has 40; a value v has the root v/sqrt(200).
    assert loss(roots) == pytest.approx((40**2 + 20**2 + 40**2) / 200)
    assert loss(FirmPart(policy=SUM, cells=(COUNTY,))) == pytest.approx((80**2 + 20**2) / 200)
    assert loss(FirmPart(policy=SUM, cells=(INDUSTRY,))) == pytest.approx((60**2 + 40**2) / 200)
    assert loss(FirmPart(policy=SUM)) == pytest.approx(100**2 / 200)
    unknown = {name: column for name, column in UNITS.items() if name != "county"}
    assert loss(roots, unknown) == pytest.approx(100**2 / 200)
    assert loss(roots, UNITS | {"county": ["01", None, "02", "01"]}) == pytest.approx(100**2 / 200)
    assert loss(FirmPart(policy=SUM, cells=(COUNTY,), condition=among("naics", ["111"]))) == pytest.approx(
        (100 + 400) / 200
    )
    assert loss(FirmPart(policy=SUM, cells=(COUNTY,), condition=among("naics", ["999"]))) == 0.0


def test_cells_by_cases_are_told_apart_by_the_first_that_holds() -> None:
    cases = CellKey(cases=((compare("emp", "<=", 15), 0), (compare("emp", "<=", 25), 1)))
    # 10 has the label 0, 20 the label 1, and 30 and 40 none.
    assert loss(FirmPart(policy=SUM, cells=(cases,))) == pytest.approx((10**2 + 20**2 + 70**2) / 200)
    same = CellKey(cases=((compare("emp", "<=", 15), 1), (compare("emp", "<=", 25), 1)))
    assert loss(FirmPart(policy=SUM, cells=(same,))) == pytest.approx((30**2 + 70**2) / 200)
    assert cases.names() == {"emp"}
    assert INDUSTRY.names() == {"naics"}
    numbers = CellKey(column=ConditionColumn("size"))
    coded = UNITS | {"size": [3, 3, 4, 4]}
    assert loss(FirmPart(policy=SUM, cells=(numbers,)), coded) == pytest.approx((40**2 + 60**2) / 200)


@pytest.mark.parametrize(
    "kind, policy, expected",
    [
        ("sums", split(F(1, 100), {"emp": 25}), (2**2 + 2**2 + 1) / 100),
        ("roots", split(F(1, 100), {"emp": 25}), ((1 + 2) ** 2 + 1 + 2**2) / 100),
        ("firm", constant(F(1, 100)), 3 / 100),
        ("roots", constant(F(1, 100)), (4 + 1 + 1) / 100),
    ],
)
def test_the_second_bound_of_a_cell_counts_where_it_is_smaller(kind: str, policy: Policy, expected: float) -> None:
    joint = Joint(kind=kind, measure="emp" if kind == "sums" else None)
    assert loss(FirmPart(policy=policy, cells=(COUNTY, INDUSTRY), joint=joint)) == pytest.approx(expected)


def test_positive_and_negative_values_are_summed_apart() -> None:
    signed = split(F(1, 100), {Measure("net", signed=True): 25})
    units = {"county": ["01", "01", "01"], "net": [30, -10, -12]}
    part = FirmPart(policy=signed, cells=(COUNTY,), joint=Joint(kind="signs", measure="net"))
    # 30 is two pieces; -10 and -12 together are one.
    assert loss(part, units) == pytest.approx((2**2 + 1) / 100)
    assert loss(FirmPart(policy=signed, cells=(COUNTY,)), units) == pytest.approx((2 + 1 + 1) ** 2 / 100)
    assert loss(part, {"county": ["01"], "net": [30]}) == pytest.approx(4 / 100)


def test_a_tree_counts_records_node_by_node() -> None:
    points = (F(10), F(20), F(30))
    policy = constant(F(2, 100))
    part = FirmPart(policy=policy, joint=Joint(kind="nodes", measure="emp", points=points, levels=2), cells=(COUNTY,))
    # County 01 has 10, 30 and 40: leaves 0, 2 and 3, so that nodes hold 1 and 2 at level 1, and single ones at level 2.
    assert loss(part) == pytest.approx(((1 + 4) + 3) / 100 + 2 / 100)
    without = {name: column for name, column in UNITS.items() if name != "emp"}
    assert loss(part, without) == pytest.approx((9 + 1) * 2 / 100)
    assert part.joint.counted_levels == 2
    deep = Joint(kind="nodes", measure="emp", points=tuple(F(10 * at) for at in range(1, 256)), levels=10)
    assert deep.counted_levels == 8
    # Nodes of ten levels, of which the last two are taken as the eighth: two records share all of them but the last ones.
    units = {"county": ["01", "01"], "emp": [10, 20]}
    found = loss(FirmPart(policy=constant(F(10, 100)), cells=(COUNTY,), joint=deep), units)
    assert found == pytest.approx((7 * 4 + 2 + 2 * 2) / 100)


def test_pure_losses_add_up_and_lose_no_more_than_their_sum_says() -> None:
    from recordwise.exact.functions import x

    laplace = additive("emp", x / 20, bound="pure")
    part = FirmPart(policy=laplace, cells=(COUNTY,), joint=Joint(kind="pure"))
    found = FirmPolicy(parts=(part,)).loss(UNITS)
    assert found.epsilon == pytest.approx(100 / 20)
    roots = [sum(math.sqrt(float(laplace.loss({"emp": v}))) for v in cell) ** 2 for cell in ((10, 30, 40), (20,))]
    tanh = [4 * math.tanh(2), 1 * math.tanh(0.5)]
    assert found.rho == pytest.approx(sum(map(min, roots, tanh)))
    assert FirmPolicy(parts=(part, FirmPart(policy=SUM))).loss(UNITS).epsilon is None


def test_pure_losses_of_records_in_one_cell() -> None:
    count = pure_constant(F(1, 10)).pure()
    for kind, expected in (("roots", 0.4), ("firm", 0.2)):
        part = FirmPart(policy=count, cells=(COUNTY,), joint=Joint(kind=kind))
        assert loss(part) == pytest.approx(expected)
        assert loss(part, {"id": [1, 2, 3]}) == pytest.approx(0.3)
    pieces_ = pure_split({"emp": 25}, epsilon=F(1, 10)).pure()
    summed = FirmPart(policy=pieces_, cells=(COUNTY,), joint=Joint(kind="sums", measure="emp"))
    # County 01 has 80 in all, four pieces, against 1 + 2 + 2 of its records; county 02 has one.
    assert loss(summed) == pytest.approx(0.5)
    assert loss(FirmPart(policy=pieces_, cells=(COUNTY,))) == pytest.approx(0.6)


def test_deltas_of_selected_keys() -> None:
    chosen = selection(10, {"emp": 25}, [(1, F(1, 1024)), (3, F(1, 32))])
    part = FirmPart(policy=chosen, cells=(COUNTY,))
    # County 01 has 1 + 2 + 2 pieces, beyond the table; county 02 has one.
    assert FirmPolicy(parts=(part,)).loss(UNITS).delta == 1.0
    two = {"county": ["01", "01", "02"], "emp": [10, 30, 20]}
    found = FirmPolicy(parts=(part,)).loss(two)
    assert found.delta == pytest.approx(1 - (1 - 1 / 32) * (1 - 1 / 1024))
    assert found.rho == pytest.approx((9 + 1) / 200)
    anywhere = FirmPolicy(parts=(part,)).loss({"emp": [10, 30, 20]})
    # Four pieces: at most 1/1024 each alone, 1/32 for two or three of them together, and 1 for four.
    assert anywhere.delta == 1.0
    assert FirmPolicy(parts=(part,)).loss({"emp": [10, 30]}).delta == pytest.approx(3 * max(1 / 1024, 1 / 32 / 2))
    assert FirmPolicy(parts=(part,)).loss({"emp": [10]}).delta == pytest.approx(1 / 1024)
    assert FirmPolicy(parts=(part, part)).loss({"emp": [10]}).delta == pytest.approx(2 / 1024)
    assert part.piece_loss() == F(1, 200)


def test_a_firm_policy_is_saved_and_says_which_columns_it_needs() -> None:
    part = FirmPart(policy=SUM, cells=(COUNTY, INDUSTRY), condition=among("size", ["a"]))
    other = FirmPart(
        policy=SUM, cells=(CellKey(cases=((among("kind", ["x"]), 3),)),), joint=Joint(kind="sums", measure="emp")
    )
    whole = FirmPolicy(parts=(part, other))
    assert FirmPolicy.from_json(whole.to_json()) == whole
    assert len(whole.to_json()["policies"]) == 1
    assert whole.columns() == ("county", "kind", "naics")
    assert whole.policy() == SUM.where(among("size", ["a"])) + SUM
    grouped = SUM.where(among("naics", ["111"]))
    undetermined = FirmPart(policy=grouped, cells=(COUNTY,), joint=Joint(kind="sums", measure="emp"))
    assert undetermined.joint == Joint()
    known = FirmPart(
        policy=grouped,
        cells=(COUNTY, CellKey(column=ConditionColumn("naics"))),
        joint=Joint(kind="sums", measure="emp"),
    )
    assert known.joint.kind == "sums"


@pytest.mark.parametrize(
    "make",
    [
        lambda: Joint(kind="other"),
        lambda: Joint(kind="sums"),
        lambda: Joint(kind="firm", measure="emp"),
        lambda: Joint(kind="nodes", measure="emp", points=(F(1),), levels=0),
        lambda: Joint(kind="nodes", measure="emp", points=(F(1), F(2)), levels=2),
        lambda: Joint.from_json({"kind": "roots", "more": 1}),
        lambda: Joint.from_json("roots"),
        lambda: CellKey(),
        lambda: CellKey(column=ConditionColumn("a"), cases=((among("b", ["x"]), 1),)),
        lambda: CellKey.from_json({"column": "a", "more": 1}),
        lambda: CellKey.from_json({"cases": [], "more": 1}),
        lambda: CellKey.from_json(3),
        lambda: FirmPolicy.from_json({"parts": []}),
    ],
)
def test_forms_of_firms_that_nobody_wrote_are_refused(make: Any) -> None:
    with pytest.raises(UnknownFormError):
        make()


def test_no_establishments_are_refused() -> None:
    with pytest.raises(RecordError):
        loss(FirmPart(policy=SUM), {})


def test_records_in_one_cell_and_in_a_table() -> None:
    part = FirmPart(policy=SUM, cells=(COUNTY, INDUSTRY), condition=among("size", ["a"]))
    one = {"county": "01", "naics": "111", "size": "a"}
    assert same_cell(part, one, one | {"naics": "112"})
    assert not same_cell(part, one, one | {"naics": "121"})
    assert not same_cell(part, one, one | {"county": "02"})
    assert not same_cell(part, one, {"county": "01"})
    assert not same_cell(part, {"county": "01"}, one)
    assert taken_part(part, one) == one
    assert taken_part(part, one | {"size": "b"}) is None
    assert taken_part(part, None) is None
    assert taken_part(FirmPart(policy=SUM), {}) == {}


# Series.


PERIODS = {
    "2025": "year", "0999": None, "20255": None, "2025H1": "half", "2025H3": None, "2025H0": None, "2025Q4": "quarter",
    "2025Q5": None, "2025Q0": None, "2025-12": "month", "2025-13": None, "2025-00": None, "2025-09": "month",
    "2020W53": "week", "2021W53": None, "2021W00": None, "2024-02-29": "day", "2023-02-29": None, "2025-04-31": None, "x": None,
}  # fmt: skip


@pytest.mark.parametrize("text", PERIODS)
def test_periods_are_written_in_one_way(text: str) -> None:
    assert period_length(text) == PERIODS[text]


@pytest.mark.parametrize(
    "bad",
    [
        {"name": ""},
        {"name": " s"},
        {"name": "a\nb"},
        {"name": 3},
        {"period": "2025/"},
        {"period": 2025},
        {"more": {"2025x": SUM}},
        {"revision": -1},
        {"revision": True},
        {"revision": 1.0},
        {"carry": "-1/2"},
        {"carry": "1001/1000"},
    ],
)
def test_a_series_that_says_nonsense_is_refused(bad: dict[str, Any]) -> None:
    Series(name="s", period="2025")
    with pytest.raises(ParameterError):
        Series(**({"name": "s", "period": "2025"} | bad))


def test_budgets_of_a_series_add_up() -> None:
    made = Series(
        name="s", period="2025", every_period=SUM, more={"2026": constant(1)}, carry="1/3", staying=constant(2)
    )
    assert made.budget() == SUM
    assert made.budget("2026") == SUM + constant(1)
    assert Series(name="s", period="2025", more={"2026": constant(1)}).budget() is None
    assert Series(name="s", period="2026", more={"2026": constant(1)}).budget() == constant(1)
    form = made.budgets_json()
    assert set(form) == {"every", "periods", "carry", "staying"}
    assert form["carry"] == "1/3"
    assert set(Series(name="s", period="2025").budgets_json()) == {"every", "periods"}
    assert declared_budget(form, "2026", {}) == SUM + constant(1)
    assert declared_budget(form, "2027", {}) == SUM
    assert declared_budget({}, "2027", {}) is None


def test_codes_of_a_crosswalk_have_one_counterpart_or_none() -> None:
    pairs = [("a", "A"), ("b", "B"), ("b", "C"), ("c", "D"), ("d", "D"), ("e", "e"), ("f", "g"), ("g", "h")]
    found = renaming(pairs)
    assert found == {"a": "A", "b": None, "c": None, "d": None, "e": "e", "f": "g", "g": "h"} | dict.fromkeys("ABCDh")
    assert [later_code(found, code) for code in ("a", "b", "z")] == ["A", None, "z"]


STEP = Step(kind="carry", noise=FirmPolicy(parts=(FirmPart(policy=SUM, cells=(COUNTY,)),)), carry=F(3, 5))


def test_a_step_costs_what_changed_or_coming_and_leaving() -> None:
    now, before = {"county": "01", "emp": 40}, {"county": "01", "emp": 50}
    assert STEP.loss(now, before) == pytest.approx((40 - 0.6 * 50) ** 2 / 200)
    assert STEP.loss(before, now) == pytest.approx((50 - 0.6 * 40) ** 2 / 200)
    assert STEP.loss(now) == pytest.approx(40**2 / 200)
    assert STEP.loss(None, before) == pytest.approx(0.36 * 50**2 / 200)
    assert STEP.loss(now, before | {"county": "02"}) == pytest.approx((40**2 + 0.36 * 50**2) / 200)
    assert STEP.loss(None) == 0.0
    assert STEP.unchanged(now) == pytest.approx(0.16 * 40**2 / 200)
    assert STEP.staying() == SUM
    count = Step(kind="carry", noise=FirmPolicy(parts=(FirmPart(policy=constant(1), cells=(COUNTY,)),)), carry=F(3, 5))
    assert count.loss(now, before) == pytest.approx(0.16)
    assert count.staying() == constant(F(4, 25))
    default = Step(kind="start", noise=STEP.noise)
    assert default.carry == 0
    assert default.loss(now, before) == pytest.approx(40**2 / 200)


def test_conditions_of_a_step_hold_for_those_who_stay_unless_they_are_about_amounts() -> None:
    for column, kept in (("size", True), ("emp", False)):
        condition = among(column, ["a"]) if column == "size" else compare("emp", ">=", 5)
        part = FirmPart(policy=SUM, cells=(COUNTY,), condition=condition)
        made = Step(kind="carry", noise=FirmPolicy(parts=(part,)), carry=F(1, 2), measures=("emp",))
        assert made.staying() == (SUM.where(condition) if kept else SUM)


def test_cells_that_follow_no_earlier_one_count_as_a_move() -> None:
    now, before = {"county": "01", "emp": 40}, {"county": "01", "emp": 50}
    stays, moves = (40 - 0.6 * 50) ** 2 / 200, (40**2 + 0.36 * 50**2) / 200
    key = columns_key((COUNTY,))

    def cost(**how: Any) -> float:
        return Step(kind="carry", noise=STEP.noise, carry=F(3, 5), **how).loss(now, before)

    assert cost() == pytest.approx(stays)
    assert cost(relisted=True) == pytest.approx(moves)
    assert cost(relisted=True, fresh={key: frozenset()}) == pytest.approx(stays)
    assert cost(relisted=True, fresh={key: frozenset({("01",)})}) == pytest.approx(moves)
    assert cost(relisted=True, fresh={key: frozenset({("02",)})}) == pytest.approx(stays)
    assert cost(relisted=True, fresh={}) == pytest.approx(moves)
    assert cost(fresh={key: frozenset({("01",)})}) == pytest.approx(stays)
    assert cost(renamed={"county": {"01": None}}) == pytest.approx(moves)
    assert cost(renamed={"county": {"02": "03"}}) == pytest.approx(stays)
    moved = Step(kind="carry", noise=STEP.noise, carry=F(3, 5), renamed={"county": {"09": "01"}})
    assert moved.loss(now, before | {"county": "09"}) == pytest.approx(stays)
    prefix = FirmPolicy(parts=(FirmPart(policy=SUM, cells=(INDUSTRY,)),))
    made = Step(kind="carry", noise=prefix, carry=F(3, 5), renamed={"naics2": {"11": "21"}})
    assert made.loss({"naics": "213", "emp": 40}, {"naics": "111", "emp": 50}) == pytest.approx(stays)
    twice = FirmPolicy(parts=(FirmPart(policy=SUM, cells=(INDUSTRY, CellKey(column=ConditionColumn("naics")))),))
    made = Step(kind="carry", noise=twice, carry=F(3, 5), renamed={"naics2": {"11": "11"}})
    assert made.loss({"naics": "111", "emp": 40}, {"naics": "111", "emp": 50}) == pytest.approx(moves)
    number = Step(kind="carry", noise=STEP.noise, carry=F(3, 5), relisted=True, fresh={key: frozenset({("7",)})})
    for code, expected in ((7, moves), (8, stays), (8.0, moves)):
        assert number.loss(now | {"county": code}, before | {"county": code}) == pytest.approx(expected)


def test_steps_are_saved() -> None:
    full = Step(
        kind="revise", noise=STEP.noise, carry=F(1), follows=7, measures=("emp", "pay"), relisted=True,
        fresh={"k": frozenset({("a", "b"), ("c", "d")})}, renamed={"county": {"a": "b", "c": None}},
    )  # fmt: skip
    assert Step.from_json(full.to_json()) == full
    assert Step.from_json(STEP.to_json()) == STEP
    assert set(STEP.to_json()) == {"kind", "carry", "noise", "measures"}
    assert full.to_json()["fresh"] == {"k": [["a", "b"], ["c", "d"]]}
    assert "fresh" not in Step(kind="carry", noise=STEP.noise, fresh={"k": frozenset()}).to_json()


def test_records_of_a_history() -> None:
    policy = gaussian_sum("emp", sigma=10) + gaussian_sum("emp@2024", sigma=5).where(among("county", ["01"]))
    history = {"2025": {"emp": 30, "county": "01"}, "2024": {"emp": 10}}
    assert needed_names(policy) == ["county", "emp", "emp@2024"]
    assert record_at(history, "2025", policy) == {"emp": 30, "county": "01", "emp@2024": 10}
    assert record_at(history, "2023", policy) is None
    assert record_at({"2025": {"emp@2024": 3}, "2024": {"emp": 10}}, "2025", policy) == {"emp@2024": 3}
    found = history_losses({"2025": policy, "2024": SUM, "2023": SUM}, history)
    assert found == pytest.approx({"2025": 900 / 200 + 100 / 50, "2024": 100 / 200, "2023": 0.0})
    assert FirmPart(policy=SUM).condition == EVERY


def test_powers_of_ten_on_an_axis_are_thinned_evenly() -> None:
    axis = LogAxis(low=1e-3, high=1e3, start=0, end=10)
    assert axis.decades() == pytest.approx([1e-3, 1e-2, 0.1, 1, 10, 100, 1000])
    assert LogAxis(low=1e-3, high=1e4, start=0, end=10).decades() == pytest.approx([1e-3, 0.1, 10, 1000])
    assert axis.decades(3) == pytest.approx([1e-3, 1, 1000])
