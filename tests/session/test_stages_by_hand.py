"""Stages by hand: which answers a draw continues, whose losses are added, and what is refused about cells and shares."""

from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import recordwise as rw
from recordwise.errors import ParameterError
from recordwise.ledger.ledger import staying_lines
from recordwise.mechanisms.combined import carried_from, refine
from recordwise.plan import Plan, Schema
from recordwise.plan.cost import CellMechanism, Run, firm_policy, lattice_policy
from recordwise.plan.describe import plan_json
from recordwise.plan.plan import Sensitive, TableTotals
from recordwise.plan.statistics import ExactTable
from recordwise.policy import constant
from recordwise.policy.series import CARRY, REVISE, START, Series, Step
from recordwise.release.draw import PreparedStatistic, PreparedTable, prepare_table
from recordwise.session import carried, stages, tiers
from recordwise.session.stages import Coarsening, Following, Refining, Stage

SCHEMA = Schema.of(unit="id", measures={"emp": 1, "pay": "2.5"}, columns={"county": "text"})
CODES = ["01", "02", "03"]
BY = rw.query().group_by("county", keys={"county": CODES})


def planned(*queries: Any) -> Plan:
    return Plan(schema=SCHEMA, queries=queries)


# Refinements.


def averaged(query: Any) -> Plan:
    """Every mechanism as an average with one of twice the noise."""
    drawn = query.draws()
    made = [
        each.with_mechanisms(lambda own: refine(rw.Gaussian(sigma=10), own.mechanism), drawn)
        for each in query.statistics
    ]
    return planned(replace(query, statistics=tuple(made)))


def earlier(**columns: Any) -> Any:
    return {"county": pa.table({"county": CODES} | columns)}


def test_draws_continue_the_answers_of_their_own_rows() -> None:
    plan = averaged(BY.count(rw.Gaussian(sigma=5), alias="n"))
    (table,) = plan.tables()
    prepared = prepare_table(plan, table, plan.cells(table), confidence=0.95)
    (own,) = prepared.drawn[0].served
    asked: list[Any] = []

    class Watched:
        """Remembers which answers it continues."""

        noise_scale, signed = None, False

        def continuing(self, answers: Any) -> Any:
            asked.append(answers.tolist())
            return own.mechanism

    def continued(*served: Any, data: Any) -> PreparedTable:
        asked.clear()
        drawn = PreparedStatistic(statistic=prepared.drawn[0].statistic, served=served)
        made = PreparedTable(schema=SCHEMA, drawn=(drawn,), statistics=(), median=(), confidence=0.95)
        return stages.continue_answers(made, table, plan, data)

    watched: Any = Watched()
    whole = CellMechanism(watched, own.run)
    two = [CellMechanism(watched, Run(None, np.array(rows))) for rows in ([2, 0], [1])]
    made = continued(whole, data=earlier(n=[7, 8, 9]))
    assert asked == [[7, 8, 9]]
    assert made.drawn[0].served[0].mechanism is own.mechanism
    continued(*two, data=earlier(n=[7, 8, 9]))
    assert asked == [[9, 7], [8]]
    for missing in (None, float("inf")):
        with pytest.raises(ParameterError, match="refine has answers of n that are missing"):
            continued(whole, data=earlier(n=[7.0, 8.0, missing]))
    continued(two[0], *two[1:], data=earlier(n=[7.0, 8.0, 1e300]))


def stated(known: Any, *, fixed: bool) -> Any:
    """The refinement of a count by another one, on top of what is known of earlier stages."""
    first, more = (planned(BY.count(rw.Gaussian(sigma=sigma))) for sigma in (4, 3))
    before = SimpleNamespace(firms=firm_policy(first), lattice=lattice_policy(first))
    published = SimpleNamespace(refinement=None if known is None else SimpleNamespace(total=before, **known))
    release: Any = SimpleNamespace(
        published=published, policies=lambda: before, digest="own", privacy_label="private", head=None
    )
    charge: Any = SimpleNamespace(sequence=7)
    stage = Stage(refining=Refining(release=release, fixed_in_advance=fixed), charge=charge, plan=more, paid=more)
    return stage.refinement(firm_policy(more), lattice_policy(more))


@pytest.mark.parametrize(
    "known, fixed, all_fixed",
    [(None, True, True), (None, False, False), (True, True, True), (False, True, False), (True, False, False)],
)
def test_stages_are_fixed_in_advance_if_all_of_them_were(known: bool | None, fixed: bool, all_fixed: bool) -> None:
    before = None if known is None else {"fixed_in_advance": known, "digests": ("first",)}
    found = stated(before, fixed=fixed)
    assert found.fixed_in_advance is all_fixed
    assert (found.total.lattice is not None) is all_fixed
    assert found.digests == (("own",) if known is None else ("own", "first"))
    assert found.charge == 7
    loss = float(found.total.firms.policy().loss({}))
    assert loss == pytest.approx(1 / 32 + 1 / 18, rel=1e-9)


@pytest.mark.parametrize("wrong", ["cells", "names"])
def test_other_cells_are_refused_by_the_name_of_their_table(wrong: str) -> None:
    plan = planned(BY.count(rw.Gaussian(sigma=1)), rw.query().count(rw.Gaussian(sigma=1)))
    names = [each["name"] for form in plan_json(plan) for each in form["tables"]]

    def known(keys: tuple[str, ...], codes: list[str]) -> Any:
        first = SimpleNamespace(name=names[0], keys=keys, data=pa.table({keys[0]: codes}))
        return SimpleNamespace(tables=[first, SimpleNamespace(name=names[1], keys=(), data=pa.table({"a": [1]}))])

    stages.check_cells(plan, known(("county",), CODES))
    given = known(("county",), ["01", "02", "04"]) if wrong == "cells" else known(("place",), CODES)
    for kind in ("refine", "tier_of"):
        with pytest.raises(ParameterError, match=f"{kind} has other cells in {names[0]}"):
            stages.check_cells(plan, given, kind=kind)


@pytest.mark.parametrize(
    "stated_period, series, told",
    [
        ((None, 0), None, False),
        (("", 0), None, False),
        (("2026", 0), None, True),
        (("2026", 1), Series(name="s", period="2026", revision=1), False),
        (("2026", 0), Series(name="s", period="2026", revision=1), True),
        (("2025", 1), Series(name="s", period="2026", revision=1), True),
        ((None, 0), Series(name="s", period="2026"), True),
    ],
)
def test_a_stage_is_of_the_same_period_and_revision(stated_period: Any, series: Any, told: bool) -> None:
    own = SimpleNamespace(period=stated_period[0], revision=stated_period[1])
    release: Any = SimpleNamespace(published=SimpleNamespace(series=own))
    if not told:
        stages.check_period(release, series)
        return
    with pytest.raises(ParameterError, match="tier_of is of another period or revision"):
        stages.check_period(release, series, kind="tier_of")


def test_a_query_is_matched_with_the_one_that_differs_in_mechanisms_alone() -> None:
    first = (BY.count(rw.Gaussian(sigma=9)), BY.where("emp > 3").sum("emp", rw.Gaussian(sigma=9)))
    forms = [form for each in (*first, BY.sum("emp", rw.Gaussian(sigma=9))) for form in plan_json(planned(each))]
    release: Any = SimpleNamespace(published=SimpleNamespace(plan_forms=forms))
    (same,) = plan_json(planned(BY.sum("emp", rw.Gaussian(sigma=1))))
    assert stages.counterpart(same, release) is forms[2]
    (other,) = plan_json(planned(BY.sum("pay", rw.Gaussian(sigma=9))))
    with pytest.raises(ParameterError, match=r"refine has no query with the same .* as that of county.*first plan"):
        stages.counterpart(other, release)


# Tiers.


def test_a_tier_begins_with_zeros_in_every_cell() -> None:
    plan = planned(
        BY.count(rw.Gaussian(sigma=1)).sum("emp", rw.Gaussian(sigma=1)), rw.query().count(rw.Gaussian(sigma=1))
    )
    charge: Any = SimpleNamespace(sequence=5)
    release: Any = SimpleNamespace(digest="abc")
    stage = tiers.TierStage(coarsening=Coarsening(release=release), charge=charge, plan=plan)
    cells, whole = stage.totals()
    assert [each.tolist() for each in cells.exact.reveal().totals.values()] == [[0, 0, 0], [0, 0, 0]]
    assert [each.tolist() for each in whole.exact.reveal().totals.values()] == [[0]]
    assert (cells.exact.reveal().cells, whole.exact.reveal().cells) == (3, 1)
    assert (stage.tier_of, stage.paid, stage.refines, stage.step) == (5, plan, None, None)
    assert stage.about(None, None) == {"tier_of": {"digest": "abc", "charge": 5}}


# Carried noise.


def carried_stage(*, places_of: list[str], answers: list[float]) -> tuple[Any, Any]:
    """A count of half carried noise on an earlier list of cells, whose totals are 10, 20, ..."""
    noise = carried_from(None, rw.Gaussian(sigma=8), carry=Fraction(1, 2), leave=Fraction(1, 2))
    query = BY.count(rw.Gaussian(sigma=8), alias="n")
    later = carried_from(noise, rw.Gaussian(sigma=8), carry=Fraction(1, 2), leave=Fraction(1, 2))
    made = [each.with_mechanisms(lambda own: later, query.draws()) for each in query.statistics]
    plan = planned(replace(query, statistics=tuple(made)))
    (table,) = plan.tables()
    before = planned(rw.query().group_by("county", keys={"county": places_of}).count(rw.Gaussian(sigma=8), alias="n"))
    (old,) = before.tables()
    cells = before.cells(old)
    totals = {each: 10 * np.arange(1, cells.num_rows + 1) for each in table.totals}
    exact = TableTotals(table=table, cells=cells, exact=Sensitive(ExactTable(cells=len(cells), totals=totals, bins={})))
    release: Any = {"county": pa.table({"county": cells.column("county"), "n": answers})}
    stage = carried.CarriedStage(
        following=Following(kind=CARRY, release=release),
        plan=plan,
        before=before,
        charge=None,
        step=SimpleNamespace(renamed={}),  # type: ignore[arg-type]
        _old={(table.query, table.level): exact},
    )
    return stage, stage.continuing(prepare_table(plan, table, plan.cells(table), confidence=0.95), table)


def rows_of(prepared: Any) -> list[list[int]]:
    return [own.run.rows.tolist() for own in prepared.drawn[0].served]


def test_cells_with_an_earlier_answer_follow_it_and_the_others_are_drawn_afresh() -> None:
    _, found = carried_stage(places_of=["00", "01", "03"], answers=[0.5, 1.0, 3.0])
    assert rows_of(found) == [[0, 2], [1]]
    followed, fresh = (own.mechanism for own in found.drawn[0].served)
    assert (followed.earlier.tolist(), followed.totals.tolist()) == ([1.0, 3.0], [20, 30])
    assert not hasattr(fresh, "earlier")
    assert rows_of(carried_stage(places_of=CODES, answers=[1.0, 2.0, 3.0])[1]) == [[0, 1, 2]]
    assert rows_of(carried_stage(places_of=["77"], answers=[1.0])[1]) == [[0, 1, 2]]


def test_an_answer_that_is_missing_is_refused_where_it_is_followed() -> None:
    carried_stage(places_of=["00", "01", "03"], answers=[float("nan"), 1.0, 3.0])
    with pytest.raises(ParameterError, match="carry has answers of n that are missing"):
        carried_stage(places_of=["00", "01", "03"], answers=[0.5, 1.0, float("nan")])


@pytest.mark.parametrize("kind", [START, CARRY, REVISE])
def test_a_series_without_a_budget_of_those_who_stay_is_told_its_lines(kind: str) -> None:
    """At a carry of three fifths the next period draws 16/25 of the variance of this one, so that staying costs 25/16."""
    noise = planned(BY.count(rw.Gaussian(sigma=5)).sum("emp", rw.Gaussian(sigma=10)))
    step = Step(
        kind=kind, noise=firm_policy(noise), carry=Fraction(0) if kind == START else Fraction(3, 5), follows=None,
        measures=("emp", "pay"), relisted=False, fresh=None, renamed={},
    )  # fmt: skip
    series = Series(name="s", period="2026", carry="0.6")
    carried._check_staying(step, Series(name="s", period="2026", carry="0.6", staying=constant(1)), kind)
    with pytest.raises(ParameterError, match=f"{kind} needs a budget of units that stay") as told:
        carried._check_staying(step, series, kind)
    wanted = replace(step, carry=Fraction(3, 5)).staying() * (Fraction(25, 16) if kind == START else 1)
    assert str(told.value.advice).endswith(staying_lines(wanted))


def test_what_a_following_release_says_names_all_before_it() -> None:
    stage, _ = carried_stage(places_of=CODES, answers=[1.0, 2.0, 3.0])
    release: Any = SimpleNamespace(digest="b", published=SimpleNamespace(follows=("a",)))
    assert replace(stage, following=Following(kind=CARRY, release=release)).about(None, None) == {
        "step": stage.step,
        "follows": ("b", "a"),
    }
    assert replace(stage, following=Following(kind=START)).about(None, None) == {"step": stage.step}
