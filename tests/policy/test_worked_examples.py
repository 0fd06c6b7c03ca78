"""The worked examples of the splitting paper on its own Table 2, as policies; and what a Gaussian sum costs beside them."""

import pytest

from paper_tables import SPLIT_AT, TABLE_2A
from recordwise.policy import by, constant, gaussian_sum, pieces, split

RHOS = (1, "0.25", "1/3")


def of_one_piece(rho: int | str) -> float:
    return constant(rho).loss({})


def test_example_1_a_policy_linear_in_pieces_of_fifty_employees() -> None:
    """Section 3: 3 rho for 150 employees, rho for 50, and still rho for 20; the other two follow from the formula."""
    for rho in RHOS:
        found = pieces(rho, {"emp": 50}).loss(TABLE_2A) / of_one_piece(rho)
        assert found == pytest.approx([3, 1, 2, 1, 1], rel=1e-14)


@pytest.mark.theorem("T-SPLIT")
def test_example_2_costs_nine_nine_four_four_one_times_rho() -> None:
    """Section 5.2: one sum under joint thresholds; 3, 3, 2, 2 and 1 pieces."""
    for rho in RHOS:
        found = split(rho, SPLIT_AT).loss(TABLE_2A) / of_one_piece(rho)
        assert found == pytest.approx([9, 9, 4, 4, 1], rel=1e-14)


@pytest.mark.parametrize("first", ["0.2", "3"])
def test_example_4_a_median_before_splitting_costs_a_constant_and_after_it_nine_times_as_much(first: str) -> None:
    """Section 5.3: rho1 + 9 rho2, 9 rho2, 4 rho2, 4 rho2, rho2; a median on split rows would cost 9 rho1."""
    rho1, rho2 = float(first), 0.05
    squares = [9, 9, 4, 4, 1]
    before, after = constant(first), split(first, SPLIT_AT)
    summed = split("0.05", SPLIT_AT)
    assert (before + summed).loss(TABLE_2A) == pytest.approx([rho1 + rho2 * square for square in squares], rel=1e-14)
    assert after.loss(TABLE_2A) == pytest.approx([rho1 * square for square in squares], rel=1e-14)


def test_example_5_thresholds_by_industry_cost_nine_nine_four_one() -> None:
    """Section 5.4: payroll of mining is split at 10,000,000; keys and two sums, each on the same split rows."""
    at = {"emp": 50, "payroll": by("industry", {"Mining": 10_000_000}, default=5_000_000)}
    policy = split("0.1", at) + split("0.2", at) + split("0.3", at)
    assert policy.loss(TABLE_2A) == pytest.approx([0.6 * square for square in (9, 9, 4, 1, 1)], rel=1e-14)


def test_lemma_10_a_zcdp_query_has_the_constant_policy() -> None:
    assert list(constant("0.5").loss(TABLE_2A)) == [0.5] * 5
    assert constant("0.5").minimum() == 0.5


@pytest.mark.theorem("T-GAUSS")
def test_a_gaussian_sum_costs_at_most_what_splitting_says() -> None:
    """sigma = T/sqrt(2 rho): x**2/(2 sigma**2) = rho (x/T)**2 <= rho ceil(x/T)**2."""
    tight, paper = gaussian_sum("emp", sigma=50), split("0.5", {"emp": 50})
    for size in (0, 1, 49, 50, 51, 100, 101, 12345):
        assert tight.loss({"emp": size}) == pytest.approx(0.5 * (size / 50) ** 2, rel=1e-14)
        assert tight.loss({"emp": size}) <= paper.loss({"emp": size})
