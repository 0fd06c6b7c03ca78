"""The worked examples of the splitting paper (Seeman et al., VLDB 2024) and the numbers the library promises to reproduce."""

import pytest

from recordwise.policy import among, by, constant, gaussian_sum, split

SPLIT_AT = {"emp": 50, "payroll": 5_000_000}


def test_policy_example_1_constant_and_step_policies() -> None:
    """Example 1: rho-zCDP is the constant policy; a policy may also give each size class its own constant."""
    assert constant("0.5").loss({"emp": 10**9}) == 0.5
    small, large = among("size class", ["small"]), among("size class", ["large"])
    step = constant("0.1").where(small) + constant("0.9").where(large)
    assert step.loss({"size class": "small"}) == 0.1
    assert step.loss({"size class": "large"}) == 0.9
    assert step.minimum() == 0.0


@pytest.mark.theorem("T-SPLIT")
def test_table_2_costs_nine_nine_four_four_one_times_rho() -> None:
    """Table 2: five establishments split at (50, 5,000,000) into 3, 3, 2, 2 and 1 pieces."""
    table = {
        "emp": [120, 101, 75, 51, 50],
        "payroll": [4_000_000, 15_000_000, 5_000_001, 200_000, 5_000_000],
    }
    for rho in (1, "0.25", "1/3"):
        unit = constant(rho).loss({})
        losses = split(rho, SPLIT_AT).loss(table)
        assert losses == pytest.approx([9 * unit, 9 * unit, 4 * unit, 4 * unit, unit], rel=1e-14)


def test_example_4_adds_a_count_and_a_split_sum() -> None:
    """Example 4: a count of loss rho1 and a sum on split rows of loss rho2 cost rho1 + 9 rho2, rho1 + 9 rho2, ..."""
    rho1, rho2 = "0.2", "0.05"
    both = constant(rho1) + split(rho2, SPLIT_AT)
    table = {"emp": [120, 101, 75, 51, 50], "payroll": [0, 15_000_000, 5_000_001, 200_000, 0]}
    expected = [0.2 + 9 * 0.05, 0.2 + 9 * 0.05, 0.2 + 4 * 0.05, 0.2 + 4 * 0.05, 0.2 + 0.05]
    assert both.loss(table) == pytest.approx(expected, rel=1e-14)


def test_example_5_thresholds_by_industry_cost_nine_nine_four_one() -> None:
    """Example 5: the threshold of a record's own industry decides; 3, 3, 2 and 1 pieces."""
    at = by("industry", {"Mining": 500, "Retail": 50, "Farming": 10})
    policy = split("0.1", {"emp": at})
    table = {"industry": ["Mining", "Retail", "Farming", "Mining"], "emp": [1500, 101, 20, 500]}
    assert policy.loss(table) == pytest.approx([0.9, 0.9, 0.4, 0.1], rel=1e-14)


@pytest.mark.theorem("T-GAUSS")
def test_a_gaussian_sum_costs_at_most_what_splitting_says() -> None:
    """sigma = T/sqrt(2 rho): x**2/(2 sigma**2) = rho (x/T)**2 <= rho ceil(x/T)**2."""
    tight, paper = gaussian_sum("emp", sigma=50), split("0.5", {"emp": 50})
    for size in (0, 1, 49, 50, 51, 100, 101, 12345):
        assert tight.loss({"emp": size}) == pytest.approx(0.5 * (size / 50) ** 2, rel=1e-14)
        assert tight.loss({"emp": size}) <= paper.loss({"emp": size})
