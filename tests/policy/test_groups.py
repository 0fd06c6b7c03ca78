"""The loss of several records together: three bounds, their order, and where none is valid."""

import math
from random import Random

import pytest

from recordwise.errors import GroupLossError, ParameterError
from recordwise.policy import (
    constant,
    gaussian_sum,
    group_loss,
    group_loss_by_cell,
    group_pair,
    replacement_loss,
    selection,
    split,
)

LOSSES = (6.65, 0.29, 0.25, 0.08)


@pytest.mark.theorem("T-GROUP")
def test_the_three_bounds_of_four_unequal_losses() -> None:
    assert group_loss(LOSSES, bound="simple") == pytest.approx(29.08, rel=1e-12)
    assert group_loss(LOSSES, bound="advanced") == pytest.approx(16.9565, abs=5e-5)
    assert group_loss(LOSSES) == pytest.approx(15.2109, abs=5e-5)


def lemma5(losses: list[float], k: float) -> float:
    ordered = sorted(losses, reverse=True)
    return sum(k**j * loss for j, loss in enumerate(ordered, start=1)) / (k - 1)


def test_lemma_5_takes_its_infimum_over_k() -> None:
    grid = [1 + 10 ** (i / 500 - 3) for i in range(3000)]
    best = min(grid, key=lambda k: lemma5(list(LOSSES), k))
    assert best == pytest.approx(2.4175, abs=0.01)
    assert group_loss(LOSSES, bound="advanced") <= lemma5(list(LOSSES), best)
    assert group_loss(LOSSES, bound="advanced") == pytest.approx(lemma5(list(LOSSES), best), rel=1e-4)


@pytest.mark.theorem("T-GROUP")
@pytest.mark.costly
def test_the_tight_bound_is_never_above_the_other_two_and_never_below_the_sum() -> None:
    rng = Random(1)
    for _ in range(2000):
        losses = [rng.choice([0.0, 10 ** rng.uniform(-12, 12)]) for _ in range(rng.randint(1, 12))]
        tight, simple, advanced = (group_loss(losses, bound=name) for name in ("tight", "simple", "advanced"))
        assert tight <= simple
        assert tight <= advanced
        assert tight >= math.fsum(losses) * (1 - 1e-15)
        assert tight >= math.fsum(math.sqrt(loss) for loss in losses) ** 2 * (1 - 1e-14)


def test_the_order_of_the_records_does_not_matter() -> None:
    rng = Random(2)
    losses = [rng.random() for _ in range(8)]
    shuffled = rng.sample(losses, len(losses))
    for bound in ("tight", "simple", "advanced"):
        assert group_loss(losses, bound=bound) == group_loss(shuffled, bound=bound)


def test_a_thousand_records_an_empty_group_and_an_infinite_loss_have_a_group_loss() -> None:
    assert group_loss([0.01] * 1000) == pytest.approx(10_000.0, rel=1e-12)
    assert math.isfinite(group_loss([0.01] * 1000, bound="advanced"))
    assert group_loss([]) == 0.0
    assert group_loss([1.0, math.inf], bound="advanced") == math.inf


@pytest.mark.theorem("T-GROUP")
def test_gaussian_noise_attains_the_tight_bound() -> None:
    """Two records of one cell: the exact loss (x+y)**2/(2 sigma**2) is (sqrt P(x) + sqrt P(y))**2."""
    policy = gaussian_sum("emp", sigma=7)
    for left, right in ((3, 5), (1, 1000), (0, 9)):
        together = policy.loss({"emp": left + right})
        assert group_loss([policy.loss({"emp": left}), policy.loss({"emp": right})]) == pytest.approx(
            together, rel=1e-12
        )


def test_the_loss_by_cell_puts_the_groups_shift_into_the_mechanism() -> None:
    """Ten establishments of one firm in one cell of a count cost 100 rho, spread over ten cells 10 rho."""
    rho = 0.03
    assert group_loss_by_cell([10], lambda rows: rho * rows**2) == pytest.approx(100 * rho, rel=1e-12)
    assert group_loss_by_cell([1] * 10, lambda rows: rho * rows**2) == pytest.approx(10 * rho, rel=1e-12)
    assert group_loss_by_cell([1] * 10, lambda rows: rho * rows**2) <= group_loss([rho] * 10)
    with pytest.raises(ParameterError, match="loss_at_shift"):
        group_loss_by_cell([1], lambda _: math.nan)


def test_replacing_a_record_costs_up_to_four_times_one_of_them() -> None:
    """The paper's factor 2 for one-sided policies is wrong: two equal losses make 4, and Gaussian noise attains it."""
    policy = gaussian_sum("emp", sigma=1)
    once = policy.loss({"emp": 5})
    assert replacement_loss(policy, {"emp": 5}, {"emp": 5}) == pytest.approx(4 * once, rel=1e-12)
    assert replacement_loss(policy, {"emp": 5}, {"emp": 0}) == pytest.approx(once, rel=1e-12)


def test_a_group_with_delta_has_no_bound_from_single_losses() -> None:
    choice = selection(1, {"emp": 50}, ((1, "0.001"), (2, "0.1")))
    with pytest.raises(GroupLossError, match="delta"):
        group_loss([1.0, 1.0], deltas=[0.0, 1e-9])
    with pytest.raises(GroupLossError):
        group_loss([1.0], deltas=[math.nan])
    with pytest.raises(GroupLossError):
        replacement_loss(choice, {"emp": 1}, {"emp": 2})


@pytest.mark.parametrize("losses", [[-1.0], [math.nan], ["a"], [True], [None]])
def test_what_is_no_loss_is_refused(losses: list[object]) -> None:
    with pytest.raises(ParameterError, match="losses"):
        group_loss(losses)  # type: ignore[arg-type]


@pytest.mark.parametrize("pair", [(-1.0, 0.0), (math.nan, 0.0), (1.0, -0.1), (1.0, 1.1), (1.0, math.nan), (1.0, "a")])
def test_what_is_no_pair_is_refused(pair: tuple[float, float]) -> None:
    with pytest.raises(ParameterError, match="pairs"):
        group_pair([(1.0, 0.1), pair])


def test_an_unknown_bound_is_refused_and_tables_are_no_record() -> None:
    with pytest.raises(ParameterError, match="bound"):
        group_loss([1.0], bound="best")
    with pytest.raises(ParameterError, match="record"):
        replacement_loss(constant(1) + split(1, {"emp": 5}), {"emp": [1, 2]}, {"emp": 1})
