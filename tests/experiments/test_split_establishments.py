"""The establishments and tables behind figures 3 to 5."""

import numpy as np
import pytest

import recordwise as rw
from experiments import establishments
from experiments.establishments_schemes import SPLITTING, share, split_policy
from experiments.establishments_tables import DIGITS, OUTSIDE, tables
from experiments.frame import data_folder
from small_establishments import LEAST, small_records, small_session, small_table, small_tables


def frame():
    made = small_table().to_pandas()
    made["county"], made["naics"] = made["county"].astype(str), made["naics"].astype(str)
    return made


@pytest.mark.parametrize("digits", DIGITS)
@pytest.mark.costly
def test_the_totals_of_every_level_are_those_of_a_plain_group_by(digits):
    (level,) = [each for each in small_tables().levels if each.digits == digits]
    data = frame()
    groups = data.groupby(["county", data["naics"].str[:digits]], observed=True)
    found = groups.agg(
        estab=("estab_id", "size"),
        emp=("emp", "sum"),
        payann=("payann", "sum"),
        payqtr1=("payqtr1", "sum"),
    )
    asked = found[found["estab"] >= LEAST].sort_index()
    assert level.queries == len(asked) > 50
    for name, totals in level.totals.items():
        assert totals.tolist() == asked[name].tolist()


def test_clamped_totals_are_sums_of_clamped_values():
    level = small_tables().levels[1]
    values = small_records().measures["emp"]
    expected = [int(np.minimum(values[level.query == number], 30).sum()) for number in range(level.queries)]
    assert level.clamped_totals(values, 30).tolist() == expected


def test_a_record_outside_every_query_has_no_query():
    level = small_tables().levels[-1]
    inside = level.query != OUTSIDE
    assert np.bincount(level.query[inside]).tolist() == level.totals["estab"].tolist()
    assert not inside.all()


def test_the_session_finds_the_same_totals():
    """The exact tables against a release with hardly any noise: sigma 0.01 leaves whole numbers alone."""
    level = small_tables().levels[0]
    data = frame()
    data["naics2"] = data["naics"].str[:2]
    keys = data.groupby(["county", "naics2"]).size()
    keys = keys[keys >= LEAST].reset_index()[["county", "naics2"]]
    asked = rw.query().group_by("county", rw.prefix("naics", 2), keys=rw.Keys.of(keys))
    quiet = rw.Gaussian(sigma="0.01")
    asked = asked.sum("payann", quiet).count(quiet)
    with small_session(max_outside="accept") as session:
        made = session.run(asked, rng=rw.noise.Seeded(1)).to_pandas().sort_values(["county", "naics2"])
    assert made["sum_payann"].tolist() == level.totals["payann"].tolist()
    assert made["count"].tolist() == level.totals["estab"].tolist()


def test_a_record_of_one_piece_pays_the_budget_and_a_larger_one_by_its_pieces():
    policy = split_policy("Moderate", 1, tight=False)
    small, large = {"emp": 5, "payann": 500, "payqtr1": 125}, {"emp": 4, "payann": 1001, "payqtr1": 1}
    assert policy.loss(small) == pytest.approx(1.0, rel=1e-9)
    assert policy.loss(large) == pytest.approx(0.25 + 0.75 * 9, rel=1e-9)


def test_the_tight_policy_is_what_the_noise_of_every_table_costs():
    record = {"emp": 7, "payann": 1001, "payqtr1": 60}
    at, part = SPLITTING["Moderate"], share(1)
    sums = sum(rw.UnitSplit(at=at[name], rho=part).loss_at_shift(value) for name, value in record.items())
    expected = 5 * (sums + rw.Gaussian(rho=part).loss_at_shift(1))
    assert split_policy("Moderate", 1, tight=True).loss(record) == pytest.approx(expected, rel=1e-9)


def test_records_are_sorted_whatever_their_order():
    table = small_table()
    shuffled = table.take(np.random.default_rng(1).permutation(len(table)))
    again = tables(establishments.sorted_records(shuffled), least=LEAST)
    for level, other in zip(small_tables().levels, again.levels):
        assert {name: totals.tolist() for name, totals in level.totals.items()} == {
            name: totals.tolist() for name, totals in other.totals.items()
        }


@pytest.mark.slow
@pytest.mark.skipif(data_folder(establishments.FILE) is None, reason="the county tables are not in the data folder")
def test_the_real_establishments_have_the_papers_percentiles():
    """Golden: the paper's percentiles, printed to whole percents; ours differ by at most 2.5 points."""
    for row in establishments.records().percentiles():
        assert abs(row["ours"] - row["paper"]) < 0.025
