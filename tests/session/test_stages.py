"""Releases in stages (T-STAGES): only the rest is drawn and paid, and both draws cost what one release of the new accuracy costs.

Losses are compared with divergences of the laws that are really handed to the sampler, on small lattices.
"""

import json
import math
from contextlib import ExitStack, contextmanager
from fractions import Fraction
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest

import build
import divergences
import recordwise as rw
from recordwise.errors import AlreadyReleasedError, BudgetError, ParameterError
from recordwise.mechanisms import gaussian as gaussian_noise
from recordwise.mechanisms import transformed as transforming
from recordwise.mechanisms.base import noised
from recordwise.mechanisms.combined import averaged_reach, refine
from recordwise.mechanisms.registry import mechanism_from_json
from recordwise.noise import Seeded
from recordwise.policy import Measure
from recordwise.policy.series import Series
from recordwise.release.files import load_release
from recordwise.release.verify import verify
from recordwise.session.checks import totals_file

CELLS = ["01", "02", "03"]
FIXED = {"fixed_in_advance": True}


def asked(scale, **more):
    """A count, sums by three mechanisms and an average, with noise of this scale."""
    keys = more.get("keys", {"county": CELLS})
    found = rw.query().group_by("county", keys=keys).count(rw.Gaussian(sigma=2 * scale), alias="n")
    found = found.sum("emp", rw.UnitSplit(at=20, rho=Fraction(1, 10) / Fraction(scale) ** 2))
    found = found.sum("pay", rw.LogTransform(offset=100, sigma=Fraction(scale) / 10), alias="pay")
    return found.avg("emp", sum=rw.Gaussian(sigma=30 * scale), count=rw.Gaussian(sigma=3 * scale), alias="mean")


def plain(sigma, **more):
    return rw.query().group_by("county", keys={"county": CELLS}, **more).sum("emp", rw.Gaussian(sigma=sigma))


@pytest.fixture
def first(tmp_path):
    """A session with a first release, as it is read back."""
    with build.session(build.records(200), tmp_path / "stages.ledger", build.generous()) as session:
        session.run(asked(2)).save(tmp_path / "first")
        yield session, load_release(tmp_path / "first")


@contextmanager
def seen_laws():
    """The laws that are drawn from, with how many numbers each."""
    found = []

    def spy(points, law, source):
        found.append((law, points.size))
        return noised(points, law, source)

    with ExitStack() as stack:
        for module in (gaussian_noise, transforming):
            stack.enter_context(patch.object(module, "noised", spy))
        yield found


PAIRS = {
    "gaussian": (rw.Gaussian(sigma=2), rw.Gaussian(sigma=1), 3),
    "few steps": (rw.Gaussian(sigma="0.8"), rw.Gaussian(sigma="0.5"), 1),
    "unit split": (rw.UnitSplit(at=5, rho="0.5"), rw.UnitSplit(at=5, rho=2), 3),
    "clamped": (rw.Clamped(to=3, rho=1), rw.Clamped(to=3, rho=3), 2),
}


@pytest.mark.theorem("T-STAGES")
@pytest.mark.parametrize("name", PAIRS)
def test_both_draws_cost_what_the_policy_says_and_no_more_than_one_draw(name):
    before, after, moved = PAIRS[name]
    made = refine(before, after)
    reach = 40
    with_it, without = (
        divergences.both_cells(*(divergences.published(each, total, reach) for each in (made.before, made.more)))
        for total in (moved, 0)
    )
    truth, stated = divergences.zcdp(with_it, without), float(made.policy(Measure("emp")).loss({"emp": moved}))
    assert truth <= stated * divergences.ROUNDING
    assert truth >= 0.99 * stated
    alone = float(after.policy(Measure("emp")).loss({"emp": moved}))
    assert 0.9999 * alone <= stated <= alone * divergences.ROUNDING


@pytest.mark.parametrize("degree", [1, 2])
def test_transforms_cost_what_the_policy_says(degree):
    before, after = (rw.RootTransform(degree=degree, offset=1, sigma=sigma) for sigma in ("0.6", "0.3"))
    made = refine(before, after)
    both = []
    for each in (made.before, made.more):
        (there, law), (here, same) = (divergences.handed_to_the_sampler(each, total) for total in (2, 0))
        assert law == same
        both.append((there - here) ** 2 / (2 * float(law.sigma) ** 2))
    stated = float(made.policy(Measure("emp")).loss({"emp": 2}))
    assert 0.99 * stated <= sum(both) <= stated
    assert stated <= float(after.policy(Measure("emp")).loss({"emp": 2}))


def test_epsilon_of_both_draws_is_that_of_both_laws_and_not_that_of_one_draw(tmp_path):
    with build.session(build.records(50), tmp_path / "l.ledger") as session:
        queries = [plain(rw.Gaussian(variance=each).noise_sigma) for each in (2, "0.3")]
        session.run(queries[0]).save(tmp_path / "a")
        done = session.run(queries[1], refine=load_release(tmp_path / "a"), **FIXED)
    total = done.published.refinement.total
    further = float(refined_draws(done)[0].mechanism.more.noise_sigma)
    assert further == pytest.approx(math.sqrt(1 / (1 / 0.3 - 1 / 2)), rel=1e-4)
    points = np.arange(-25, 26)
    laws = []
    for moved in (1, 0):
        each = [-((points - moved) ** 2) / (2 * sigma**2) for sigma in (math.sqrt(2), further)]
        laws.append(divergences.both_cells(*(one - np.logaddexp.reduce(one) for one in each)))
    epsilon = total.lattice.meaning({"emp": 1}, delta=1e-5).epsilon
    assert divergences.hockey_stick(*laws, epsilon) <= 1e-5
    assert divergences.hockey_stick(*laws, epsilon * 0.99) > 1e-5
    assert epsilon == pytest.approx(8.79, rel=0.01)


@pytest.mark.costly
def test_a_refinement_draws_the_further_noise_alone_and_pays_for_that(first, tmp_path):
    session, earlier = first
    before = session.spent()
    with seen_laws() as laws:
        refined = session.run(asked(1), refine=earlier)
    # Each mechanism is tried on an empty cell, both draws of it; then three cells are drawn once.
    drawn = [law for law, size in laws if size == len(CELLS)]
    assert len(drawn) == 5
    assert session.spent() == before + refined.policy
    record = {"emp": 30, "pay": 900}
    alone = float(session.policy_of(asked(1)).loss(record))
    assert 0.9999 * alone <= float(session.spent().loss(record)) <= alone * divergences.ROUNDING
    further = {each.alias: each.mechanism.more for each in refined_draws(refined)}
    assert {float(law.sigma) for law in drawn[:1]} == {float(further["n"].noise_sigma)}


def refined_draws(release):
    """The statistics of a release with their mechanisms."""
    query = release.published.queries[0]

    class Draw:
        def __init__(self, statistic):
            self.alias, self.mechanism = statistic.name, statistic.mechanism()

    return [Draw(each) for each in query.statistics if each.noise is not None]


def test_answers_are_averages_by_inverse_variances(first, tmp_path):
    session, earlier = first
    drawn = []

    def keep(points, law, source):
        found = noised(points, law, source)
        drawn.append(found.copy())
        return found

    with patch.object(gaussian_noise, "noised", keep):
        refined = session.run(asked(1), refine=earlier)
    (mechanism,) = [each.mechanism for each in refined_draws(refined) if each.alias == "n"]
    v1, w = Fraction(4) ** 2, mechanism.more.noise_sigma**2
    v2 = 1 / (1 / v1 + 1 / w)
    (u,) = [each for each in drawn if len(each) == len(CELLS)][:1]
    y1 = earlier.table.column("n").to_pylist()
    expected = [float(v2 * (a / v1 + int(b) / w)) for a, b in zip(y1, u)]
    assert refined.table.column("n").to_numpy() == pytest.approx(expected)
    assert refined.table.column("n_sd")[0].as_py() ** 2 == pytest.approx(float(v2), rel=1e-6)


@pytest.mark.costly
def test_a_refined_release_is_saved_verified_fitted_and_refined_again(first, tmp_path):
    session, earlier = first
    session.run(asked(1), refine=earlier).save(tmp_path / "second")
    second = load_release(tmp_path / "second")
    session.run(asked(Fraction(1, 2)), refine=second).save(tmp_path / "third")
    third = load_release(tmp_path / "third")
    assert third.published.refinement.digests == (second.digest, earlier.digest)
    assert third.published.refinement.total.policy() == session.spent()
    assert verify(tmp_path / "stages.ledger", against=[tmp_path / each for each in ("first", "second", "third")]) == []
    alone = session.policy_of(asked(Fraction(1, 2)))
    record = {"emp": 30, "pay": 900}
    assert float(session.spent().loss(record)) == pytest.approx(float(alone.loss(record)), rel=1e-4)
    (mechanism,) = [each.mechanism for each in refined_draws(third) if each.alias == "n"]
    assert float(mechanism.noise_sigma) == pytest.approx(1, rel=1e-4)
    assert mechanism_from_json(third.published.plan_forms[0]["statistics"][0]["mechanism"]) == mechanism
    fitted = third.consistent(complete=True)
    assert "n_fit" in fitted.table.column_names
    form = json.loads((tmp_path / "second" / "release.json").read_text())
    form["refines"]["charge"] = 1
    (tmp_path / "second" / "release.json").write_text(json.dumps(form))
    assert any(
        "refines a different charge" in each
        for each in verify(tmp_path / "stages.ledger", against=[tmp_path / "second"])
    )


@pytest.mark.costly
def test_stages_of_one_release_are_not_compared_as_if_they_were_independent(first, tmp_path):
    session, earlier = first
    session.run(asked(1), refine=earlier).save(tmp_path / "second")
    second = load_release(tmp_path / "second")
    with pytest.raises(ParameterError, match="noise is not independent"):
        second.change(earlier)
    one, other = (rw.read(tmp_path / name).total("n") for name in ("second", "first"))
    with pytest.raises(ParameterError, match="shares its noise"):
        one.growth(other)


def test_a_retry_is_refused_and_a_crash_before_saving_loses_nothing(first, tmp_path):
    session, earlier = first
    drawn = session.run(asked(1), refine=earlier, refuse_repeat=True, keep=True)
    spent = session.spent()
    assert session.unfinished.waiting(asked(1), refine=earlier)
    assert session.unfinished.resume(asked(1)) is None
    resumed = session.unfinished.resume(asked(1), refine=earlier)
    assert resumed.digest == drawn.digest
    assert resumed.published.refinement.digests == (earlier.digest,)
    with pytest.raises(AlreadyReleasedError):
        session.run(asked(1), refine=earlier, refuse_repeat=True)
    session.unfinished.finish(asked(1), refine=earlier)
    assert not session.unfinished.waiting(asked(1), refine=earlier)
    assert session.spent() == spent


SELECTED = rw.Keys.select(rho=1, delta="0.01", pieces={"emp": 20})
OTHERS = {
    "more noise": (asked(3), "less noise"),
    "other cells": (asked(1, keys={"county": ["01", "02"]}), "no query with the same"),
    "another statistic": (plain(1), "no query with the same"),
    "selected keys": (
        rw.query()
        .group_by("county", keys=rw.Keys.select(rho=1, delta="0.01", pieces={"emp": 20}))
        .sum("emp", rw.Gaussian(sigma=1)),
        "keys are selected",
    ),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_tables_are_refused_before_anything_is_spent(first, name):
    session, earlier = first
    query, words = OTHERS[name]
    spent = len(session.history())
    with pytest.raises(ParameterError, match=words):
        session.run(query, refine=earlier)
    assert len(session.history()) == spent


FAT = rw.Polylog(power=2, rate=1, offset=3, variance=9)
KINDS = {
    "laplace": (
        rw.GeneralizedGaussian(shape=1, scale=3),
        rw.GeneralizedGaussian(shape=1, scale=1),
        "only Gaussian noise",
    ),
    "fat tails": (FAT, FAT, "only Gaussian noise"),
    "laplace on a scale": (
        rw.LogTransform(offset=9, laplace_scale="0.2"),
        rw.LogTransform(offset=9, laplace_scale="0.1"),
        "Laplace",
    ),
    "another kind": (rw.Gaussian(sigma=9), rw.UnitSplit(at=1, rho=9), "another kind"),
    "another threshold": (rw.UnitSplit(at=5, rho=1), rw.UnitSplit(at=6, rho=9), "another kind, threshold"),
    "another bound": (rw.Clamped(to=5, rho=1), rw.Clamped(to=6, rho=9), "another kind, threshold, bound"),
    "another offset": (rw.LogTransform(offset=9, sigma=1), rw.LogTransform(offset=8, sigma="0.1"), "offset"),
    "another floor": (
        rw.Sized(rw.Gaussian(sigma="0.5"), floor=10),
        rw.Sized(rw.Gaussian(sigma="0.1"), floor=20),
        "another floor",
    ),
    "other groups": (
        rw.ByGroup("kind", {"a": rw.Gaussian(sigma=9)}),
        rw.ByGroup("kind", {"b": rw.Gaussian(sigma=3)}),
        "other groups",
    ),
    "no less noise": (rw.Gaussian(sigma=3), rw.Gaussian(sigma=3), "less noise"),
    "no less loss": (rw.UnitSplit(at=5, rho=1), rw.UnitSplit(at=5, rho=1), "less noise"),
}


@pytest.mark.parametrize("name", KINDS)
def test_mechanisms_without_a_proof_are_refused_by_name(name):
    before, after, words = KINDS[name]
    with pytest.raises(ParameterError, match=words):
        refine(before, after)


@pytest.mark.costly
def test_other_records_are_refused_and_the_file_of_digests_is_the_owners(first, tmp_path):
    session, earlier = first
    kept = totals_file(session._ledger)
    assert kept.stat().st_mode & 0o777 == 0o600
    totals = {str(each) for each in build.records(200).column("emp").to_pylist()}
    noted = [json.loads(line) for line in kept.read_text().splitlines()]
    assert all(len(each) == 64 for line in noted for each in line["totals"].values())
    # One digest for all tables and statistics of the query: that of a single total could be found by trying numbers.
    assert all(len(line["totals"]) == 1 for line in noted)
    assert not totals & {each for line in noted for each in line["totals"].values()}
    table = build.records(200).to_pydict()
    table["emp"][0] += 1
    events = len(session.history())
    session.close()
    with (
        build.session(pa.table(table), tmp_path / "stages.ledger", build.generous()) as other,
        pytest.raises(ParameterError, match="other records"),
    ):
        other.run(asked(1), refine=earlier)
    with build.session(build.records(200), tmp_path / "stages.ledger", build.generous()) as again:
        assert len(again.history()) == events
        kept.chmod(0o644)
        again.run(asked(1), refine=earlier)
        assert kept.stat().st_mode & 0o777 == 0o600
        kept.unlink()
        with pytest.raises(ParameterError, match="no digest of its totals"):
            again.run(asked(Fraction(1, 2)), refine=earlier)


@pytest.mark.costly
def test_another_ledger_a_missing_budget_and_another_label_are_refused(first, tmp_path):
    session, earlier = first
    with pytest.raises(ParameterError, match="is private and the further release is not"):
        session.run(asked(1), refine=earlier, rng=Seeded(1))
    with (
        build.session(build.records(200), tmp_path / "other.ledger", build.generous()) as other,
        pytest.raises(ParameterError, match="not charged to this ledger"),
    ):
        other.run(asked(1), refine=earlier)
    with build.session(build.records(200), tmp_path / "free.ledger") as free:
        free.run(asked(2)).save(tmp_path / "free")
        with pytest.raises(ParameterError, match="budget that was declared before"):
            free.run(asked(1), refine=load_release(tmp_path / "free"))


def test_a_budget_covers_all_stages_or_refuses(tmp_path):
    budget = rw.policy.gaussian_sum("emp", sigma=10)
    with build.session(build.records(50), tmp_path / "l.ledger", budget) as session:
        session.run(plain(20)).save(tmp_path / "a")
        earlier = load_release(tmp_path / "a")
        with pytest.raises(BudgetError):
            session.run(plain(9), refine=earlier)
        session.run(plain(10), refine=earlier)
        with pytest.raises(BudgetError):
            session.run(plain(1000))


def test_another_period_or_revision_is_refused(tmp_path):
    def opened(revision):
        series = Series(name="years", period="2026", revision=revision, every_period=build.generous())
        return build.session(build.records(50), tmp_path / "s.ledger", series=series)

    with opened(0) as session:
        session.run(plain(20)).save(tmp_path / "a")
    earlier = load_release(tmp_path / "a")
    with opened(1) as session, pytest.raises(ParameterError, match="another period or revision"):
        session.run(plain(10), refine=earlier)
    with opened(0) as session:
        session.run(plain(10), refine=earlier)


@pytest.mark.costly
def test_sized_grouped_and_signed_noise_is_refined_cell_by_cell(tmp_path):
    table = {"id": [1, 2, 3], "cell": ["a", "b", "b"], "value": [5, -700, 900], "kind": ["x", "y", "y"]}
    sizes = rw.Keys.of({"cell": ["a", "b"], "size": [10, 900]}, size="size", sized_on="public: made up")

    def query(scale):
        found = rw.query().group_by("cell", keys=sizes)
        found = found.sum("value", rw.Sized(rw.Gaussian(sigma=Fraction(scale) / 10), floor=100), alias="sized")
        return found.sum("value", rw.LogTransform(offset=50, sigma=Fraction(scale) / 5, signed=True), alias="signed")

    def grouped(scale):
        found = rw.query().group_by("kind", keys={"kind": ["x", "y"]})
        groups = {"x": rw.Gaussian(sigma=3 * scale)}
        return found.sum("value", rw.ByGroup("kind", groups, default=rw.Gaussian(sigma=50 * scale)), alias="grouped")

    signed = rw.Measure.of("value", signed=True)
    with build.employers(table, "cell", "kind", ledger=tmp_path / "l.ledger", measures={"value": signed}) as session:
        session.run(query(2), grouped(2)).save(tmp_path / "a")
        refined = session.run(query(1), grouped(1), refine=load_release(tmp_path / "a"), **FIXED)
        refined.save(tmp_path / "b")
        record = {"value": 40, "cell": "b", "kind": "y"}
        alone = float(session.policy_of(query(1), grouped(1)).loss(record))
        assert float(session.spent().loss(record)) == pytest.approx(alone, rel=1e-3)
    data = {name: load_release(tmp_path / "b")[name] for name in ("q1_cell", "q2_kind")}
    assert data["q1_cell"].column("sized_sd").to_pylist() == pytest.approx([10, 80], rel=1e-3)
    assert data["q2_kind"].column("grouped_sd").to_pylist() == pytest.approx([3, 50], rel=1e-3)


def test_fits_and_questions_draw_from_the_law_of_the_average():
    made = refine(rw.Gaussian(sigma="0.9"), rw.Gaussian(sigma="0.4"))
    law, lattice = made.drawn_law(1)
    values = law.draw(4000, Seeded(3)).values
    assert (lattice, law.variance) == (1, pytest.approx(float(made.variance(0.0))))
    # Four thousand draws: the variance is within a tenth but for a chance below 1e-5.
    assert np.var(values) == pytest.approx(law.variance, rel=0.1)
    weight = float(made.weight)
    points = {round(weight * one + (1 - weight) * other, 9) for one in range(-9, 10) for other in range(-9, 10)}
    assert {round(each, 9) for each in values.tolist()} <= points
    assert refine(rw.LogTransform(offset=9, sigma=1), rw.LogTransform(offset=9, sigma="0.1")).drawn_law(1) is None


SPREADS = [("0.5", "0.3"), ("0.9", "0.4"), ("1.5", 1), (6, 2), (40, 12)]


@pytest.mark.parametrize("sigmas", SPREADS)
@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95])
def test_intervals_cover_as_stated_by_the_exact_law_of_both_draws(sigmas, confidence):
    made = refine(*(rw.Gaussian(sigma=each) for each in sigmas))
    weight = float(made.weight)
    reach = [math.ceil(12 * float(each.noise_sigma)) for each in (made.before, made.more)]
    points = [np.arange(-each, each + 1) for each in reach]
    laws = [np.exp(-(at**2) / (2 * float(own.noise_sigma) ** 2)) for at, own in zip(points, (made.before, made.more))]
    chance = np.outer(*(law / law.sum() for law in laws))
    error = np.abs(weight * points[0][:, None] + (1 - weight) * points[1][None, :])
    draws = tuple((float(each.noise_sigma), share) for each, share in ((made.before, weight), (made.more, 1 - weight)))
    half = averaged_reach(draws, confidence)
    assert chance[error <= half].sum() >= confidence
    # No shorter interval covers: without what rounding to the grid adds, it fails.
    spread = math.sqrt(sum((sigma * share) ** 2 for sigma, share in draws))
    assert chance[error < half - 0.003 * spread].sum() < confidence
    assert float(made.variance(0.0)) == pytest.approx(float((chance * error**2).sum()))


def test_coverage_after_a_refinement_that_the_first_answer_decided():
    """20,000 tables, seeded. False alarm below 1e-6 (five standard errors of a share); a miss of 2 points is seen.

    Refining only where the first answer looks imprecise biases the average, and the further answer alone is unbiased (T-STAGES).
    """
    made = refine(rw.Gaussian(sigma=20), rw.Gaussian(sigma=10))
    totals = np.full(20_000, 100)
    first = made.before.release(totals, rng=Seeded(4)).values()
    further = made.more.release(totals, rng=Seeded(5))
    average = made.estimate(made.combine(first, further))
    chosen = first < 95
    assert abs(np.mean(further.values()[chosen]) - 100) < 5 * float(made.more.noise_sigma) / math.sqrt(chosen.sum())
    assert np.mean(average.value[chosen]) < 98
    whole = made.before.estimate(made.before.release(totals, rng=Seeded(4)))
    low, high = np.where(chosen, average.low, whole.low), np.where(chosen, average.high, whole.high)
    covered = np.mean((low <= 100) & (high >= 100))
    assert abs(covered - 0.95) < 0.02
    always = np.mean((average.low <= 100) & (average.high >= 100))
    assert abs(always - 0.95) < 5 * math.sqrt(0.95 * 0.05 / len(totals))


def test_refining_what_looks_too_small_biases_the_average_and_not_the_further_answer():
    # 20,000 cells of 40: those whose first answer is below 38 are refined. Their averages are low by a quarter of the mean of
    # such errors, so that fewer intervals hold; the further answers alone are unbiased, and as many hold as stated. The mean of
    # some 6,000 further answers is off by 5 of its standard deviations with a chance below 1e-6.
    first, made = rw.Gaussian(sigma=4), refine(rw.Gaussian(sigma=4), rw.Gaussian(sigma=2))
    totals = np.full(20_000, 40)
    seen = first.release(totals, rng=Seeded(7)).values()
    chosen = seen < 38
    own = made.continuing(seen[chosen])
    averaged = own.estimate(own.release(totals[chosen], rng=Seeded(8)))
    further = (averaged.value - float(made.weight) * seen[chosen]) / float(1 - made.weight)
    bias = float(made.weight) * float(np.mean(seen[chosen] - 40))
    spread = float(made.more.noise_sigma)
    assert np.mean(averaged.value) - 40 == pytest.approx(bias, abs=0.15)
    assert bias < -1
    assert abs(np.mean(further) - 40) < 5 * spread / math.sqrt(chosen.sum())
    held = np.mean((averaged.low <= 40) & (averaged.high >= 40))
    assert 0.85 < held < 0.94
    reach = averaged_reach(((spread, 1.0),), 0.95)
    assert np.mean(np.abs(further - 40) <= reach) > 0.94
