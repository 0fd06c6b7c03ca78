"""Calls with odd types and sizes are refused with a reason, or answered; nothing is missing or raised from inside."""

from typing import Any

import pytest

import recordwise as rw
from build import keys, records, session
from recordwise.errors import ParameterError, SolverError
from recordwise.noise import Seeded
from recordwise.planning import Goal, compare, families, recommend, recommend_within

ASKED = rw.query().group_by("county", "naics", keys=keys())


@pytest.fixture(scope="module")
def opened() -> Any:
    with session(records()) as found:
        yield found


def test_the_owner_takes_lists_of_queries_and_refuses_other_things(opened: rw.Session) -> None:
    owner, asked = opened.owner, ASKED.count(rw.Gaussian(sigma=2))
    for look in (owner.realized_loss_summary, owner.firm_loss_summary, owner.preflight, owner.unmatched):
        alone, listed = look(asked, data="synthetic"), look([asked], data="synthetic")
        assert repr(alone) == repr(listed)
        with pytest.raises(ParameterError, match="must be queries"):
            look("asked", data="synthetic")
    summary = owner.realized_loss_summary(asked, data="synthetic")
    with pytest.raises(ParameterError, match="between 0 and 1"):
        summary.quantile(2)


def test_the_owner_checks_arguments_before_a_look_is_entered() -> None:
    with session(records()) as opened:
        owner, asked, before = opened.owner, ASKED.count(rw.Gaussian(sigma=2)), len(opened.history())
        policy = opened.policy_of(asked)
        for wrong in ("x", -1, 1.5, True):
            with pytest.raises(ParameterError, match="at_most"):
                owner.unmatched(asked, at_most=wrong)  # type: ignore[arg-type]
        for edges in ([float("nan")], [3, 1], [1, 1], [], "12", 5, [1, None], [float("inf")]):
            for look, about in (
                (owner.loss_summary, policy),
                (owner.firm_loss_summary, policy),
                (owner.firm_loss_summary, asked),
                (owner.realized_loss_summary, asked),
            ):
                with pytest.raises(ParameterError, match="edges"):
                    look(about, edges=edges)  # type: ignore[operator]
        assert len(opened.history()) == before


def test_planning_says_what_a_budget_and_clamps_are(opened: rw.Session) -> None:
    with pytest.raises(ParameterError, match="must be a policy, or True"):
        recommend_within(opened, ASKED.sum("emp", rw.Gaussian(sigma=9)), budget="1", data="synthetic")  # type: ignore[arg-type]
    for wrong in (5, None, "20"):
        with pytest.raises(ParameterError, match="list of bounds"):
            families(clamps=wrong)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="epsilon"):
        rw.policy.pure_budget(-1)


@pytest.mark.parametrize("name", ["pay", "payroll"])
def test_cells_are_counted_by_a_measure_and_by_the_name_it_is_published_under(name: str, opened: rw.Session) -> None:
    asked = ASKED.sum("pay", rw.Gaussian(sigma=1), alias="payroll")
    found = compare(
        opened, {"g": rw.Gaussian(sigma=9)}, query=asked, measure="emp", at_least={name: 20_000}, data="synthetic"
    )
    assert 0 < found.counted.sum() < len(found.counted)  # type: ignore[union-attr]
    goal = Goal("emp", asked, within="0.5", at_least={name: 20_000})
    assert goal.others_at_least == (("pay", 20_000),)
    assert recommend(opened, goal, candidates={"g": rw.Gaussian(sigma=1)}, data="synthetic").summary()


@pytest.mark.costly
def test_noise_too_small_or_too_large_to_be_fitted_is_refused(opened: rw.Session) -> None:
    tables = rw.query().levels((), "county").levels((), "naics", keys=keys())
    exact = opened.run(tables.count(rw.Gaussian(sigma="0.001")), rng=Seeded(1))
    huge = opened.run(tables.count(rw.Gaussian(sigma=10**9)), rng=Seeded(1))
    for make in (exact.consistent, lambda **how: exact.records(weighted=True, **how)):
        with pytest.raises(ParameterError, match="exact"):
            make(complete=True)
    with pytest.raises(SolverError, match="differ by more"):
        huge.consistent(method="reweighted", complete=True)
    with pytest.raises(ParameterError, match="gamma"):
        huge.consistent(method="reweighted", complete=True, gamma="x")  # type: ignore[arg-type]


def test_a_mechanism_for_each_group_needs_a_column_and_groups() -> None:
    some = {"111": rw.Gaussian(sigma=3)}
    for by, values, length in ((5, some, None), ("naics", None, None), ("naics", some, 0), ("naics", some, "2")):
        with pytest.raises(ParameterError):
            rw.ByGroup(by, values, length=length)  # type: ignore[arg-type]


def test_an_external_mechanism_needs_thresholds_by_measure(opened: rw.Session) -> None:
    with pytest.raises(ParameterError, match="threshold"):
        opened.run_external(lambda rows: 1.0, split=5, rho=1)  # type: ignore[arg-type]
