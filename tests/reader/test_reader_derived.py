"""Conditions, ranks, regressions, replicates and growth of what readers ask, and their refusals."""

import json
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import sparse
from scipy.stats import binom, norm

import recordwise as rw
from build import employers
from recordwise.errors import OutputError, ParameterError
from recordwise.noise import Seeded
from recordwise.noise.laws import GeneralizedGaussian
from recordwise.postprocess import linear
from recordwise.postprocess.linear import LinearModel
from recordwise.reader import ReaderRelease, asking, derived
from recordwise.reader.answers import Answer
from recordwise.reader.questions import DEEPEST, condition_of
from recordwise.release import spread
from recordwise.release.content import unimodal_reach
from recordwise.release.spread import FixedNoise, JoinedNoise, SummedErrors, sum_reaches

COUNTIES = ["01001", "01003", "01005", "02013", "02016", "34001", "34003"]
CODES = ["311", "312", "321", "441"]


@pytest.fixture(scope="module")
def opened() -> Any:
    chance = np.random.default_rng(7)
    rows = pa.table(
        {
            "id": np.arange(500),
            "county": chance.choice(COUNTIES, 500),
            "naics": chance.choice(CODES, 500),
            "emp": np.floor(chance.pareto(1.2, 500) * 4 + 1).astype(np.int64),
        }
    )
    with employers(rows, max_outside="accept", dataset="small") as session:
        yield session


def released(opened: Any, mechanism: Any = None, seed: int = 1, period: str = "") -> ReaderRelease:
    keys = rw.Keys.of({"county": [c for c in COUNTIES for _ in CODES], "naics": [n for _ in COUNTIES for n in CODES]})
    asked = rw.query().levels(rw.prefix("county", [2, 5])).levels((), rw.prefix("naics", [2, 3]), keys=keys)
    asked = asked.sum("emp", mechanism or rw.Gaussian(sigma=9)).count(rw.Gaussian(sigma=3))
    found = opened.run(asked, rng=Seeded(seed))
    return ReaderRelease.of(found.with_labels(publication=rw.Publication(period=period)) if period else found)


def made(values: Any, covariance: Any, **other: Any) -> Answer:
    """Answers with normal errors, as a release gives them."""
    sds = np.sqrt(np.diagonal(covariance))
    given: dict[str, Any] = {
        "question": "total of emp by county",
        "labels": tuple(f"c{at}" for at in range(len(values))),
        "values": np.asarray(values, float),
        "sds": sds,
        "lows": values - 1.96 * sds,
        "highs": values + 1.96 * sds,
        "covariance": np.asarray(covariance, float),
        "halves": np.zeros(len(values)),
        "confidence": 0.95,
        "normal": True,
        "clipped": False,
        "sources": (),
        "notes": (),
        "method": "sum",
        "of": "digest:emp",
        "release": {"title": "T", "digest": "d", "privacy_label": "p", "version": "0", "private": "yes", "stages": ""},
        "errors": lambda draws, *_: np.zeros((draws, len(values))),
    }
    return Answer(**{**given, **other})


# Conditions.


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("county5 in ('01001', '34003')", {"01001", "34003"}),
        ("county5 = 01001 or county5='34003'", {"01001", "34003"}),
        ("not (county2 = '01' or county2 = '34')", {"02013", "02016"}),
        ("county2 != '01' and county5 not in ('34001')", {"02013", "02016", "34003"}),
        ("county2 <> 01 AND NOT county5 IN (34001, '34003')", {"02013", "02016"}),
    ],
)
def test_conditions_select_what_they_say(opened: Any, text: str, kept: set[str]) -> None:
    release = released(opened)
    found = release.total("emp", text, complete=True)
    listed = release.total("emp", {"county5": sorted(kept)}, complete=True)
    assert found.value == pytest.approx(listed.value, rel=1e-9)
    assert found.sd == pytest.approx(listed.sd, rel=1e-9)


def test_a_condition_is_told_in_words_and_bad_ones_are_refused(opened: Any) -> None:
    release = released(opened)
    found = release.total("emp", "county2 = '01' and not naics2 in ('44')")
    assert found.question == "total of emp where county2 is 01 and naics2 is not 44"
    assert condition_of("a = 'it''s'").codes == ("it's",)  # type: ignore[union-attr]
    for text in (
        "county5 =",
        "county5 in ()",
        "county5 in ('01001'",
        "= '1'",
        "a = 1 b",
        'a = "1"',
        "a < 1",
        "a = 1;",
        "",
    ):
        with pytest.raises(ParameterError, match="cannot be read"):
            release.total("emp", text)
    with pytest.raises(ParameterError, match="too many"):
        condition_of("(" * (DEEPEST + 1) + "a = 1" + ")" * (DEEPEST + 1))
    with pytest.raises(ParameterError, match="without a cell"):
        release.total("emp", "county5 != '99999'")


# Many questions at once.


@pytest.mark.theorem("T-ASK")
@pytest.mark.parametrize("seed", range(6))
def test_many_questions_have_the_covariance_of_single_ones(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Trees and crossed tables, all variances different, questions about cells of any table."""
    chance = np.random.default_rng(seed)
    places, sectors = 8, 6
    cells = np.arange(places * sectors)
    place, sector = cells // sectors, cells % sectors
    tables = [
        (place, sector),
        (place, sector // 2),
        (place, sector * 0),
        (place // 3, sector),
        (place // 3, sector // 2),
    ]
    tables += [(place // 3, sector * 0), (place * 0, sector), (place * 0, sector // 2), (place * 0, sector * 0)]
    kept = [0, *sorted(chance.choice(np.arange(1, 9), 6, replace=False))] if seed < 4 else [0, 2, 5, 8]
    axes: list[list[Any]] = [[], []]
    blocks, sizes = [], []
    for at in kept:
        label = np.unique(tables[at][0] * 100 + tables[at][1], return_inverse=True)[1]
        blocks.append(sparse.csr_array((np.ones(len(cells)), (label, cells))))
        sizes.append(blocks[-1].shape[0])
        for axis, own in zip(axes, tables[at]):
            axis.append(np.unique(own, return_inverse=True)[1])
    rows = sparse.csr_array(sparse.vstack(blocks))
    spread = chance.uniform(1, 1000, rows.shape[0])
    model = LinearModel.of(rows, chance.normal(size=rows.shape[0]), spread, tables=sizes, axes=axes)
    asked = sparse.random_array((9, rows.shape[0]), density=0.1, rng=chance, format="csr")
    single = model.answer(asked)
    monkeypatch.setattr(linear, "MOST_WEIGHTS", rows.shape[0] * 8)
    together = model.answer(asked, fine=True)
    assert together.covariance == pytest.approx(single.covariance, rel=1e-9, abs=1e-9 * np.max(single.covariance))
    assert together.estimates == pytest.approx(single.estimates, rel=1e-9)
    assert np.all(together.largest >= single.largest * (1 - 1e-9))
    assert np.max(np.abs(together.largest / single.largest - 1)) > 1e-3


# Transforms.


@pytest.mark.parametrize("complete", [False, True])
def test_totals_under_transforms_have_intervals_but_no_differences(opened: Any, complete: bool) -> None:
    release = released(opened, rw.LogTransform(offset=20, sigma="0.1"))
    found = release.total("emp", by="county5", complete=complete)
    single = release["county5"].to_pandas().set_index("county5") if "county5" in release.names else None
    assert np.all((found.lows < found.values) & (found.values < found.highs))
    assert any("grows with the total" in note for note in found.notes)
    if not complete and single is not None:
        assert found.values == pytest.approx(single["sum_emp"].loc[list(found.labels)].to_numpy())
        assert found.sds == pytest.approx(single["sum_emp_sd"].loc[list(found.labels)].to_numpy())
    with pytest.raises(ParameterError, match="grow with the total"):
        found.difference("01001", "34001")
    with pytest.raises(ParameterError, match="that of the release"):
        release.total("emp", confidence=0.9)
    if complete:
        with pytest.raises(ParameterError, match="fitted under a transform"):
            found.reliability()
    else:
        assert found.reliability() < 1


# Ranks.


def test_ranks_are_certain_without_noise_and_unknown_in_noise() -> None:
    values = np.array([50.0, 10.0, 30.0, 20.0, 40.0])
    clear = made(values, np.eye(5) * 1e-4).rank()
    assert list(clear.best) == list(clear.worst) == list(clear.all_best) == list(clear.all_worst) == [1, 5, 3, 4, 2]
    assert clear.table["label"].to_pylist() == ["c0", "c4", "c2", "c3", "c1"]
    blurred = made(values, np.eye(5) * 1e4).rank()
    assert list(blurred.all_best) == [1] * 5
    assert list(blurred.all_worst) == [5] * 5
    some = made(values, np.eye(5) * 9).rank()
    assert np.all((some.all_best <= some.best) & (some.worst <= some.all_worst))
    assert some.top(2)[0] == () or set(some.top(2)[0]) <= set(some.top(2)[1])
    assert "for certain among the top 2" in some.sentence(2)
    assert json.loads(json.dumps(some.to_json()))["ranks"][0]["label"] == "c0"
    with pytest.raises(ParameterError, match="two values"):
        made(values[:1], np.eye(1)).rank()


@pytest.mark.theorem("T-RANK")
def test_ranks_use_the_correlation_of_errors() -> None:
    """A common error moves all values alike and changes no rank."""
    values = np.array([50.0, 10.0, 30.0])
    common = made(values, np.full((3, 3), 1e4) + np.eye(3) * 1e-4).rank()
    assert list(common.all_best) == list(common.all_worst) == [1, 3, 2]


@pytest.mark.theorem("T-RANK")
@pytest.mark.parametrize("cells", [0, 10**6])
def test_ranks_hold_at_once_for_errors_that_are_not_normal(cells: int) -> None:
    """As many fresh errors as stated, whatever the draws: false alarms below one in a million; a normal law is refused."""
    chance, fresh, count = np.random.default_rng(11), 20_000, 14
    mix = np.eye(count) + 0.2 * np.diag(np.ones(count - 1), 1)

    def drawn(draws: int, *_: Any) -> Any:
        return chance.laplace(size=(draws, count)) @ mix.T

    answer = made(np.zeros(count), 2 * mix @ mix.T, normal=False, errors=drawn, cells=cells)
    _, reach, deviations = derived._quantiles(answer)
    errors = drawn(fresh)
    first, second = np.triu_indices(count, 1)
    largest = np.max(np.abs(errors[:, first] - errors[:, second]) / deviations[first, second], axis=1)
    off = 5 * np.sqrt(0.95 * 0.05 * (1 / fresh + 1 / (derived.LEAST_DRAWS if cells else derived.DRAWS)))
    assert abs(np.mean(largest <= reach) - 0.95) < off
    _, normal, _ = derived._quantiles(made(np.zeros(count), 2 * mix @ mix.T))
    assert np.mean(largest <= normal) < 0.95 - off


def test_what_is_left_out_of_simulated_errors_is_as_small_as_asked(opened: Any) -> None:
    release = released(opened, rw.GeneralizedGaussian(shape=1, scale=40))
    totals = release.total("emp", by="county5", complete=True)
    assert totals.errors is not None
    assert totals.cells > len(COUNTIES)
    every, least = totals.errors(200, "rank"), float(np.max(totals.sds)) / 10
    less, some = totals.errors(200, "rank", 1e-9), totals.errors(200, "rank", least)
    np.testing.assert_allclose(less, every, atol=1e-7)
    # The standard deviation of a mean of 200 squares is below a third of it: false alarms below one in a million.
    assert 0 < np.sqrt(np.max(np.mean((some - every) ** 2, axis=0))) < 2 * least


def test_ranks_of_many_values_are_from_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(1).normal(0, 10, 30)
    answer = made(values, np.eye(30))
    paired = answer.rank()
    monkeypatch.setattr(derived, "MOST_PAIRED", 10)
    wider = answer.rank()
    assert "Sidak" in wider.citation
    assert np.all((wider.all_best <= paired.all_best) & (wider.all_worst >= paired.all_worst))
    assert np.any(wider.all_worst < 30)


def test_two_values_are_compared_in_one_sentence() -> None:
    found = made([100.0, 10.0, 12.0], np.eye(3))
    assert found.compare("c0", "c1").startswith("c0 is larger than c1, by 90 ")
    assert found.compare("c1", "c0").startswith("c1 is smaller than c0, by 90 ")
    assert "cannot be told" in found.compare("c1", "c2")


def test_differences_and_ranks_of_coarse_noise_are_from_its_law(opened: Any) -> None:
    totals = released(opened, rw.Gaussian(sigma="0.16")).total("emp", by="county5", complete=True)
    assert not totals.normal
    less = totals.difference("01001", "34001")
    assert less.low < less.value < less.high
    assert len(totals.rank().labels) == len(COUNTIES)


# Regressions.


def test_slopes_are_corrected_for_noise() -> None:
    chance = np.random.default_rng(3)
    x = chance.normal(0, 10, 400)
    noisy = made(x + chance.normal(0, 10, 400), np.eye(400) * 100, of="digest:emp")
    response = made(1 + 2 * x + chance.normal(0, 3, 400), np.eye(400) * 9, of="digest:pay")
    found = response.regress({"emp": noisy})
    assert found.naive[0] == pytest.approx(1, abs=0.2)
    assert found.slopes[0] == pytest.approx(2, abs=0.4)
    assert found.lows[0] < 2 < found.highs[0]
    assert found.reliabilities[0] == pytest.approx(noisy.reliability(), rel=1e-12) == pytest.approx(0.5, abs=0.1)
    assert "reliab(emp 0." in found.reliability_text()
    assert json.loads(json.dumps(found.to_json()))["slopes"][0]["covariate"] == "emp"
    exact = chance.normal(0, 1, 400)
    several = made(response.values + 5 * exact, np.eye(400) * 9, of="digest:pay").regress({"emp": noisy, "age": exact})
    assert np.all(np.abs(several.slopes - [2, 5]) < 4 * several.sds)
    assert np.all(several.sds < [0.3, 2])
    assert several.reliabilities[1] == 1


@pytest.mark.theorem("T-EIV")
def test_formulas_are_those_of_fuller() -> None:
    """The formulas of one covariate, written out with sums, weights and all."""
    chance = np.random.default_rng(5)
    x, y, w, tau = (
        chance.normal(0, 3, 30),
        chance.normal(0, 3, 30),
        chance.uniform(1, 2, 30),
        chance.uniform(0.1, 1, 30),
    )
    total, n = w.sum(), 30
    found = made(y, np.eye(30), of="digest:pay").regress({"x": made(x, np.diag(tau))}, weights=w)
    xm, ym = w @ x / total, w @ y / total
    left = np.sum(w * (x - xm) ** 2) - np.sum(w * tau * (1 - w / total))
    slope = np.sum(w * (x - xm) * (y - ym)) / left
    psi = w * ((x - xm) * (y - ym - slope * (x - xm)) + slope * tau)
    assert found.slopes[0] == pytest.approx(slope, rel=1e-12)
    assert found.sds[0] == pytest.approx(np.sqrt(n / (n - 2) * np.sum(psi**2)) / left, rel=1e-12)
    for end in (found.lows[0], found.highs[0]):
        at = w * ((x - xm) * (y - ym - end * (x - xm)) + end * tau)
        exact = w @ ((x - xm) * (y - ym)) - end * left
        assert abs(exact) == pytest.approx(1.959963984540054 * np.sqrt(n / (n - 2) * np.sum(at**2)), rel=1e-9)


def test_only_the_ratios_of_weights_count() -> None:
    """Those of inverse variances in cents are tiny; a column that does not vary does not vary under any weights."""
    x, noisy = np.arange(1.0, 13), np.random.default_rng(2).normal(0, 1, 12)
    weights = np.linspace(1, 3, 12)
    response = made(3 * x + noisy, np.eye(12), of="digest:pay")
    found = [response.regress({"x": x}, weights=scale * weights) for scale in (1, 1e-18, 1e-310, 1e22, 1e300)]
    assert [each.slopes[0] for each in found] == pytest.approx([found[0].slopes[0]] * 5, rel=1e-9)
    assert [each.sds[0] for each in found] == pytest.approx([found[0].sds[0]] * 5, rel=1e-9)
    for scale in (1e-18, 1, 1e22):
        with pytest.raises(ParameterError, match="do not vary"):
            response.regress({"x": np.full(12, 0.1)}, weights=scale * weights)


@pytest.mark.parametrize("alone", [True, False])
def test_errors_that_cells_share_leave_no_slope_without_an_error(alone: bool) -> None:
    """What they share moves the intercept alone; its variance, taken off that of the slope, would leave less than nothing."""
    x, z = 10.0 * np.arange(8), np.array([3.0, -1, 4, 1, -5, 9, -2, 6])
    together = np.full((8, 8), 0.5) + 0.01 * np.eye(8)
    columns = {"x": made(x, together)} | ({} if alone else {"z": z})
    found = made(2 * x, together, of="digest:pay").regress(columns)
    assert np.all(found.sds > 0)
    assert np.all((found.lows < found.slopes) & (found.slopes < found.highs))
    assert found.lows[0] < 2 < found.highs[0]


def test_columns_that_are_mostly_noise_give_a_set_and_no_slope() -> None:
    chance = np.random.default_rng(4)
    x = chance.normal(0, 1, 60)
    noisy = made(x + chance.normal(0, 5, 60), np.eye(60) * 25)
    found = made(x, np.eye(60) * 0.01, of="digest:pay").regress({"emp": noisy})
    assert np.isnan(found.slopes[0])
    assert found.lows[0] == -np.inf
    assert "too much noise" in found.sentence
    assert json.dumps(found.to_json(), allow_nan=False)
    with pytest.raises(ParameterError, match="mostly noise"):
        made(x, np.eye(60), of="digest:pay").regress({"emp": noisy, "age": x})


def test_regressions_refuse_what_they_cannot_know(opened: Any) -> None:
    release = released(opened)
    found = release.regress("emp", ["count"], by="county5", complete=True)
    assert found.names == ("count",)
    totals = release.total("emp", by="county5")
    with pytest.raises(ParameterError, match="not independent"):
        totals.regress({"emp": totals})
    with pytest.raises(ParameterError, match="cut, derived"):
        totals.regress({"count": release.total("count", by="county5", nonnegative=True)})
    with pytest.raises(ParameterError, match="other labels"):
        totals.regress({"count": release.total("count", by="county2")})
    with pytest.raises(ParameterError, match="positive"):
        totals.regress({"count": release.total("count", by="county5")}, weights=[-1.0] * 7)


def test_a_regression_on_an_earlier_stage_of_the_same_noise_is_refused() -> None:
    x = np.random.default_rng(6).normal(0, 5, 40)

    def of_stages(stages: str, digest: str, statistic: str) -> Answer:
        told = {"title": "T", "digest": digest, "privacy_label": "p", "version": "0", "private": "yes"}
        return made(x, np.eye(40), of=f"{digest}:{statistic}", release={**told, "stages": stages})

    first, second = of_stages("a", "a", "emp"), of_stages("a b", "b", "emp")
    with pytest.raises(ParameterError, match="shares its noise"):
        second.regress({"first": first})
    other = of_stages("c", "c", "pay")
    with pytest.raises(ParameterError, match="shares its noise"):
        other.regress({"first": first, "second": second})
    # Two statistics of one release, and of releases with nothing in common, have errors of their own.
    assert of_stages("a", "a", "pay").regress({"first": first}).names == ("first",)
    assert other.regress({"second": second}).names == ("second",)


@pytest.mark.parametrize(
    "columns",
    [{"x": [3.0] * 12}, {"x": [0.1] * 12}, {"x": np.arange(12.0), "y": 2e9 * np.arange(12.0)}],
    ids=["constant", "constant with roundings", "twice the same"],
)
def test_covariates_without_a_slope_are_refused(columns: Any) -> None:
    response = made(np.arange(12.0), np.eye(12))
    with pytest.raises(ParameterError, match="do not vary, or one follows from the others"):
        response.regress(columns)
    with pytest.raises(ParameterError, match="finite"):
        response.regress({"x": [float("nan")] * 12})
    # Scales that are far apart are no reason.
    far = {"x": np.arange(12.0) ** 2, "y": 1e-12 * np.random.default_rng(3).normal(0, 1, 12)}
    assert response.regress(far).names == ("x", "y")


# Replicates.


@pytest.mark.theorem("T-REPLICATE")
def test_replicates_have_the_errors_of_the_answers(opened: Any, tmp_path: Path) -> None:
    """The variance of 2,000 replicates is within 6 of its standard errors, false alarm below 1e-7; half of it is not."""
    release = released(opened)
    totals = release.total("emp", by="county5", complete=True)
    found = release.replicates("emp", by="county5", complete=True, count=2000)
    drawn = np.array([found.table[f"replicate_{at + 1}"].to_numpy() for at in range(2000)])
    assert found.table["value"].to_numpy() == pytest.approx(totals.values)
    ratio = np.mean((drawn - totals.values) ** 2, axis=0) / totals.sds**2
    assert np.all(np.abs(ratio - 1) < 6 * np.sqrt(2 / 2000))
    both = (drawn - totals.values).T @ (drawn - totals.values) / 2000
    assert np.max(np.abs(both - totals.covariance)) < 6 * np.max(totals.covariance) * np.sqrt(2 / 2000)
    assert release.replicates("emp", by="county5", complete=True, count=2000).table.equals(found.table)
    file = found.save(tmp_path / "in" / "replicates" / "emp.parquet")
    assert b"mean over replicates" in pq.read_schema(file).metadata[b"formula"]
    assert release.digest.encode() in pq.read_schema(file).metadata[b"citation"]
    (tmp_path / "in" / "release.json").write_text("{}")
    with pytest.raises(ParameterError, match="among the tables"):
        found.save(tmp_path / "in" / "emp.parquet")
    with pytest.raises(ParameterError, match=r"the path .*emp\.parquet exists already"):
        found.save(file)
    with pytest.raises(ParameterError, match=r"the path .*r\.txt has no known ending\. Use \.parquet or \.pq or \.csv"):
        found.save(tmp_path / "r.txt")
    assert not (tmp_path / "r.txt").exists()
    with pytest.raises(ParameterError, match="cut or derived"):
        release.total("emp", by="county5", nonnegative=True).replicates()
    with pytest.raises(ParameterError, match="grow with the total"):
        released(opened, rw.LogTransform(offset=20, sigma="0.1")).replicates("emp", by="county5")


# Shares and years.


def test_shares_are_of_the_whole_with_its_covariance(opened: Any) -> None:
    release = released(opened)
    found = release.share("emp", by="county2", complete=True)
    totals = release.total("emp", by="county2", complete=True)
    whole = release.total("emp", complete=True)
    assert found.values == pytest.approx(totals.values / whole.value)
    assert np.sum(found.values) == pytest.approx(1)
    assert np.all(found.sds < totals.sds / whole.value)
    assert np.all(np.abs(np.sum(found.covariance, axis=1)) < 1e-9 * np.max(found.covariance))
    part = release.share("emp", "county5 = '01001'", of="county2 = '01'", complete=True)
    both = release.total("emp", by="county5", complete=True)
    state = release.total("emp", "county2 = '01'", complete=True)
    assert part.value == pytest.approx(both.values[0] / state.value)


@pytest.mark.costly
def test_growth_over_several_years_reconciles_codes(opened: Any) -> None:
    now, before, first = (released(opened, seed=s, period=p) for s, p in ((3, "2022"), (2, "2021"), (1, "2020")))
    found = now.growth("emp", before, first, by="county5", complete=True)
    assert len(found) == 2 * len(COUNTIES)
    assert found.labels[0] == "01001, since 2021"
    earlier = first.total("emp", by="county5", complete=True)
    later = now.total("emp", by="county5", complete=True)
    assert found.values[7:] == pytest.approx(later.values / earlier.values - 1)
    assert found.covariance[0, 7] > 0
    joined = now.growth(
        "emp", first, by="county5", complete=True, crosswalk={"county5": [("01001", "01001"), ("01001", "01003")]}
    )
    assert "01001+01003" in joined.labels
    assert any("Left out" in note for note in joined.notes)
    merged = now.growth(
        "emp", first, by="county5", complete=True, crosswalk={"county5": [("01001", "01001"), ("01003", "01001")]}
    )
    total = earlier.values[0] + earlier.values[1]
    assert merged.values[merged.labels.index("01001")] == pytest.approx(later.values[0] / total - 1)
    zones = {"county5": ["01001", "34001"], "region": ["a", "b"]}
    moved = now.growth("emp", first, regions=zones, complete=True, crosswalk={"county5": [("01003", "01001")]})
    assert moved.values[0] == pytest.approx(later.values[0] / earlier.values[1] - 1)
    with pytest.raises(ParameterError, match="crosswalk of 'county5' has no code that occurs"):
        now.growth("emp", first, by="county5", complete=True, crosswalk={"county5": {"99001": "99002"}})
    with pytest.raises(ParameterError, match="crosswalk of the codes"):
        now.growth("emp", first, regions={"county5": ["01001", "99999"], "region": ["a", "a"]})
    with pytest.raises(ParameterError, match="same period"):
        now.growth("emp", released(opened, seed=9, period="2022"), by="county5")
    with pytest.raises(ParameterError, match="itself"):
        now.growth("emp", now, by="county5")
    other = ReaderRelease.of(first.with_labels(units={"emp": "1,000 persons"}))
    with pytest.raises(ParameterError, match="another unit"):
        ReaderRelease.of(now.with_labels(units={"emp": "persons"})).growth("emp", other, by="county5")


def test_random_conditions_do_what_python_says(opened: Any) -> None:
    release, chance = released(opened), Random(5)
    totals = dict(zip(COUNTIES, release.total("emp", by="county5").values))

    def condition(depth: int) -> tuple[str, Any]:
        kind = chance.choice(["and", "or", "not"]) if depth else "test"
        if kind == "test":
            codes = chance.sample(COUNTIES, 3)
            return f"county5 in ({', '.join(repr(code) for code in codes)})", lambda code: code in codes
        one, first = condition(depth - 1)
        if kind == "not":
            return f"not ({one})", lambda code: not first(code)
        other, second = condition(depth - 1)
        if kind == "and":
            return f"({one} and {other})", lambda code: first(code) and second(code)
        return f"({one} or {other})", lambda code: first(code) or second(code)

    for _ in range(30):
        text, holds = condition(2)
        kept = [code for code in COUNTIES if holds(code)]
        if kept:
            assert release.total("emp", text).value == pytest.approx(sum(totals[code] for code in kept))
        else:
            with pytest.raises(ParameterError, match="leaves no cell"):
                release.total("emp", text)


def test_shares_may_have_a_whole_each(opened: Any) -> None:
    release = released(opened)
    found = release.share("emp", {"county5": COUNTIES[:4]}, by="county2", each=True, complete=True)
    parts = release.total("emp", {"county5": COUNTIES[:4]}, by="county2", complete=True)
    wholes = release.total("emp", {"county2": list(parts.labels)}, by="county2", complete=True)
    assert found.labels == parts.labels
    assert found.values == pytest.approx(parts.values / wholes.values)
    both = release.total("emp", by="county5", complete=True)
    # State 01 is whole, and so its share is 1 without an error.
    assert found.values[0] == pytest.approx(1)
    assert found.sds[0] < 1e-6
    assert found.sds[1] == pytest.approx(both.combined(_halves(), ["02013", "02"]).ratio("02013", "02").sd)
    assert found.sentence.endswith("%).")


def _halves() -> Any:
    one = np.array([float(each == "02013") for each in COUNTIES])
    return np.array([one, [float(each.startswith("02")) for each in COUNTIES]])


def test_ratios_without_a_clear_denominator_are_left_out_and_named() -> None:
    top = made([100.0, 50.0, 70.0], np.eye(3), of="digest:pay")
    bottom = made([10.0, 0.5, 7.0], np.eye(3), of="digest:emp")
    found = top.per(bottom)
    assert found.labels == ("c0", "c2")
    assert found.values == pytest.approx([10, 10])
    assert any("Left out" in note and "1 (c1)" in note for note in found.notes)
    assert found.covariance[0, 1] == 0
    unclear = made([0.1, 0.2, 0.3], np.eye(3), of="digest:emp")
    with pytest.raises(ParameterError, match="not clearly different"):
        top.per(unclear)
    grown = made([11.0, 5.0, 21.0], np.eye(3) * 0.01, of="a").growth(made([10.0, 0.1, 20.0], np.eye(3) * 0.01, of="b"))
    assert grown.labels == ("c0", "c2")
    assert "10.00%" in grown.sentence
    assert grown.texts[0][1] == "1.49%"


# Noise that is not normal.


@pytest.mark.theorem("T-UNIMODAL")
def test_sums_of_noise_with_one_mode_are_held_and_of_other_noise_are_not() -> None:
    """At most 5 % of 200,000 sums are beyond the reach, false alarm below 1e-6 for each law.

    The law for which Gauss's inequality is sharp is beyond less; three points, without one mode, are rejected.
    """
    chance, draws, reach = np.random.default_rng(11), 200_000, unimodal_reach(0.95, 0.0)
    assert reach == pytest.approx(2.9814, abs=1e-4)
    most = 0.05 + 4.8 * np.sqrt(0.05 * 0.95 / draws)

    def beyond(values: Any, sd: float, errors: float = reach) -> float:
        return float(np.mean(np.abs(values) > errors * sd))

    part = 4 / (3 * reach**2)
    sharp = np.where(chance.random(draws) < part, chance.uniform(-1.5 * reach, 1.5 * reach, draws), 0.0)
    assert beyond(sharp, 1.0) <= most
    assert beyond(sharp, 1.0, 2.8) > most
    three = np.where(chance.random(draws) < 1 / 3**2, chance.choice([-3.0, 3.0], draws), 0.0)
    assert beyond(three, 1.0) > most
    # Laplace noise of very different sizes, on lattices of half a standard deviation, with weights of both signs.
    weights, spread = np.array([1.0, -0.4, 0.2]), np.array([1.0, 7.0, 20.0])
    chances = 1 - np.exp(-np.sqrt(2) / 2)
    noise = (chance.geometric(chances, (draws, 3)) - chance.geometric(chances, (draws, 3))) * spread / 2
    own = np.sqrt(2 * (1 - chances)) / chances * spread / 2
    sd = float(np.sqrt(np.sum((weights * own) ** 2)))
    assert beyond(noise @ weights, sd, unimodal_reach(0.95, float(np.max(spread / 2 / own)))) <= most
    assert unimodal_reach(0.5, 0.0) == pytest.approx(np.sqrt(3) / 2)


def test_lattices_of_fat_tailed_noise_are_at_most_the_part_that_is_told() -> None:
    for inner in (rw.GeneralizedGaussian(shape=1, scale=1), rw.GeneralizedGaussian(shape="1/2", scale=1)):
        for size in (1, 3, 40, 5000):
            law, lattice = inner.resized(Fraction(size)).drawn_law(1)
            assert (
                float(lattice) <= inner.lattice_part(1.0) * float(np.sqrt(law.variance)) * float(lattice) < 0.01 * size
            )
    assert rw.GeneralizedGaussian(shape=1, scale=4, lattice="1/2").lattice_part(5.0) == pytest.approx(0.1)
    assert not hasattr(rw.LogTransform(offset=20, sigma="0.1"), "lattice_part")


@pytest.mark.theorem("T-RATIO")
@pytest.mark.parametrize("sign", [-1.0, 0.0])
def test_ratios_of_noise_that_is_not_normal_hold_whatever_the_dependence(sign: float) -> None:
    """Misses of 1,000 ratios are at most 5 %, false alarm below 1e-6; with a third of the reach they are more."""
    chance, count = np.random.default_rng(int(3 + sign)), 1000
    bottom = chance.laplace(0, 10, count)
    top = sign * bottom if sign else chance.laplace(0, 10, count)
    most = 0.05 + 4.8 * np.sqrt(0.05 * 0.95 / count)

    def misses(reach: float) -> float:
        given: dict[str, Any] = {"normal": False, "wides": np.full(count, reach)}
        tops = made(300 + top, np.eye(count) * 200, of="digest:pay", **given)
        ratios = tops.per(made(300 + bottom, np.eye(count) * 200, **given))
        assert len(ratios) == count
        assert any("97.5% each" in note for note in ratios.notes)
        return float(np.mean((ratios.lows > 1) | (ratios.highs < 1)))

    assert misses(10 * np.log(40)) <= most
    assert misses(10 / 3 * np.log(40)) > most


def test_ratios_of_laplace_noise_are_told_and_denominators_near_0_are_not(opened: Any) -> None:
    now, before = (released(opened, rw.GeneralizedGaussian(shape=1, scale=4), seed, str(seed)) for seed in (1, 2))
    found = now.growth("emp", before, by="county5", complete=True)
    assert np.all((found.lows < found.values) & (found.values < found.highs))
    assert "at least 95% of cases" in " ".join(found.notes)
    assert "intervals by corners" in found.citation
    totals = now.total("emp", by="county5", complete=True)
    ratio, share = totals.ratio("01001", "34001"), now.share("emp", by="county5", of={}, complete=True)
    assert totals.wides is not None
    one, other = (totals.labels.index(each) for each in ("01001", "34001"))
    ends = [
        (totals.values[one] + s * totals.wides[one]) / (totals.values[other] - s * totals.wides[other]) for s in (-1, 1)
    ]
    assert [ratio.low, ratio.high] == pytest.approx(ends)
    assert np.all(totals.wides > totals.highs - totals.values)
    assert len(share) == len(COUNTIES)
    # Gaussian counts below Laplace sums: corners too.
    assert "at least 95% of cases" in " ".join(totals.per(now.total("count", by="county5", complete=True)).notes)
    merged = totals.combined(np.ones((1, len(totals))), ["all"])
    assert merged.wides is not None
    assert merged.low < merged.value < merged.high
    with pytest.raises(ParameterError, match="another confidence"):
        totals.per(now.total("count", by="county5", complete=True, confidence=0.9))
    with pytest.raises(ParameterError, match="not clearly different from 0"):
        made([1.0, 2.0], np.eye(2), normal=False, wides=np.array([3.0, 3.0])).ratio("c0", "c1")
    with pytest.raises(ParameterError, match="cut or derived"):
        ratio.ratio("c0", "c1")


def chance_beyond(reach: float, *variances: float) -> float:
    """The exact chance that a sum of Laplace errors with different variances is beyond, by partial fractions."""
    parts = [
        np.prod([own / (own - other) for other in variances if other != own]) * np.exp(-reach * np.sqrt(2 / own))
        for own in variances
    ]
    return float(np.sum(parts))


@pytest.mark.parametrize("level", [0.5, 0.95, 0.975, 0.9999])
def test_sums_of_laplace_and_normal_errors_have_their_exact_quantiles(
    monkeypatch: pytest.MonkeyPatch, level: float
) -> None:
    """Against closed forms; the quantile of one law is not that of another."""
    for shares in ((1.0,), (0.6, 0.4), (0.7, 0.2, 0.1)):
        found = float(sum_reaches(np.array([shares]), np.zeros(1), [level])[0][0])
        assert chance_beyond(found, *shares) == pytest.approx(1 - level, rel=2e-4)
    normal = float(sum_reaches(np.zeros((1, 0)), np.ones(1), [level])[0][0])
    assert 2 * norm.sf(normal) == pytest.approx(1 - level, rel=1e-6)
    # One of both: integrated over the normal part.
    both = float(sum_reaches(np.array([[0.5]]), np.array([0.5]), [level])[0][0])
    points = np.linspace(-12, 12, 48_001) * np.sqrt(0.5)
    away = np.abs(both - points)
    above = np.where(points < both, 0.5 * np.exp(-2 * away), 1 - 0.5 * np.exp(-2 * away))
    density = norm.pdf(points, scale=np.sqrt(0.5)) * (points[1] - points[0])
    assert 2 * float(above @ density) == pytest.approx(1 - level, rel=1e-4)
    assert abs(both - normal) > 0.01
    # Many small errors as equal ones, beside all of them one by one.
    many = np.random.default_rng(5).pareto(1.5, (3, 300)) ** 2
    many /= np.sum(many, axis=1)[:, None]
    some = sum_reaches(many, np.zeros(3), [level])[0]
    monkeypatch.setattr(spread, "SEPARATE", 300)
    assert some == pytest.approx(sum_reaches(many, np.zeros(3), [level])[0], rel=1e-7)


def test_reaches_of_drawn_laplace_noise_hold_as_often_as_they_say() -> None:
    """20,000 sums of what is drawn, two of five answers normal; false alarm 1e-6 on each side, errors of 10 % are noticed."""
    scales, draws = (Fraction(1000), Fraction(5000), Fraction(1700)), 20_000
    laws = [GeneralizedGaussian(scale=each, shape=1) for each in scales]
    raw = np.array([law.variance for law in laws])
    fat = FixedNoise(raw, tuple((slice(at, at + 1), law) for at, law in enumerate(laws)), known=True, step=1.0)
    fine = FixedNoise(np.full(2, 900.0**2), ((np.arange(2), spread.NORMAL),), known=True, normal=True, step=1.0)
    noise = JoinedNoise(((np.array([0, 2, 4]), fat), (np.array([1, 3]), fine)))
    law = SummedErrors.of(noise)
    assert law is not None
    assert law.laplace.tolist() == [True, False, True, False, True]
    weights = np.array([[1.0, -0.3, 0.4, 0.2, -1.0], [0.0, 1.0, 0.1, 0.0, 0.0]])
    errors = noise.errors(np.zeros(5), draws, Seeded(3)) @ weights.T
    alike = spread.in_common(noise).errors(np.zeros(5), draws, Seeded(4)) @ weights.T
    allowed = binom.ppf([1e-6, 1 - 1e-6], draws, 0.05)
    (reach,) = law.reaches(weights, [0.95])
    for drawn in (errors, alike):
        missed = np.sum(np.abs(drawn) > reach, axis=0)
        assert np.all((missed >= allowed[0]) & (missed <= allowed[1]))
        assert np.all(np.sum(np.abs(drawn) > 0.9 * reach, axis=0) > allowed[1])
    coarse = FixedNoise(raw[:1], ((slice(0, 1), GeneralizedGaussian(scale=4, shape=1)),), known=True)
    fat_tailed = FixedNoise(raw[:1], ((slice(0, 1), GeneralizedGaussian(scale=1000, shape="0.5")),), known=True)
    assert SummedErrors.of(coarse) is None
    assert SummedErrors.of(fat_tailed) is None


@pytest.mark.costly
def test_totals_of_laplace_noise_are_held_by_the_law_of_their_error(
    opened: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = released(opened, rw.GeneralizedGaussian(shape=1, scale=4))
    totals = release.total("emp", by="county5", complete=True)
    assert totals.method.endswith("interval by the law of its error")
    assert np.all(
        (totals.highs - totals.values > 1.95 * totals.sds) & (totals.highs - totals.values < 2.12 * totals.sds)
    )
    both = totals.combined(np.ones((1, len(totals))), ["all"])
    assert both.high - both.value == pytest.approx(release.total("emp", complete=True).high - both.value, rel=1e-6)
    one, other = "01001", "34001"
    less, back = totals.difference(one, other), totals.only([other, one]).difference(other, one)
    assert less.high - less.value == pytest.approx(back.high - back.value, rel=1e-9)
    monkeypatch.setattr(asking, "MOST_SUMMED", 0)
    monkeypatch.setattr(spread, "DRAWS", 40_000)
    drawn = release.total("emp", by="county5", complete=True)
    assert drawn.method.endswith("interval by draws of the noise law")
    # Of 40,000 draws from a public seed the order statistic has a standard error of .6 %; half a step is left to the lattice.
    assert drawn.highs - drawn.values == pytest.approx(totals.highs - totals.values, rel=0.03, abs=0.5)


def test_arguments_of_another_kind_are_refused_by_name_and_those_of_numpy_are_read(opened, tmp_path) -> None:
    asked = rw.query().group_by("county", keys=COUNTIES).sum("emp", rw.Gaussian(sigma=5), alias="sum_emp")
    found = rw.read(opened.run(asked).save(tmp_path / "out", formats=["parquet"]))
    total = found.total("sum_emp", nonnegative=np.True_, query=np.int64(1))
    assert (total.values >= 0).all()
    for wrong in ("1", True):
        with pytest.raises(ParameterError, match=r"query must be the number of a query, not (str|bool)"):
            found.total("sum_emp", query=wrong)
    ranks = found.total("sum_emp", by="county").rank()
    with pytest.raises(ParameterError, match="count must be a whole number, not str"):
        ranks.top("x")
    drawn = found.total("sum_emp", by="county").replicates(20)
    with pytest.raises(ParameterError, match="path must be the path of a new file, not int"):
        drawn.save(5)
    (tmp_path / "file").write_text("x")
    for ending in ("csv", "parquet"):
        with pytest.raises(OutputError, match=f"r.{ending} cannot be written"):
            drawn.save(tmp_path / "file" / f"r.{ending}")
