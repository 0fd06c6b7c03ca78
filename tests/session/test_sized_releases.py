"""Sized noise in a series, in a release that is run twice, and beside published rests (T-SIZE, T-REST)."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recordwise as rw
from build import employers
from recordwise.errors import AlreadyReleasedError, LedgerError
from recordwise.ledger.ledger import Ledger
from recordwise.plan import Schema
from recordwise.plan.cost import cell_mechanisms, plan_policy
from recordwise.plan.plan import Plan
from recordwise.release.verify import verify

COUNTIES = ["001", "003", "005"]
SIZED = rw.Sized(rw.Gaussian(sigma="0.1"), floor=100)
RECORDS = {
    "id": list(range(60)),
    "county": [COUNTIES[number % 3] for number in range(60)],
    "emp": [number % 20 for number in range(60)],
}


def session(ledger: Any, **given: Any) -> rw.Session:
    return employers(RECORDS, "county", ledger=ledger, **given)


def keys(*sizes: float) -> rw.Keys:
    return rw.Keys.of({"county": COUNTIES, "emp": list(sizes)}, size="emp", sized_on="public: the census")


def asked(listed: rw.Keys, mechanism: Any = SIZED) -> rw.Query:
    return rw.query().group_by("county", keys=listed).sum("emp", mechanism, alias="emp")


def test_sizes_are_part_of_what_a_release_is_about(tmp_path: Path) -> None:
    with session(tmp_path / "a.ledger") as opened:
        opened.run(asked(keys(50, 300, 900)), refuse_repeat=True)
        opened.run(asked(keys(50, 300, 200)), refuse_repeat=True)
        with pytest.raises(AlreadyReleasedError):
            opened.run(asked(keys(50, 300, 900)), refuse_repeat=True)


@pytest.mark.costly
def test_a_release_is_recognized_after_its_own_charge_has_raised_its_bands(tmp_path: Path) -> None:
    """What is left of the budget decides how far bands are raised; the second run must not take that for another release."""
    left = rw.policy.gaussian_sum("emp", sigma=35)
    budget = rw.policy.gaussian_sum("emp", sigma=20) + left
    with session(tmp_path / "a.ledger", budget=budget) as opened:
        folder = opened.run(asked(keys(1, 1, 1), rw.Gaussian(sigma=20))).save(tmp_path / "first")
    cells = rw.Keys.of({"county": COUNTIES}, size=rw.FromRelease(release=str(folder), column="emp"))
    with session(tmp_path / "a.ledger", budget=budget) as opened:
        release = opened.run(asked(cells), refuse_repeat=True, keep=True)
        # At the sizes themselves, at most 400, sigma would be 10 or 20, too dear; and 40 is affordable only once.
        assert left.dominates(release.policy)
        with pytest.raises(AlreadyReleasedError):
            opened.run(asked(cells), refuse_repeat=True, keep=True)
        resumed = opened.unfinished.resume(asked(cells))
        assert resumed is not None
        assert resumed.policy == release.policy
        resumed.save(tmp_path / "second")
        opened.unfinished.finish(asked(cells))
    assert verify(tmp_path / "a.ledger", against=[tmp_path / "first", tmp_path / "second"]) == []


@pytest.mark.costly
def test_last_year_s_basic_tables_may_stand_beside_the_sizes_of_this_year(tmp_path: Path) -> None:
    kept = {"ledger": tmp_path / "a.ledger", "budget": rw.policy.gaussian_sum("emp", sigma=5)}
    with session(**kept) as opened:
        folder = opened.run(asked(keys(1, 1, 1), rw.Gaussian(sigma=20))).basic().save(tmp_path / "first")
    published = rw.read(folder)
    for column in ("emp", "emp_fit"):
        cells = rw.Keys.of({"county": COUNTIES}, size=rw.FromRelease(release=str(folder), column=column))
        with session(**kept) as opened:
            release = opened.run(asked(cells))
            # The noise follows the published numbers, below the floor the floor.
            sizes = np.maximum(published.table[column].to_numpy(), 100)
            bands = np.exp2(np.floor(np.log2(sizes / 100)))
            assert np.allclose(release.table["emp_sd"].to_numpy(), 10 * bands)


@pytest.mark.costly
def test_the_periods_of_a_series_keep_the_bands_they_were_charged_by(tmp_path: Path) -> None:
    path, budget = tmp_path / "s.ledger", plan_policy(plan_of(asked(keys(400, 100, 100)))) * 2
    released = []
    for period, listed in (("2025", keys(400, 100, 100)), ("2026", keys(800, 100, 100))):
        series = rw.Series(name="patterns", period=period, every_period=budget)
        with session(path, series=series) as opened:
            released.append(opened.run(asked(listed)))
        released[-1].save(tmp_path / period)
    assert verify(path, against=[tmp_path / "2025", tmp_path / "2026"]) == []
    ledger = Ledger.existing(path)
    assert ledger.spent_by_period() == {"2025": released[0].policy, "2026": released[1].policy}
    ledger.close()
    stated = rw.read(tmp_path / "2026").to_json()["series"]
    assert [each["budget_declared"] for each in stated["periods"]] == ["declared at the start of the series"] * 2
    assert "2025" in (tmp_path / "2026" / "report.html").read_text()


def test_bands_noted_by_a_charge_that_failed_are_noted_again(tmp_path: Path, monkeypatch: Any) -> None:
    from recordwise.ledger.chain import Chain

    append = Chain.append

    def broken(self: Chain, kind: str, body: dict[str, Any]) -> Any:
        event = append(self, kind, body)
        if kind == "charged":
            raise LedgerError(path="x", problem="cannot be written")
        return event

    with session(tmp_path / "a.ledger") as opened:
        with monkeypatch.context() as patched:
            patched.setattr(Chain, "append", broken)
            with pytest.raises(LedgerError):
                opened.run(asked(keys(50, 300, 900)))
        release = opened.run(asked(keys(50, 300, 900)))
    assert verify(tmp_path / "a.ledger") == []
    ledger = Ledger.existing(tmp_path / "a.ledger")
    assert ledger.spent() == release.policy
    ledger.close()


def plan_of(query: rw.Query) -> Plan:
    return Plan(schema=Schema.of(unit="id", measures={"emp": 1}, columns={"county": "text"}), queries=(query,))


@pytest.mark.theorem("T-SIZE")
def test_a_published_rest_has_the_noise_of_the_floor_even_where_its_key_is_listed() -> None:
    """The code "31" is listed among the codes of three digits, with a large size; the rest of "31" has the same key."""
    schema = Schema.of(unit="id", measures={"emp": 1}, columns={"naics": "text"})
    frame = {"naics": ["31", "311", "445"], "emp": [9_000.0, 500.0, 500.0]}
    listed = rw.Keys.of(frame, size="emp", sized_on="public: the census")
    query = rw.query().levels(rw.prefix("naics", [2, 3]), keys=listed, all_other="publish").sum("emp", SIZED)
    plan = Plan(schema=schema, queries=(query,))
    fine = next(table for table in plan.tables() if table.rest is not None)
    cells, (statistic,) = plan.cells(fine), query.draws()
    sigma = np.zeros(cells.num_rows)
    for each in cell_mechanisms(plan, fine, statistic, cells):
        sigma[each.run.rows] = float(each.mechanism.noise_sigma or 0)
    rests = cells.column("all_other").to_pylist()
    assert cells.column("naics3").to_pylist() == ["31", "311", "445", "31", "44"]
    assert rests == [False, False, False, True, True]
    share = float(SIZED.shared(fine.shape.share).mechanism.noise_sigma)
    assert sigma / share == pytest.approx([6400, 400, 400, 100, 100])
    policy = plan_policy(plan)
    unlisted = float(policy.loss({"emp": 50, "naics": "319"}))
    assert unlisted >= 50**2 / (2 * (100 * share) ** 2)
