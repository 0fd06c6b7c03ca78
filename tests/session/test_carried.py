"""Noise carried over the periods, and corrected records (T-SERIES): what is lost, what is charged, and what changes are worth.

Losses of whole histories are divergences of what is really handed to the sampler, summed over the independent draws: Rényi
divergences add, and both directions and several orders are tried.
"""

import json
import math
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest

import build
import divergences
import recordwise as rw
from recordwise.errors import AlreadyReleasedError, BudgetError, DrawingError, LedgerError, ParameterError
from recordwise.ledger.entries import unit_losses
from recordwise.mechanisms import Gaussian, combined
from recordwise.mechanisms import gaussian as gaussian_noise
from recordwise.mechanisms.base import noised
from recordwise.mechanisms.combined import carried_from
from recordwise.plan.keys.codes import whole_code
from recordwise.policy import Measure, constant, gaussian_sum
from recordwise.policy.series import Series, later_code, renaming
from recordwise.release.files import load_release
from recordwise.release.verify import verify

CELLS = ["01", "02", "03"]
CARRY = Fraction(4, 5)
BUDGET = constant(50) + gaussian_sum("emp", sigma="0.2")
STAYING = constant(50) + gaussian_sum("emp", sigma="0.2")


def series(period, revision=0, **more):
    known = {"every_period": BUDGET, "carry": CARRY, "staying": STAYING} | more
    return Series(name="years", period=period, revision=revision, **known)


def table(units):
    """Records of a few units with a county and a number of workers, next to one that is always there."""
    rows = [(0, "01", 5), *((number, *unit) for number, unit in enumerate(units, 1) if unit is not None)]
    ids, places, sizes = zip(*rows)
    return pa.table({"id": ids, "firm": ids, "county": places, "emp": sizes, "pay": [0] * len(ids)})


def asked(sigma=2, cells=CELLS):
    found = rw.query().group_by("county", keys=list(cells))
    return found.count(rw.Gaussian(sigma=sigma), alias="n").sum("emp", rw.Gaussian(sigma=2 * sigma), alias="emp")


class Years:
    """Releases of a series, one after another, with the records of each."""

    def __init__(self, folder, **declared):
        self.folder, self.declared, self.made, self.last = folder, declared, 0, None

    def session(self, records, period, revision=0):
        return build.session(records, self.folder / "years.ledger", series=series(period, revision, **self.declared))

    def run(self, records, period, revision=0, query=None, **more):
        follows = (
            {} if self.last is None else {"revise" if revision else "carry": self.last, "old_records": self.records}
        )
        with self.session(records, period, revision) as session:
            done = session.run(asked() if query is None else query, **(follows | more))
            self.events = session.history()
        self.made += 1
        done.save(self.folder / f"release{self.made}")
        self.last, self.records = load_release(self.folder / f"release{self.made}"), records
        return self.last


@contextmanager
def handed():
    """The points and the laws that are drawn from, of tables with three cells."""
    found = []

    def spy(points, law, source):
        if np.size(points) == len(CELLS):
            found.append((np.asarray(points).astype(np.int64), law))
        return noised(points, law, source)

    with patch.object(gaussian_noise, "noised", spy):
        yield found


STEPS = [("2020", 0), ("2021", 0), ("2021", 1), ("2022", 0)]
SIGMAS = [2, 2, 3, 3]
"""A revision has more noise than what it corrects, and what carries it on as much."""


def draws_of(folder, versions):
    """What is drawn for a history of four releases: two years, a correction and a third year; with the ledger's events."""
    folder.mkdir()
    years = Years(folder)
    with handed() as found:
        for (period, revision), unit, sigma in zip(STEPS, versions, SIGMAS):
            years.run(table([unit]), period, revision, query=asked(sigma))
    return found, years.events


@pytest.fixture(scope="module")
def without(tmp_path_factory):
    """The same history without the unit."""
    return draws_of(tmp_path_factory.mktemp("without") / "it", [None] * 4)[0]


HERE, THERE = ("02", 3), ("03", 3)
HISTORIES = {
    "stayer": [HERE, HERE, HERE, HERE],
    "growing": [HERE, ("02", 4), ("02", 4), ("02", 6)],
    "shrinking": [("02", 6), ("02", 1), ("02", 1), ("02", 0)],
    "mover": [HERE, THERE, THERE, HERE],
    "entrant": [None, HERE, HERE, HERE],
    "leaver": [HERE, None, None, None],
    "late": [HERE, None, HERE, HERE],
    "corrected": [HERE, HERE, ("02", 5), ("02", 5)],
    "corrected place": [HERE, HERE, THERE, THERE],
}


@pytest.mark.theorem("T-SERIES")
@pytest.mark.parametrize("name", HISTORIES)
@pytest.mark.costly
def test_a_history_costs_what_its_steps_say_and_never_more_than_was_charged(name, without, tmp_path):
    versions = HISTORIES[name]
    with_it, events = draws_of(tmp_path / "with", versions)
    assert [law for _, law in with_it] == [law for _, law in without]
    truth = np.zeros((len(divergences.ORDERS), 2))
    for (points, law), (others, _) in zip(with_it, without):
        for moved in np.abs(points - others)[points != others]:
            reach = int(moved + 14 * math.ceil(float(law.sigma)))
            window = np.arange(-reach, reach + int(moved) + 1)
            one, other = law.log_pmf(window - moved), law.log_pmf(window)
            for place, order in enumerate(divergences.ORDERS):
                truth[place] += [divergences.renyi(*pair, order) / order for pair in ((one, other), (other, one))]
    history = {
        f"{period}/{revision}" if revision else period: {"emp": unit[1], "county": unit[0]}
        for (period, revision), unit in zip(STEPS, versions)
        if unit is not None
    }
    stated = sum(unit_losses(events, history).values())
    assert truth.max() <= stated * divergences.ROUNDING
    assert truth.max() >= 0.99 * stated
    # Every version of the record has the budget of its period.
    periods = {}
    for event in events:
        if event.kind == "charged":
            periods[event.body["period"]] = rw.policy.Policy.from_json(event.body["spent"])
    records = {(period, repr(unit)): (period, unit) for (period, _), unit in zip(STEPS, versions) if unit is not None}
    paid = sum(float(periods[period].loss({"emp": unit[1]})) for period, unit in records.values())
    assert stated <= paid * divergences.ROUNDING


def test_noise_lives_on_the_lattice_of_the_differences(tmp_path):
    # On whole numbers, y - 0.8 y_before would tell the last total modulo 5.
    first = carried_from(None, rw.Gaussian(sigma=2), carry=Fraction(0), leave=CARRY)
    later = carried_from(first, rw.Gaussian(sigma=2), carry=CARRY, leave=CARRY)
    seen = [
        divergences.handed_to_the_sampler(later.following(np.array([9.0]), np.array([before])), 10)
        for before in range(5)
    ]
    assert [point for point, _ in seen] == [50 - 4 * before for before in range(5)]
    assert {law.sigma for _, law in seen} == {5 * later.more.noise_sigma}
    fractions = {
        float(later.following(np.array([0.0]), np.array([7])).release([10], rng=rw.noise.Seeded(s)).values()[0]) * 5 % 5
        for s in range(60)
    }
    assert len({round(each) % 5 for each in fractions}) == 5


def test_every_unit_pays_for_coming_and_for_leaving_and_movers_pay_4_56_fresh_periods():
    first = carried_from(None, rw.Gaussian(sigma=2), carry=Fraction(0), leave=CARRY)
    later = carried_from(first, rw.Gaussian(sigma=2), carry=CARRY, leave=CARRY)
    fresh = float(rw.Gaussian(sigma=2).policy(Measure("emp")).loss({"emp": 1}))
    assert float(later.policy(Measure("emp")).loss({"emp": 1})) / fresh == pytest.approx(4.5556, rel=1e-4)
    assert float(first.policy(Measure("emp")).loss({"emp": 1})) / fresh == pytest.approx(1 + 0.64 / 0.36, rel=1e-5)
    assert float(later.noise_sigma) == pytest.approx(2, rel=1e-6)
    assert later.keeps_variance


@pytest.mark.costly
def test_levels_keep_their_variance_and_changes_have_less(tmp_path):
    years = Years(tmp_path)
    units = [(cell, size) for cell in CELLS for size in (3, 8, 40)]
    first = years.run(table(units), "2020")
    second = years.run(table([(cell, size + 1) for cell, size in units]), "2021", query=asked(cells=[*CELLS, "04"]))
    third = years.run(table(units), "2022", query=asked(cells=[*CELLS, "04"]))
    for each in (first, second, third):
        assert each.table.column("emp_sd").to_numpy() == pytest.approx(4, rel=1e-5)
    found = second.change(first).tables[second.tables[0].name]
    assert found.column("listed").to_pylist() == ["both", "both", "both", "only now"]
    sds = found.column("emp_change_sd").to_numpy(zero_copy_only=False)[:3]
    assert sds == pytest.approx(math.sqrt(2 * 16 * (1 - 0.8)), rel=1e-4)
    width = found.column("emp_change_high")[0].as_py() - found.column("emp_change_low")[0].as_py()
    assert width == pytest.approx(2 * 1.96 * sds[0], rel=0.05)
    with pytest.raises(ParameterError, match="noise is not independent"):
        third.change(first)
    with pytest.raises(ParameterError, match="no joint law"):
        second.change(first, crosswalk={"county": [("01", "02"), ("02", "02")]})
    assert verify(tmp_path / "years.ledger", against=[tmp_path / f"release{number}" for number in (1, 2, 3)]) == []
    form = json.loads((tmp_path / "release2" / "release.json").read_text())
    form["step"]["carry"] = "1/2"
    (tmp_path / "release2" / "release.json").write_text(json.dumps(form))
    assert any("another step" in each for each in verify(tmp_path / "years.ledger", against=[tmp_path / "release2"]))


@pytest.mark.costly
def test_the_reader_knows_what_errors_have_in_common(tmp_path):
    years = Years(tmp_path)
    units = [(cell, 500) for cell in CELLS]
    years.run(table(units), "2020")
    years.run(table([(cell, 510) for cell in CELLS]), "2021")
    before, now = (rw.read(tmp_path / name).total("emp") for name in ("release1", "release2"))
    growth = now.growth(before)
    fresh = math.hypot(float(now.sds[0]), float(before.sds[0])) / float(before.values[0])
    assert float(growth.sds[0]) == pytest.approx(fresh * math.sqrt(1 - 0.8), rel=0.05)
    with pytest.raises(ParameterError, match="shares its noise"):
        now.per(before)


CODES = [f"{number:04}" for number in range(2500)]
RENAMED = [code if number % 2 else f"{code}x" for number, code in enumerate(CODES)]
"""Every other code has another name in the second year; their order is the same."""


@pytest.mark.costly
def test_intervals_of_levels_and_of_changes_cover(tmp_path):
    # Of 2,500 independent cells at 0.95, fewer than 2,325 are covered with probability below 1e-5; a change whose interval
    # ignored what years have in common would cover all but some 0.2 %, one with the sd of fresh noise alone far fewer.
    chance = np.random.default_rng(5)
    sizes = [chance.integers(0, 30, len(CODES))]
    sizes += [np.maximum(sizes[0] + chance.integers(-2, 3, len(CODES)), 0)]
    years = Years(tmp_path)
    releases = []
    for period, codes, own in zip(("2020", "2021"), (CODES, RENAMED), sizes):
        query = rw.query().group_by("county", keys=codes).sum("emp", rw.Gaussian(sigma="1.4"), alias="emp")
        units = pa.table({"id": range(2500), "firm": range(2500), "county": codes, "emp": own, "pay": [0] * 2500})
        more = {"crosswalk": {"county": list(zip(CODES, RENAMED))}} if releases else {}
        releases.append(years.run(units, period, query=query, **more))
    low, high = (releases[1].table.column(f"emp_{end}").to_numpy() for end in ("low", "high"))
    level = np.mean((low <= sizes[1]) & (sizes[1] <= high))
    assert 2325 / 2500 <= level <= 0.99
    change = releases[1].change(releases[0]).tables[releases[1].tables[0].name]
    low, high = (change.column(f"emp_change_{end}").to_numpy() for end in ("low", "high"))
    moved = sizes[1] - sizes[0]
    covered = np.mean((low <= moved) & (moved <= high))
    assert 2325 / 2500 <= covered <= 0.985
    error = change.column("emp_change").to_numpy() - moved
    assert np.std(error) == pytest.approx(1.4 * math.sqrt(0.4), rel=0.07)


@pytest.mark.theorem("T-REVISE")
@pytest.mark.costly
def test_a_revision_draws_in_every_cell_and_asks_more_noise_of_the_plan(tmp_path):
    years = Years(tmp_path, carry=None)
    years.run(table([HERE]), "2020", carry=None, old_records=None)
    with pytest.raises(ParameterError, match="more noise than the release that is revised"):
        years.run(table([HERE]), "2020", 1)
    first = years.last
    with handed() as found:
        second = years.run(table([HERE]), "2020", 1, query=asked(3))
    assert len(found) == 2
    assert all(law.sigma >= math.sqrt(5) for _, law in found)
    assert all(not points.any() for points, _ in found)
    assert second.table.column("n_sd").to_numpy() == pytest.approx(3, rel=1e-5)
    change = second.change(first).tables[second.tables[0].name]
    assert change.column("n_change_sd").to_numpy() == pytest.approx(math.sqrt(5), rel=1e-3)
    step = second.published.step
    same = {"emp": 3, "county": "02"}
    assert step.loss(same, same) == 0
    assert step.loss({"emp": 7, "county": "02"}, same) == pytest.approx(16 / (2 * 20), rel=1e-4)


@pytest.mark.theorem("T-SERIES")
@pytest.mark.parametrize("later", ["01", "02"], ids=["same codes", "another code renamed"])
def test_a_cell_without_a_code_follows_itself(later, tmp_path):
    """NULL is not equal to NULL in a join: taken for a new cell, it would show all of its units once more."""
    county = rw.Column(name="county", type="text", null="category")
    terms = {"unit": "id", "measures": {"emp": 1}, "columns": {"county": county}, "dataset": "t"}
    renamed = {} if later == "01" else {"crosswalk": {"county": [("01", "02")]}}
    records = [{"id": [0, 1], "county": [code, None], "emp": [5, 100]} for code in ("01", later, later)]
    found, made = [], []

    def spy(points, law, source):
        if np.size(points) == 2:
            found.append((sorted(np.asarray(points).tolist()), float(law.sigma)))
        return noised(points, law, source)

    for at, (period, revision, sigma) in enumerate([("2020", 0, 100), ("2021", 0, 100), ("2021", 1, 120)]):
        follows = {} if not at else {"revise" if revision else "carry": made[-1], "old_records": records[at - 1]}
        how = {"ledger": tmp_path / "null.ledger", "series": series(period, revision), "tuned_on": "synthetic"}
        cells = rw.query().group_by("county", keys=["01" if not at else later, None])
        with rw.Session(records[at], **terms, **how) as session, patch.object(gaussian_noise, "noised", spy):
            asked_of = cells.sum("emp", rw.Gaussian(sigma=sigma), alias="emp")
            session.run(asked_of, **follows, **(renamed if at == 1 else {})).save(tmp_path / f"release{at}")
        made.append(load_release(tmp_path / f"release{at}"))
    # In fifths: a fifth of what stays is shown. A correction of nothing shows nothing.
    points, sigmas = zip(*found)
    assert points == ([5, 100], [5, 100], [0, 0])
    assert sigmas == pytest.approx([100, 300, math.sqrt(120**2 - 100**2)], rel=1e-4)
    changes = made[1].change(made[0]).tables[made[1].tables[0].name]
    assert changes.column("county").to_pylist() == [later, None]
    assert set(changes.column("listed").to_pylist()) == {"both"}
    assert changes.column("emp_change_sd").to_pylist() == pytest.approx([math.sqrt(2 * 100**2 * 0.2)] * 2, rel=1e-4)


def test_what_was_not_read_last_time_is_refused_and_nothing_is_written(tmp_path):
    years = Years(tmp_path)
    years.run(table([HERE]), "2020")
    years.records = table([("02", 4)])
    length = len(years.events)
    with pytest.raises(ParameterError, match="other records"):
        years.run(table([HERE]), "2021")
    with years.session(table([HERE]), "2021") as session:
        # Opening states the terms of the new period; nothing else is there.
        assert [each.kind for each in session.history()[length:]] in ([], ["opened"])
        with pytest.raises(ParameterError, match="needs the records"):
            session.run(asked(), carry=years.last)


def test_what_was_drawn_is_what_the_ledger_says_and_not_a_folder(tmp_path):
    """With less noise than was drawn, leaving would seem to be paid for as much as nobody paid."""
    years = Years(tmp_path)
    years.run(table([HERE]), "2020")
    file = tmp_path / "release1" / "release.json"
    form = json.loads(file.read_text())
    for each in form["plan"][0]["statistics"]:
        each["mechanism"]["more"]["sigma"] = "1/10"
    file.write_text(json.dumps(form))
    years.last = load_release(tmp_path / "release1")
    with pytest.raises(ParameterError, match="other mechanisms than the ledger"):
        years.run(table([HERE]), "2021", query=asked(Fraction(1, 5)))


@pytest.mark.parametrize("wrong", [{"key": "zz"}, {"totals": [1]}, {"key": 3}])
def test_a_file_of_digests_that_was_changed_is_refused(wrong, tmp_path):
    years = Years(tmp_path)
    years.run(table([HERE]), "2020")
    file = tmp_path / "years.ledger.totals"
    file.write_text(json.dumps(json.loads(file.read_text()) | wrong) + "\n")
    with pytest.raises(ParameterError, match="has no digest of its totals"):
        years.run(table([HERE]), "2021")


@pytest.mark.costly
def test_leaving_is_paid_once_so_that_noise_is_carried_once(tmp_path):
    years = Years(tmp_path)
    first = years.run(table([HERE]), "2020")
    old = years.records
    years.run(table([HERE]), "2021")
    for period in ("2021", "2022"):
        with years.session(table([HERE]), period) as session, pytest.raises(LedgerError, match="paid once"):
            session.run(asked(), carry=first, old_records=old)


def test_a_crash_after_the_charge_is_resumed_and_a_retry_refused(tmp_path):
    years = Years(tmp_path)
    first = years.run(table([HERE]), "2020")
    with years.session(table([HERE]), "2021") as session:
        drawn = session.run(asked(), carry=first, old_records=years.records, keep=True, refuse_repeat=True)
        assert session.unfinished.waiting(asked(), carry=first)
        assert session.unfinished.resume(asked(), carry=first).digest == drawn.digest
        with pytest.raises(AlreadyReleasedError):
            session.run(asked(), carry=first, old_records=years.records, refuse_repeat=True)
        session.unfinished.finish(asked(), carry=first)
        assert not session.unfinished.waiting(asked(), carry=first)


def test_a_failed_draw_leaves_the_noise_to_be_carried(tmp_path):
    years = Years(tmp_path)
    first = years.run(table([HERE]), "2020")
    with years.session(table([HERE]), "2021") as session:
        with patch("recordwise.session.publisher.publish_table", side_effect=RuntimeError), pytest.raises(DrawingError):
            session.run(asked(), carry=first, old_records=years.records)
        assert [each.kind for each in session.history()][-1] == "failed"
        session.run(asked(), carry=first, old_records=years.records)


SELECTED = rw.Keys.select(rho=1, delta="0.01", pieces={"emp": 20})
UNPROVED = {
    "unit splitting": (lambda q: q.sum("emp", rw.UnitSplit(at=5, rho=1)), "UnitSplit"),
    "sized": (lambda q: q.sum("emp", rw.LogTransform(offset=10, sigma="0.2")), "LogTransform"),
    "firms": (lambda q: q.count_distinct("firm", rw.Gaussian(sigma=2)), "counts of units and sums"),
}


@pytest.mark.parametrize("name", UNPROVED)
def test_what_has_no_proof_is_refused_by_name(name, tmp_path):
    add, words = UNPROVED[name]
    with Years(tmp_path).session(table([HERE]), "2020") as session, pytest.raises(ParameterError, match=words):
        session.run(add(rw.query().group_by("county", keys=CELLS)))


def test_selected_keys_refinements_and_less_noise_are_refused(tmp_path):
    years = Years(tmp_path)
    selected = rw.query().group_by("county", keys=SELECTED).sum("emp", rw.Gaussian(sigma=4))
    with years.session(table([HERE]), "2020") as session, pytest.raises(ParameterError, match="keys are selected"):
        session.run(selected)
    first = years.run(table([HERE]), "2020")
    with years.session(table([HERE]), "2020") as session, pytest.raises(ParameterError, match="no proof"):
        session.run(asked(1), refine=first)
    with pytest.raises(ParameterError, match="sigma of at least 2"):
        years.run(table([HERE]), "2021", query=asked(1))


@pytest.mark.costly
def test_budgets_are_declared_before_the_first_charge(tmp_path):
    bare = Years(tmp_path / "a", staying=None)
    bare.folder.mkdir()
    with bare.session(table([HERE]), "2020") as session, pytest.raises(ParameterError) as refused:
        session.run(asked())
    # A count: (1 - 0.8)^2/(2 (1 - 0.64) 4); a sum of 100: 100^2/(2 (1 - 0.64) 16).
    assert (
        'staying = [{ rho = 0.0138889 }, { measure = "emp", mechanism = { kind = "Gaussian", rho = 868.056, at = 100 } }]'
        in str(refused.value)
    )
    plain = Years(tmp_path / "b", staying=None, carry=None)
    plain.folder.mkdir()
    plain.run(table([HERE]), "2020")
    late = Years(plain.folder)
    with pytest.raises(LedgerError, match="another carry"):
        late.session(table([HERE]), "2021")
    small = Years(tmp_path / "c", staying=constant("0.001") + gaussian_sum("emp", sigma=100))
    small.folder.mkdir()
    small.run(table([HERE]), "2020")
    with pytest.raises(ParameterError, match="units that stay"):
        small.run(table([HERE]), "2021")
    poor = Years(tmp_path / "d", every_period=constant("0.2") + gaussian_sum("emp", sigma=4))
    poor.folder.mkdir()
    with pytest.raises(BudgetError):
        poor.run(table([HERE]), "2020")


def test_the_part_that_is_carried_is_checked():
    for wrong in (0, 1, "1.5", "0.12345"):
        with pytest.raises(ParameterError, match="carry"):
            series("2020", carry=wrong)
    assert replace(series("2020"), carry="0.5").carry == Fraction(1, 2)


@pytest.mark.costly
def test_leaving_is_paid_for_at_every_level_and_share(tmp_path):
    years = Years(tmp_path)
    query = rw.query().levels(rw.prefix("county", [1, 2]), share=["1/3", "2/3"], keys=rw.Keys.of({"county": CELLS}))
    query = query.sum("emp", rw.Gaussian(sigma="3.7"), alias="emp").count(rw.Gaussian(rho="0.07"), alias="n")
    first = years.run(table([HERE]), "2020", query=query)
    second = years.run(table([THERE]), "2021", query=query)
    record = {"emp": 3, "county": "02"}
    steps = [each.published.step for each in (first, second)]
    prepaid = float(first.policy.loss(record)) - steps[0].loss(record)
    left = float(CARRY**2) * float(steps[1].noise.policy().loss(record))
    assert 0.9999 * prepaid <= left <= prepaid
    # One level joins both places: there the unit stays.
    moved, came = steps[1].loss({"emp": 3, "county": "03"}, record), float(steps[1].noise.policy().loss(record))
    assert moved < came + left
    apart = steps[1].loss({"emp": 3, "county": "13"}, record)
    assert apart == pytest.approx(came + left, rel=1e-9)


# Codes that changed: cells that were only renamed carry their noise on, others draw afresh.


CROSSWALK = {"county": [("02", "12")]}
NEW_CELLS = ["01", "12", "03"]


@pytest.mark.theorem("T-SERIES")
@pytest.mark.parametrize("later", [("12", 4), ("03", 3)], ids=["renamed", "mover"])
@pytest.mark.costly
def test_a_unit_of_a_renamed_cell_stays(later, tmp_path):
    found = {}
    for name, units in (("with", [HERE, later]), ("without", [None, None])):
        (tmp_path / name).mkdir()
        years = Years(tmp_path / name)
        years.run(table([units[0]]), "2020")
        with handed() as found[name]:
            done = years.run(table([units[1]]), "2021", query=asked(cells=NEW_CELLS), crosswalk=CROSSWALK)
    truth = 0.0
    for (points, law), (others, same) in zip(found["with"], found["without"]):
        assert law == same
        truth += float(np.sum((points - others) ** 2)) / (2 * float(law.sigma) ** 2)
    step = done.published.step
    assert (step.relisted, dict(step.renamed)) == (False, {"county": {"02": "12", "12": None}})
    now = None if later is None else {"county": later[0], "emp": later[1]}
    stated = step.loss(now, {"county": "02", "emp": 3})
    assert 0.99 * stated <= truth <= stated
    assert json.loads((tmp_path / "with" / "release2" / "release.json").read_text())["step"] == step.to_json()
    assert verify(tmp_path / "with" / "years.ledger", against=[tmp_path / "with" / "release2"]) == []


@pytest.mark.costly
def test_split_and_merged_codes_draw_afresh(tmp_path):
    years = Years(tmp_path)
    first = years.run(table([HERE]), "2020")
    pairs = {"county": [("02", "02"), ("02", "04"), ("01", "01"), ("03", "01")]}
    with handed() as found:
        second = years.run(table([HERE]), "2021", query=asked(cells=["01", "02", "04"]), crosswalk=pairs)
    # All cells are drawn at once, around their totals: no earlier answer is in them.
    assert [points.tolist() for points, _ in found] == [[1, 1, 0], [5, 3, 0]]
    step = second.published.step
    assert step.relisted
    came = float(step.noise.policy().loss({"emp": 3, "county": "02"}))
    same = {"county": "02", "emp": 3}
    assert step.loss(same, same) == pytest.approx(came * (1 + 0.64), rel=1e-6)
    change = second.change(first).tables[second.tables[0].name]
    assert set(change.column("listed").to_pylist()) == {"only now", "only before"}
    summed = second.change(first, crosswalk=pairs).tables[second.tables[0].name]
    assert summed.column("n_change_sd").to_pylist() == pytest.approx([math.sqrt(3) * 2] * 2, rel=1e-3)


def test_only_units_of_new_cells_count_as_ones_that_come(tmp_path):
    years = Years(tmp_path)
    years.run(table([HERE]), "2020")
    step = years.run(table([HERE]), "2021", query=asked(cells=[*CELLS, "04"])).published.step
    assert step.relisted
    assert [sorted(cells) for cells in step.fresh.values()] == [[("04",)]]
    record, new = {"emp": 3, "county": "02"}, {"emp": 3, "county": "04"}
    came = float(step.noise.policy().loss(record))
    assert step.loss(record, record) == pytest.approx(0.04 * came, rel=1e-6)
    assert step.loss(new, new) == pytest.approx(1.64 * came, rel=1e-6)
    assert type(step).from_json(step.to_json()) == step
    # Releases made before this was said, and those with too many new cells.
    assert replace(step, fresh=None).loss(record, record) == pytest.approx(1.64 * came, rel=1e-6)


def held(*sigmas):
    """How far a sum of discrete Gaussian noises is off at most in 95 of 100 cases, by adding up their probabilities."""
    steps = np.arange(-300, 301)
    weights = [np.exp(-(steps**2) / (2 * sigma**2)) for sigma in sigmas]
    law = np.convolve(*(each / each.sum() for each in weights))
    middle = len(law) // 2
    return next(reach for reach in range(middle) if law[middle - reach : middle + reach + 1].sum() >= 0.95)


@pytest.mark.costly
def test_growth_of_renamed_codes_has_the_joint_law(tmp_path):
    years = Years(tmp_path)
    years.run(table([("02", 300), ("03", 400)]), "2020")
    years.run(table([("12", 310), ("03", 420)]), "2021", query=asked(cells=NEW_CELLS), crosswalk=CROSSWALK)
    before, now = (rw.read(tmp_path / name) for name in ("release1", "release2"))
    earlier = before.total("emp", by="county")
    first = dict(zip(earlier.labels, earlier.values))
    for given in (None, CROSSWALK):
        growth = now.growth("emp", before, by="county", crosswalk=given)
        # The smallest place may be left out, as it is not clearly different from 0.
        assert growth.labels[-2:] == ("03", "12")
        # The error of y' - r y over y, where y and y' have the variance 16 and the correlation .8.
        r, y = growth.values[-2:] + 1, np.array([first["03"], first["02"]])
        assert growth.sds[-2:] == pytest.approx(4 * np.sqrt(1 + r**2 - 1.6 * r) / y, rel=1e-9)
    for wrong in ({"crosswalk": {"county": [("03", "12")]}, "by": "county"}, {"where": "county = '03'"}):
        with pytest.raises(ParameterError, match="shares its noise"):
            now.growth("emp", before, **wrong)
    releases = [load_release(tmp_path / name) for name in ("release1", "release2")]
    history = releases[1].with_history(releases[0]).history
    # Every cell has its value of before, under the code of now.
    (columns,) = history.tables.values()
    assert None not in columns[3].values()
    (reaches,) = history.changes.values()
    # In fifths a change is off by noise of sigma and further noise of 5 * .6 sigma: the least number of them that holds 95 %.
    assert reaches == pytest.approx([held(sigma, 3 * sigma) / 5 for sigma in (2, 4)], rel=1e-3)
    assert type(history).from_json(json.loads(json.dumps(history.to_json()))).changes == dict(history.changes)
    change = releases[1].change(releases[0], crosswalk=CROSSWALK)
    assert next(iter(change.tables.values())).column("emp_change_sd").to_pylist() == pytest.approx(
        [4 * math.sqrt(0.4)] * 3
    )


@pytest.mark.costly
def test_lists_of_codes_are_those_of_the_earlier_release(tmp_path):
    """A county is renamed and another moves to the other state, in a list of codes: each level is followed on its own."""

    def run(years, codes, states, units, period, revision=0, **more):
        listed = rw.Hierarchy.of(
            "place", {"state": states, "county": codes}, levels=["state", "county"], source="public: x"
        )
        query = (
            rw.query().levels("state", "county", keys=rw.Keys.product(county=codes)).sum("emp", rw.Gaussian(sigma=4))
        )
        opened = build.session(
            table(units), years.folder / "years.ledger", series=series(period, revision), hierarchies=[listed]
        )
        with opened as session:
            done = session.run(query, **more)
        done.save(years.folder / period)
        return load_release(years.folder / period)

    years, old = Years(tmp_path), [("02", 30), ("03", 40)]
    first = run(years, ["01", "02", "03"], ["A", "A", "B"], old, "2020")
    more = {"carry": first, "old_records": table(old), "crosswalk": CROSSWALK}
    with handed() as found:
        second = run(years, ["01", "12", "03"], ["B", "A", "B"], [("12", 30), ("03", 40)], "2021", **more)
    assert [points.tolist() for points, _ in found] == [[5 * 5 - 4 * 5, 5 * 40 - 4 * 40, 5 * 30 - 4 * 30]]
    step = second.published.step
    with pytest.raises(ParameterError, match="other lists of codes"):
        run(years, ["01", "12", "03"], ["A", "A", "B"], old, "2021", 1, revise=second, old_records=table(old))
    before, now = ({"emp": 30, "county": code, "state": "A"} for code in ("02", "12"))
    stays = step.loss(now, before)
    assert stays == pytest.approx(2 * (0.2 * 30) ** 2 / (2 * 0.36 * 32), rel=1e-3)
    assert step.loss(now | {"state": "B"}, before) > 10 * stays


@pytest.mark.costly
def test_a_part_of_a_renamed_code_is_not_renamed(tmp_path):
    years = Years(tmp_path)
    query = rw.query().levels(rw.prefix("county", [1, 2]), keys=rw.Keys.of({"county": CELLS}))
    query = query.sum("emp", rw.Gaussian(sigma=4), alias="emp")
    years.run(table([HERE]), "2020", query=query)
    later = replace(query, key_lists=(rw.Keys.of({"county": NEW_CELLS}),))
    pairs = {"county2": [("02", "12")]}
    step = years.run(table([("12", 3)]), "2021", query=later, crosswalk=pairs).published.step
    before, now = {"emp": 3, "county": "02"}, {"emp": 3, "county": "12"}
    came = float(step.noise.policy().loss(now)) / 2
    # The first letter changed: a move in the coarser table, which lists other cells now.
    assert step.relisted
    assert replace(step, relisted=False).loss(now, before) == pytest.approx(came * (1.64 + 0.04), rel=1e-6)


def test_no_two_earlier_cells_become_one_and_none_becomes_two():
    """An earlier answer that two cells followed would be left twice, and leaving is paid once."""
    chance = np.random.default_rng(41)
    codes = list("ABCDE")
    followed = 0
    for _ in range(500):
        pairs = [tuple(chance.choice(codes, 2)) for _ in range(chance.integers(1, 6))]
        codes_now = renaming(pairs)
        later = [later_code(codes_now, code) for code in codes]
        kept = [each for each in later if each is not None]
        assert len(set(kept)) == len(kept)
        followed += len(kept)
        for old, new in zip(codes, later):
            named = {one for one, other in pairs if other == new}, {other for one, other in pairs if one == old}
            assert new is None or named in (({old}, {new}), (set(), set()))
    assert followed > 500


@pytest.mark.parametrize(
    ("pairs", "words"),
    [
        ({"nowhere": [("1", "2")]}, "no column of codes"),
        ({"county": [("1",)]}, "pairs of an earlier"),
        ({"county": []}, "pairs of an earlier"),
    ],
)
def test_a_wrong_crosswalk_is_refused_and_nothing_is_spent(pairs, words, tmp_path):
    years = Years(tmp_path)
    years.run(table([HERE]), "2020")
    with pytest.raises(ParameterError, match=words):
        years.run(table([HERE]), "2021", crosswalk=pairs)
    with pytest.raises(ParameterError, match="for noise that is carried on"):
        years.run(table([HERE]), "2020", 1, query=asked(3), crosswalk=CROSSWALK)


@pytest.mark.costly
def test_best_shares_stay_those_of_the_first_period(tmp_path):
    """Cells are listed anew every year, and other shares would be found."""
    years, found = Years(tmp_path), []
    for period, cells in (("2020", CELLS), ("2021", [*CELLS, "11", "12"])):
        keys = rw.Keys.of({"county": cells})
        query = rw.query().levels(rw.prefix("county", [1, 2]), share="best", keys=keys)
        release = years.run(table([HERE]), period, query=query.sum("emp", rw.Gaussian(sigma=4), alias="emp"))
        found.append([each["share"] for each in release.published.plan_forms[0]["tables"]])
    assert found[0] == found[1]
    assert verify(tmp_path / "years.ledger", against=[tmp_path / "release2"]) == []


@pytest.mark.parametrize(
    "code", [1.9, True, [1], math.inf, math.nan, 2**63, "1.5", "1_000", "\uff11\uff12", " 1", "", object]
)
def test_a_code_of_whole_numbers_is_read_whole_or_refused(code, tmp_path):
    assert whole_code("7") == whole_code(7.0) == whole_code(np.int64(7)) == 7
    with pytest.raises((ValueError, TypeError, OverflowError)):
        whole_code(code)


def test_a_series_that_carries_noise_too_long_is_told_to_begin_again(monkeypatch):
    monkeypatch.setattr(combined, "MOST_CARRIED", 3)
    mechanism = None
    for _ in range(3):
        mechanism = carried_from(mechanism, Gaussian(sigma=30), carry=CARRY, leave=CARRY)
    with pytest.raises(ParameterError, match="has noise of 3 earlier releases in it: begin again"):
        carried_from(mechanism, Gaussian(sigma=30), carry=CARRY, leave=CARRY)
    # The old noise is not in an answer that carries none.
    assert carried_from(None, Gaussian(sigma=30), carry=CARRY, leave=CARRY).before is None


@pytest.mark.parametrize("budget", [{"every_period": 5}, {"staying": "1"}, {"more": {"2026": 5}}])
def test_a_budget_of_a_series_is_a_policy(budget):
    with pytest.raises(ParameterError, match="must be a policy"):
        Series(name="years", period="2026", **budget)


@pytest.mark.parametrize(
    ("given", "words"),
    [({"keep": "x"}, "keep must be True or False"), ({"old_records": 5}, "read with carry and revise alone")],
)
def test_arguments_without_an_effect_or_of_another_kind_are_refused(given, words, tmp_path):
    with build.session(table([HERE]), tmp_path / "ledger") as session:
        with pytest.raises(ParameterError, match=words):
            session.run(asked(), **given)
        with pytest.raises(ParameterError, match="no argument"):
            session.unfinished.waiting(asked(), foo=1)
        assert not [each for each in session.history() if each.kind == "charged"]


@pytest.mark.parametrize("given", [{"engine": 5}, {"dataset": ["a"]}])
def test_a_session_names_what_it_was_not_given(given, tmp_path):
    with pytest.raises(ParameterError, match=next(iter(given))):
        build.session(table([HERE]), tmp_path / "ledger", **given)
    assert not (tmp_path / "ledger").exists()
