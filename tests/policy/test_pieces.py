"""A policy linear in pieces: its numbers in every form, what it promises, and what it covers as a budget."""

import itertools
import json
from fractions import Fraction
from math import ceil

import duckdb
import mpmath
import pyarrow as pa
import pytest
import quickjs

from recordwise.errors import ParameterError
from recordwise.exact.functions import x
from recordwise.policy import Measure, Policy, additive, by, compare, constant, epsilon, gaussian_sum, pieces, split
from recordwise.policy.constructors import additive_table

EXAMPLE = pieces("0.1", {"emp": 50})
SIZES = [0, 1, 49, 50, 51, 99, 100, 101, 150, 12345, 2**53 + 1, 10**17 + 1]


def expected(size: int) -> Fraction:
    return Fraction(1, 10) * max(1, -(-size // 50))


def test_every_form_of_the_policy_has_the_same_losses() -> None:
    """One record exactly, a table, DuckDB and JavaScript; the first two are never below the exact number."""
    exact = [float(expected(size)) for size in SIZES]
    singles = [EXAMPLE.loss({"emp": size}) for size in SIZES]
    table = EXAMPLE.loss({"emp": SIZES})
    for size, single, many in zip(SIZES, singles, table):
        assert expected(size) <= Fraction(single) <= expected(size) * (1 + Fraction(1, 2**52))
        assert expected(size) <= Fraction(many)
    assert table == pytest.approx(exact, rel=1e-14)
    records = pa.table({"emp": pa.array(SIZES, pa.int64())})
    with duckdb.connect() as connection:
        connection.register("records", records)
        rows = connection.execute(f"SELECT {EXAMPLE.to_sql()} FROM records").fetchall()
    assert [row[0] for row in rows] == pytest.approx(exact, rel=1e-14)
    context = quickjs.Context()
    context.eval(f"var loss = {EXAMPLE.to_javascript()}")
    found = json.loads(context.eval(f"JSON.stringify({SIZES}.map(emp => loss({{emp}}).rho))"))
    assert found == pytest.approx(exact, rel=1e-14)


def test_the_policy_is_printed_saved_and_converted_like_any_other() -> None:
    assert repr(EXAMPLE) == "Policy(0.1 * max(1, ceil(emp / 50)))"
    assert EXAMPLE.to_latex() == r"0.1\,\max\left(1, \lceil |\mathrm{emp}| / 50 \rceil\right)"
    assert "0.1 times the number of pieces of at most 50 of 'emp'" in EXAMPLE.in_words()
    assert "the square" not in EXAMPLE.in_words()
    assert Policy.from_json(json.loads(json.dumps(EXAMPLE.to_json()))) == EXAMPLE
    assert split("0.1", {"emp": 50}) != EXAMPLE
    assert EXAMPLE.minimum() == 0.1
    assert epsilon(EXAMPLE.loss({"emp": 150}), 1e-6) == pytest.approx(epsilon(0.3, 1e-6), rel=1e-12)
    with pytest.raises(ParameterError):
        EXAMPLE.epsilon_pure({"emp": 150})


def test_thresholds_may_be_joint_and_may_differ_by_group() -> None:
    both = pieces(1, {"emp": 50, "pay": 1000})
    assert list(both.loss({"emp": [20, 120, 20], "pay": [10, 10, 5000]})) == pytest.approx([1, 3, 5], rel=1e-14)
    grouped = pieces(1, {"emp": by("industry", {"Mining": 500}, default=100)})
    assert grouped.loss({"emp": 1000, "industry": "Mining"}) == 2
    assert grouped.loss({"emp": 1000, "industry": "Retail"}) == 10
    with pytest.raises(ParameterError, match="at least one measure"):
        pieces(1, {})
    with pytest.raises(ParameterError, match="emp"):
        pieces(1, {"emp": "0.5"})


def laplace_law(scale: mpmath.mpf, reach: int) -> dict[int, mpmath.mpf]:
    return {k: mpmath.exp(-abs(k) / scale) for k in range(-reach, reach + 1)}


def loss_at_least(law: dict[int, mpmath.mpf], shift: int) -> mpmath.mpf:
    """The largest D_a/a over some orders of a law from itself moved by ``shift``; what the window misses only lowers it."""
    total = mpmath.fsum(law.values())
    found = []
    for order in (mpmath.mpf("1.001"), mpmath.mpf(2), mpmath.mpf(20)):
        inside = (law[k] ** order * law[k - shift] ** (1 - order) for k in law if k - shift in law)
        found.append(mpmath.log(mpmath.fsum(inside) / total) / (order - 1) / order)
    return max(found)


@pytest.mark.theorem("T-SPLIT")
def test_laplace_noise_for_rows_of_at_most_a_threshold_loses_at_most_its_pieces() -> None:
    """Noise of scale T/epsilon is epsilon-DP for a split row; a record of x moves the total by x = all of its pieces."""
    at, one = 5, Fraction(3, 2)
    law = laplace_law(mpmath.mpf(at) / mpmath.mpf("1.5"), 150)
    policy = pieces(one, {"emp": at})
    for size in (1, 3, 5, 6, 11, 27):
        truth = loss_at_least(law, size)
        assert truth <= policy.loss({"emp": size})
        assert truth > 0
    # Rounded down instead of up, the number of pieces would promise too little: nothing for 3, one piece for 9.
    for size in (3, 9):
        assert loss_at_least(law, size) > float(one * (size // at))


@pytest.mark.theorem("T-COVER")
def test_finer_pieces_cover_coarser_ones_at_the_proved_ratio_and_not_below() -> None:
    for coarse, fine in itertools.product([10, 30, 70], [3, 7, 10]):
        ratio = ceil(coarse / fine)
        assert pieces(ratio, {"emp": coarse}).dominates(pieces(1, {"emp": fine}))
        assert pieces(1, {"emp": fine}).dominates(pieces(1, {"emp": max(coarse, fine)}))
        verdict = pieces(ratio - Fraction(1, 100), {"emp": coarse}).dominates(pieces(1, {"emp": fine}))
        assert verdict.answer == "no"


@pytest.mark.theorem("T-COVER")
def test_squares_cover_pieces_and_pieces_cover_no_squares() -> None:
    linear, squared = pieces(1, {"emp": 50}), split(1, {"emp": 50})
    assert squared.dominates(linear)
    assert linear.dominates(squared).witness == {"emp": 51}
    assert linear.dominates(constant(1))
    assert linear.dominates(constant(Fraction(101, 100))).answer == "no"
    assert (squared + constant(1)).dominates(linear + constant(1))
    assert linear.dominates(gaussian_sum("emp", sigma=10**6)).answer == "no"
    near = compare("emp", "<=", 100)
    assert pieces(4, {"emp": 50}).dominates(split(2, {"emp": 50}).where(near))
    assert pieces("3.9", {"emp": 50}).dominates(split(2, {"emp": 50}).where(near)).answer == "no"


@pytest.mark.theorem("T-COVER")
def test_a_budget_linear_in_pieces_covers_laplace_noise_of_the_same_slope() -> None:
    """Both grow like x/50, so no envelope decides: the ratio does."""
    budget = pieces(1, {"emp": 50, "pay": 7})
    for bound in ("pure", "tanh"):
        assert budget.dominates(additive("emp", x / 50, bound=bound))
        assert budget.dominates(additive("pay", x / 7, bound=bound))
        assert budget.dominates(additive("emp", x / 40, bound=bound)).answer == "no"
    assert pieces(50, {"emp": 50}).dominates(additive("emp", x, bound="pure"))
    below = additive_table("emp", x / 50, ((50, Fraction(1, 6000)), (100, Fraction(1, 4))))
    assert budget.dominates(below)
    above = additive_table("emp", x / 50, ((50, Fraction(1)), (100, Fraction(10))))
    assert budget.dominates(above).answer == "no"


@pytest.mark.theorem("T-COVER")
def test_joint_pieces_are_at_most_the_sum_of_their_parts_less_one() -> None:
    emp, pay = pieces(1, {"emp": 50}), pieces(1, {Measure("pay"): 1000})
    joint = pieces(1, {"emp": 50, "pay": 1000})
    assert joint.dominates(emp)
    assert joint.dominates(emp * Fraction(1, 2) + pay * Fraction(1, 2))
    assert joint.dominates(emp + pay).answer == "no"
    assert (emp + pay).dominates(joint + constant(1))
    assert (emp + pay).dominates(joint + constant("1.01")).answer == "no"
