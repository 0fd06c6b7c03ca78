"""What a firm loses together, held against the divergence of what is drawn for it; formulas that are too small are rejected."""

import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import recordwise as rw
from divergences import ROUNDING, handed_to_the_sampler, hockey_stick, published, renyi, selected
from recordwise.errors import RecordError, UnknownFormError
from recordwise.mechanisms.key_selection import SelectionLaw
from recordwise.noise.laws import DiscreteGaussian
from recordwise.plan import Case, Group, Keys, Plan, Schema
from recordwise.plan.cost import firm_policy, plan_policy
from recordwise.plan.keys.keys import Selection
from recordwise.plan.query import query
from recordwise.plan.sql.grammar import parse_predicate
from recordwise.policy import FirmPolicy, delta_at, group_loss, group_loss_by_cell
from recordwise.policy.firms import ROOTS, SIGNS, SUMS, CellKey, FirmPart, Joint

SCHEMA = Schema.of(unit="id", measures={"emp": 1}, columns={"county": "text", "naics": "text"}, firm="firm")
NET = rw.policy.Measure("net", signed=True)
COUNTY = CellKey(column=rw.policy.ConditionColumn("county"))
KEYS = Keys.of({"county": ["a", "b", "c"]})
BY_COUNTY = query().group_by("county", keys=KEYS)
LOG = rw.LogTransform(offset=1, sigma=2)
MECHANISMS = {
    "gaussian": rw.Gaussian(sigma=9),
    "unit split": rw.UnitSplit(at=5, rho="0.1"),
    "clamped": rw.Clamped(to=4, rho="0.1"),
    "laplace": rw.GeneralizedGaussian(shape=1, scale=5, lattice=1),
    "square root": rw.GeneralizedGaussian(shape="1/2", scale=3, lattice=1),
    "log": LOG,
    "root": rw.RootTransform(degree=2, offset=1, sigma="1/2"),
}
FIRMS = [
    {"county": ["a", "a"], "emp": [3, 9]},
    {"county": ["a", "b"], "emp": [3, 9]},
    {"county": ["a", "a", "a", "b"], "emp": [1, 7, 12, 40]},
    {"county": ["a"] * 6, "emp": [2, 2, 2, 2, 2, 2]},
]


def firm_of(asked):
    return firm_policy(Plan(schema=SCHEMA, queries=(asked,)))


def by_cell(units, contribution):
    """What the units of a firm contribute to each cell, record by record."""
    found = Counter()
    for county, emp in zip(units["county"], units["emp"]):
        found[county] += contribution(emp)
    return found


def laws(mechanism, totals):
    """Log-probabilities of what is published for a cell at each total, on one window; of Gaussian noise by its own formula, on as
    many points as a sum needs: one over every k-th point of a lattice this fine is the same to the last digit."""
    seen = [handed_to_the_sampler(mechanism, total) for total in totals]
    if not isinstance(seen[0][1], DiscreteGaussian):
        return [published(mechanism, total, 400) for total in totals]
    sigma = float(seen[0][1].sigma)
    reach = int(12 * sigma) + 2
    ends = min(point for point, _ in seen) - reach, max(point for point, _ in seen) + reach
    points = np.arange(*ends, max(1, int(sigma / 100)), dtype=np.float64)
    found = [-((points - point) ** 2) / (2 * sigma**2) for point, _ in seen]
    return [each - np.logaddexp.reduce(each) for each in found]


def drawn_loss(mechanism, changes, rest):
    """The largest D_a/a of a table's cells with and without a firm, from the laws handed to the sampler."""
    pairs = [laws(mechanism, (rest + change, rest)) for change in changes]
    return max(
        sum(renyi(*(pair if forward else pair[::-1]), order) for pair in pairs) / order
        for order in (1.0, 1.5, 5.0)
        for forward in (True, False)
    )


@pytest.mark.theorem("T-CELLS")
@pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=MECHANISMS)
def test_the_loss_of_a_firm_covers_what_is_drawn_for_it_and_is_no_larger_than_roots(mechanism) -> None:
    cut = mechanism.to
    firm = firm_of(BY_COUNTY.sum("emp", mechanism))
    for units in FIRMS:
        changes = by_cell(units, lambda emp: emp if cut is None else min(emp, cut)).values()
        allowed = firm.loss(units).rho
        lost = max(drawn_loss(mechanism, [int(change) for change in changes], rest) for rest in (0, 3))
        assert lost <= allowed * ROUNDING
        # Grids and tables cost a little. A clamped sum may be charged as if every record reached the bound.
        assert lost > (0.2 if cut else 0.7) * allowed
        assert allowed <= group_loss(firm.policy().loss(units).tolist()) * ROUNDING


@pytest.mark.theorem("T-CELLS")
def test_formulas_that_are_too_small_for_a_firm_are_rejected() -> None:
    together, spread = FIRMS[3], {"county": ["a", "b", "c"], "emp": [1000, 1000, 1000]}
    clamped = MECHANISMS["clamped"]
    lost = drawn_loss(clamped, [12], 0)
    # A clamped sum at the sum of what its records have: cut once instead of each by itself.
    wrong = replace(firm_of(BY_COUNTY.sum("emp", clamped)).parts[0], joint=Joint(kind=SUMS, measure="emp"))
    at_the_sum = clamped.loss_at_shift(4)  # type: ignore[attr-defined]
    assert lost > 2 * at_the_sum
    assert firm_of(BY_COUNTY.sum("emp", clamped)).parts[0].joint.kind == ROOTS
    assert FirmPolicy(parts=(wrong,)).loss(together).rho >= at_the_sum
    # All units of a log transform as if they were in one cell.
    log = firm_of(BY_COUNTY.sum("emp", LOG))
    one_cell = FirmPolicy(parts=(replace(log.parts[0], cells=()),)).loss(spread).rho
    assert drawn_loss(LOG, [1000] * 3, 0) > 2 * one_cell
    # Ten rows of one cell at ten times the loss of one.
    count = firm_of(BY_COUNTY.count(rw.Gaussian(sigma=9)))
    assert drawn_loss(rw.Gaussian(sigma=9), [6], 0) > 5 * 6 * Fraction(1, 2 * 81)
    assert count.loss(together).rho == pytest.approx(36 / 162)


@pytest.mark.theorem("T-CELLS")
def test_what_a_firm_changes_in_both_parts_of_a_signed_sum_does_not_cancel() -> None:
    mechanism = rw.LogTransform(offset=10, sigma="1/4", signed=True)
    part = FirmPart(policy=mechanism.policy(NET), cells=(COUNTY,), joint=Joint(kind=SIGNS, measure="net"))
    firm, units = FirmPolicy(parts=(part,)), {"county": ["a", "a", "a"], "net": [30, -30, 5]}
    plain = rw.LogTransform(offset=10, sigma="1/4")
    lost = drawn_loss(plain, [35, 30], 0)
    assert lost <= firm.loss(units).rho * ROUNDING
    assert lost > 5 * mechanism.loss_at_shift(5)
    # Gaussian noise on the net total does see what cancels.
    policy = rw.Gaussian(sigma=9).policy(NET)
    part = FirmPart(policy=policy, cells=(COUNTY,), joint=Joint(kind=SUMS, measure="net"))
    assert FirmPolicy(parts=(part,)).loss(units).rho == pytest.approx(25 / 162)


@pytest.mark.theorem("T-CELLS")
def test_a_firm_is_one_firm_of_a_cell_however_many_units_it_has_there() -> None:
    firm = firm_of(BY_COUNTY.count_distinct("firm", rw.Gaussian(rho="0.02")))
    assert firm.loss({"county": ["a", "a", "a", "b"]}).rho == pytest.approx(0.04)
    assert firm_of(BY_COUNTY.count_distinct("id", rw.Gaussian(rho="0.02"))).loss(
        {"county": ["a", "a", "a", "b"]}
    ).rho == pytest.approx(0.2)


@pytest.mark.theorem("T-CELLS")
@pytest.mark.parametrize("bits", [3, 10])
def test_a_quantile_costs_a_firm_the_squares_of_its_units_in_the_nodes_of_the_tree(bits) -> None:
    grid = rw.mechanisms.Grid.linear(0, 100, bits=bits)
    firm = firm_of(BY_COUNTY.quantile("emp", p="0.5", grid=grid, rho="0.3"))
    rng = np.random.default_rng(4)
    for size in (1, 2, 5, 30):
        units = {"county": rng.choice(["a", "b"], size), "emp": rng.integers(0, 120, size)}
        exact = deepest = 0.0
        for county in np.unique(units["county"]):
            points = grid.bins(units["emp"][units["county"] == county], Fraction(1))
            squares = [
                sum(n**2 for n in Counter((points >> (bits - level)).tolist()).values()) for level in range(1, bits + 1)
            ]
            exact += 0.3 / bits * sum(squares)
            deepest += 0.3 / bits * (sum(squares[:8]) + (bits - min(bits, 8)) * squares[min(bits, 8) - 1])
        found = firm.loss(units).rho
        assert found == pytest.approx(deepest, rel=1e-9)
        assert exact <= found * ROUNDING
        # One square for the whole cell would be the bound by roots, and a sum without squares is too small.
        assert size < 30 or exact > 1.2 * 0.3 * size
    assert firm.loss({"county": ["a", "a"], "emp": [1, 99]}).rho < group_loss([0.3, 0.3])


@pytest.mark.theorem("T-SELECT-GROUP")
@pytest.mark.parametrize(("together", "truth"), [(2, 0.0046), (3, 0.0586)])
def test_units_of_a_firm_alone_in_selected_keys_have_the_direct_pair(together, truth) -> None:
    """The numbers for sigma 1 and threshold 5, in one key or in keys that are not known."""
    law = SelectionLaw(sigma=Fraction(1), threshold=5)
    asked = Selection(rho=Fraction(1, 2), delta=Fraction(law.deltas()[0][1]))
    assert (asked.law.sigma, asked.law.threshold) == (1, 5)
    firm = firm_of(query().group_by("county", keys=Keys(selection=asked)).count(rw.Gaussian(rho="0.02")))
    selection = FirmPolicy(parts=firm.parts[:1])
    units = {"county": ["a"] * together}
    found = selection.loss(units)
    assert found.delta == pytest.approx(truth, abs=5e-5)
    assert found.rho == pytest.approx(together**2 / 2)
    with_firm, without = selected(law, together), selected(law, 0)
    for epsilon in (0.0, 1.0, 5.0, 30.0):
        drawn = hockey_stick(with_firm, without, epsilon)
        assert drawn <= (found.delta + delta_at(found.rho, epsilon)) * ROUNDING
    # The deltas of its units added up are too small.
    assert hockey_stick(with_firm, without, 30.0) > 10 * together * float(law.deltas()[0][1])
    # Not known which keys: the same number, because all in one key is the worst there is.
    assert selection.loss({"id": list(range(together))}).delta == pytest.approx(found.delta, rel=1e-9)
    # Each in a key of its own.
    apart = selection.loss({"county": [str(number) for number in range(together)]})
    assert apart.delta == pytest.approx(1 - (1 - float(law.deltas()[0][1])) ** together, rel=1e-6)


@pytest.mark.theorem("T-SELECT-GROUP")
def test_pieces_spread_over_unknown_keys_have_no_larger_delta_in_any_arrangement() -> None:
    """Every way to put up to seven pieces into keys, against the bound for all of them."""
    from recordwise.policy.firms import _anywhere

    def partitions(total, most):
        if total == 0:
            yield ()
        for first in range(min(total, most), 0, -1):
            for rest in partitions(total - first, first):
                yield (first, *rest)

    for sigma, threshold in ((1, 5), (2, 3), (3, 12)):
        law = SelectionLaw(sigma=Fraction(sigma), threshold=threshold)
        asked = Keys(selection=Selection(rho=Fraction(1, 2 * sigma**2), delta=Fraction(1, 100)))
        part = firm_of(query().group_by("county", keys=asked).count(rw.Gaussian(rho=1))).parts[0]
        for pieces in range(1, 8):
            bound = _anywhere(part, np.full(pieces, float(part.piece_loss())), law.deltas())
            worst = max(law.group_loss(parts).delta for parts in partitions(pieces, pieces))
            assert worst <= bound * ROUNDING


def test_an_average_costs_a_firm_its_sum_and_its_count_and_a_shared_count_once() -> None:
    count = rw.Gaussian(rho="0.02")
    own = firm_of(BY_COUNTY.avg("emp", sum=rw.Gaussian(sigma=9), count=count))
    both = firm_of(BY_COUNTY.count(count).avg("emp", sum=rw.Gaussian(sigma=9), count=count))
    units = {"county": ["a", "a"], "emp": [3, 4]}
    assert own.loss(units).rho == both.loss(units).rho == pytest.approx(49 / 162 + 4 * 0.02)


def test_ten_units_of_a_log_transform_lose_a_tenth_in_cells_of_their_own() -> None:
    """The numbers of the mathematics: 426 in separate cells, 95 in one, 4,260 by roots."""
    firm = firm_of(BY_COUNTY.sum("emp", rw.LogTransform(offset=1, sigma="0.75")))
    emp, ten = [1000] * 10, [str(number) for number in range(10)]
    separate, one, anywhere = (firm.loss(units).rho for units in (
        {"county": ten, "emp": emp}, {"county": ["a"] * 10, "emp": emp}, {"emp": emp}
    ))  # fmt: skip
    assert separate == pytest.approx(10 * 6.908755**2 / (2 * 0.75**2), rel=1e-2)
    assert one == pytest.approx(9.21044**2 / (2 * 0.75**2), rel=1e-2)
    assert anywhere == pytest.approx(10 * separate, rel=1e-9)


def test_the_loss_is_that_of_shifts_by_cell_added_over_levels_filters_and_statistics() -> None:
    """Held against ``group_loss_by_cell`` with sums made record by record."""
    log, split = rw.LogTransform(offset=2, sigma="1/3"), rw.UnitSplit(at=50, rho="0.1")
    levels = query().group_by("county").levels(rw.prefix("naics", (2, 4)), share=["1/4", "3/4"], keys=[
        Keys.of({"county": ["a"], "naics2": ["11"]}), Keys.of({"county": ["a"], "naics4": ["1111"]})
    ])  # fmt: skip
    asked = levels.where("emp > 2").sum("emp", split).count(rw.Gaussian(rho="0.02"))
    plan = Plan(schema=SCHEMA, queries=(asked, BY_COUNTY.sum("emp", log)))
    firm = firm_policy(plan)
    rng = np.random.default_rng(8)
    emp, county = rng.integers(0, 90, 25), rng.choice(["a", "b"], 25)
    naics = rng.choice(["1111", "1112", "2111"], 25)
    units = {"emp": emp, "county": county, "naics": naics}
    expected = 0.0
    for length, share in ((2, 0.25), (4, 0.75)):
        sums: Counter[Any] = Counter()
        counts: Counter[Any] = Counter()
        for size, place, code in zip(emp, county, naics):
            if size > 2:
                sums[place, code[:length]] += int(size)
                counts[place, code[:length]] += 1
        expected += group_loss_by_cell(sums.values(), lambda x, share=share: share * 0.1 * (x / 50) ** 2)  # type: ignore[misc]
        expected += group_loss_by_cell(counts.values(), lambda n, share=share: share * 0.02 * n**2)  # type: ignore[misc]
    in_cells = [int(emp[county == place].sum()) for place in ("a", "b")]
    expected += group_loss_by_cell(in_cells, log.loss_at_shift)
    assert firm.loss(units).rho == pytest.approx(expected, rel=1e-9)
    assert firm.policy() == plan_policy(plan)


def test_a_case_and_thresholds_by_group_follow_the_cell() -> None:
    size = Group("size", Case(((parse_predicate("emp < 10"), "small"),), "large"))
    cases = query().group_by(size, keys=Keys.of({"size": ["small", "large"]})).count(rw.Gaussian(rho="0.02"))
    assert firm_of(cases).loss({"emp": [1, 2, 50]}).rho == pytest.approx(0.02 * 5)
    # The order of texts is known to a policy only roughly: such a group is a column of its own, or not known.
    ordered = Group("half", Case(((parse_predicate("naics < '5'"), "low"),), "high"))
    halves = firm_of(query().group_by(ordered, keys=Keys.of({"half": ["low", "high"]})).sum("emp", LOG))
    assert halves.columns() == ("half",)
    units = {"naics": ["11", "62"], "emp": [900, 900]}
    assert halves.loss(units).rho == pytest.approx(2 * halves.loss(units | {"half": ["low", "high"]}).rho)
    at = rw.by(rw.policy.ConditionColumn("naics", 2), {"11": 10}, default=100)
    asked = (
        query()
        .group_by(rw.prefix("naics", 2), keys=Keys.of({"naics2": ["11", "21"]}))
        .sum("emp", rw.UnitSplit(at=at, rho="0.1"))
    )
    found = firm_of(asked).loss({"naics": ["1100", "1111", "2111"], "emp": [5, 10, 50]})
    assert found.rho == pytest.approx(0.1 * 1.5**2 + 0.1 * 0.25)
    # Where the cell does not tell the group, the policy at a sum has no meaning, and roots remain.
    county = firm_of(BY_COUNTY.sum("emp", rw.UnitSplit(at=at, rho="0.1")))
    assert county.loss({"naics": ["1100", "2111"], "county": ["a", "a"], "emp": [5, 50]}).rho == pytest.approx(
        0.1 * (55 / 100) ** 2
    )


def test_the_saved_form_reads_back_and_others_are_refused() -> None:
    firm = firm_of(
        BY_COUNTY.sum("emp", LOG).quantile("emp", p="0.5", grid=rw.mechanisms.Grid.linear(0, 9, bits=3), rho=1)
    )
    again = FirmPolicy.from_json(firm.to_json())
    assert again == firm
    assert again.columns() == ("county",)
    broken: tuple[Any, ...] = (None, {}, {"parts": [{}], "policies": []}, {**firm.to_json(), "policies": []})
    for wrong in broken:
        with pytest.raises(UnknownFormError):
            FirmPolicy.from_json(wrong)
    form = firm.to_json()
    form["parts"][0]["joint"] = {"kind": "guess", "measure": "emp"}
    with pytest.raises(UnknownFormError):
        FirmPolicy.from_json(form)


def test_units_without_a_number_are_refused_and_none_lose_nothing() -> None:
    firm = firm_of(BY_COUNTY.sum("emp", LOG))
    with pytest.raises(RecordError, match="emp"):
        firm.loss({"county": ["a"]})
    with pytest.raises(RecordError):
        firm.loss({})
    assert firm.loss({"county": [], "emp": []}).rho == 0
    known = firm.loss({"county": ["a", "b"], "emp": [5, 5]}).rho
    unknown = firm.loss({"county": ["a", None], "emp": [5, 5]}).rho
    assert math.isclose(unknown, 2 * known, rel_tol=1e-9)
