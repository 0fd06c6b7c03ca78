"""Bands of public cells in policies: the same band in every evaluator, and dominance over the bands that occur (T-SIZE)."""

import json
from fractions import Fraction
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
import quickjs
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp

from recordwise.engines.compile.owner import lent_bands, with_bands
from recordwise.errors import UnknownFormError
from recordwise.policy import ConditionColumn, Policy, among, constant, gaussian_sum, laplace_sum
from recordwise.policy.bands import BandTable, unpack
from recordwise.policy.columns import Measure, literal
from recordwise.policy.conditions import EVERY, NONE, both, complement, either, in_band
from recordwise.policy.dominance.regions import MOST_LISTED, MOST_REGIONS, combinations
from recordwise.policy.render.text import sizes_of_cells

ATOB = """var atob = text => {
  const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  let out = "", held = 0, bits = 0;
  for (const letter of text) {
    if (letter === "=") break;
    held = (held << 6 | letters.indexOf(letter)) & 0xffff; bits += 6;
    if (bits >= 8) { bits -= 8; out += String.fromCharCode(held >> bits & 255); }
  }
  return out;
};"""
"""What every browser has and the interpreter of these tests has not."""
EDGES = (Fraction(100), Fraction(200), Fraction(400))


def table_of(
    cells: dict[tuple[Any, ...], int], *columns: ConditionColumn, edges: tuple[Fraction, ...] = EDGES
) -> BandTable:
    coded = []
    for at in range(len(columns)):
        values = list(dict.fromkeys(cell[at] for cell in cells))
        coded.append((values, np.array([values.index(cell[at]) for cell in cells], np.int64)))
    return BandTable.of(columns, edges, coded, np.array(list(cells.values()), np.int64))


COUNTY, SECTOR, INDUSTRY = ConditionColumn("county"), ConditionColumn("naics", 2), ConditionColumn("naics", 3)
BANDS = table_of({("001", "11"): 0, ("001", "44"): 2, ("003", "44"): 1, (None, "11"): 2}, COUNTY, SECTOR)


def sized(table: BandTable, kappa: Fraction = Fraction(1, 10)) -> Policy:
    parts = [
        gaussian_sum("emp", sigma=kappa * edge).where(in_band(table, [band])) for band, edge in enumerate(table.edges)
    ]
    return sum(parts, Policy())


RECORDS: dict[str, Any] = {
    "emp": [10, 10, 10, 10, 10, 7],
    "county": ["001", "001", "003", None, "005", "001"],
    "naics": ["1121", "44", "4451", "11", "44", "99"],
}
SIGMAS = [10, 40, 20, 40, 10, 10]
"""Unlisted cells are in the lowest band."""


def expected() -> list[float]:
    return [emp**2 / (2 * sigma**2) for emp, sigma in zip(RECORDS["emp"], SIGMAS)]


def test_a_record_pays_by_the_band_of_its_cell_and_by_the_lowest_one_where_it_is_not_listed() -> None:
    policy = sized(BANDS)
    one_by_one = [policy.loss({name: RECORDS[name][row] for name in RECORDS}) for row in range(6)]
    assert np.allclose(one_by_one, expected(), rtol=1e-14)
    assert np.allclose(policy.loss(RECORDS), expected(), rtol=1e-14)
    assert np.allclose(policy.loss(pa.table(RECORDS)), expected(), rtol=1e-14)


def test_javascript_and_sql_find_the_same_band() -> None:
    policy = sized(BANDS)
    context = quickjs.Context()
    context.eval(ATOB)
    context.eval(f"var f = {policy.to_javascript()}")
    records = [{name: RECORDS[name][row] for name in RECORDS} for row in range(6)]
    assert np.allclose([context.eval(f"f({json.dumps(each)}).rho") for each in records], expected(), rtol=1e-12)
    connection = duckdb.connect()
    connection.register("records", pa.table(RECORDS))
    for name, rows in lent_bands(BANDS).items():
        connection.register(name, rows)
    banded = with_bands(exp.select("records.*").from_("records"), [BANDS]).sql("duckdb")
    found = connection.sql(f"SELECT {policy.to_sql()} FROM ({banded})").fetchall()
    assert sorted(loss for (loss,) in found) == pytest.approx(sorted(expected()), rel=1e-12)


def test_numbers_and_truth_values_are_told_apart_in_cells() -> None:
    table = table_of({(1, True): 1, (2, False): 2}, ConditionColumn("year"), ConditionColumn("open"))
    policy = sized(table)
    held = {"emp": [10, 10, 10], "year": [1, 2, 1], "open": [True, False, False]}
    assert np.allclose(policy.loss(held), [100 / 800, 100 / 3200, 100 / 200])
    assert policy.loss({"emp": 10, "year": 1, "open": True}) == 0.125


def test_bands_are_a_partition() -> None:
    low, high = in_band(BANDS, [0]), in_band(BANDS, [1, 2])
    assert complement(low) == high
    assert both(low, high) == NONE
    assert either(low, high) == EVERY
    assert both(high, in_band(BANDS, [0, 1])) == in_band(BANDS, [1])
    assert in_band(BANDS, range(3)) == EVERY
    assert in_band(BANDS, []) == NONE


def test_formulas_and_words_name_the_sizes_of_a_band() -> None:
    text, latex = sized(BANDS).in_words(), sized(BANDS).to_latex()
    assert "0.005 times the square of 'emp', only for records where the public size of its cell" in text
    assert "is below 200 or not listed, and less in larger cells, down in 2 steps to 0.0003125 times" in text
    assert "the square of 'emp' where it is at least 400." in text
    assert "from 200" not in text
    assert r"s(\mathrm{county}, \mathrm{naics}_{1..2}) \in [200, 400)" in latex


def test_bands_of_levels_that_records_do_not_hold_are_named_by_them_and_equal_all_the_same() -> None:
    named = BandTable(BANDS.columns, BANDS.edges, BANDS.values, BANDS.places, BANDS.bands, ("state", "branch"))
    assert named == BANDS
    assert BandTable.from_json(named.to_json()).level == ("state", "branch")
    assert BandTable.from_json(BANDS.to_json()).level == ()
    assert "level" not in BANDS.to_json()
    assert "its cell ('state' and 'branch', found by 'county' and " in sized(named).in_words()
    (size,) = sizes_of_cells(sized(named), {"state": "State"})
    assert size.about == "emp by State and branch"
    (plain,) = sizes_of_cells(sized(BANDS))
    assert plain.about == "emp by county and the first 2 characters of naics"


def test_bands_that_do_not_cost_less_and_less_are_named_one_by_one() -> None:
    sigmas = (20, 10, 40)
    parts = [gaussian_sum("emp", sigma=sigma).where(in_band(BANDS, [band])) for band, sigma in enumerate(sigmas)]
    text = sum(parts, Policy()).in_words()
    assert text.count("only for records where") == 2
    assert "is below 200 or not listed;" in text
    assert "is from 200 to below 400, and less in larger cells, down to 0.0003125 times" in text
    mixed = gaussian_sum("emp", sigma=10).where(in_band(BANDS, [0])) + gaussian_sum("pay", sigma=20).where(
        in_band(BANDS, [1])
    )
    assert "less in larger cells" not in mixed.in_words()


def test_a_saved_policy_names_its_table_and_is_not_read_without_it() -> None:
    policy = sized(BANDS)
    form = json.loads(json.dumps(policy.to_json()))
    assert BANDS.digest in json.dumps(form)
    assert "001" not in json.dumps(form)
    assert Policy.from_json(form, policy.bands()) == policy
    with pytest.raises(UnknownFormError, match="band table"):
        Policy.from_json(form)


@settings(max_examples=60, deadline=None)
@given(
    st.dictionaries(st.tuples(st.integers(0, 400), st.integers(-3, 400)), st.integers(0, 2), min_size=1, max_size=60)
)
def test_tables_survive_packing(cells: dict[tuple[int, int], int]) -> None:
    table = table_of(cells, ConditionColumn("a"), ConditionColumn("b"))
    read = BandTable.from_json(json.loads(json.dumps(table.to_json())))
    assert read == table
    assert np.array_equal(read.places, table.places)
    assert np.array_equal(read.bands, table.bands)
    assert all(table.band_of({"a": literal(a), "b": literal(b)}) == band for (a, b), band in cells.items())


@pytest.mark.costly
def test_long_gaps_are_packed_in_several_bytes() -> None:
    places, bands = np.array([0, 6, 7, 15, 40_000, 40_001, 9_000_000_000]), np.array([0, 1, 2, 0, 1, 2, 0])
    wide = tuple(tuple(map(Fraction, range(100_000))) for _ in range(2))
    table = BandTable((ConditionColumn("a"), ConditionColumn("b")), EDGES, wide, places, bands)
    found_bands, found_places = unpack(*table.pack())
    assert np.array_equal(found_places, places)
    assert np.array_equal(found_bands, bands)


@pytest.mark.parametrize("change", ["cells", "edges", "values"])
def test_a_changed_table_is_refused(change: str) -> None:
    form = BANDS.to_json()
    other = table_of(
        {("001", "11"): 1, ("001", "44"): 2}, COUNTY, SECTOR, edges=(Fraction(1), Fraction(2), Fraction(3))
    )
    form[change] = other.to_json()[change]
    with pytest.raises(UnknownFormError):
        BandTable.from_json(form)


def test_a_budget_in_the_same_bands_covers_and_a_smaller_one_does_not() -> None:
    policy = sized(BANDS)
    assert (2 * policy).dominates(2 * policy)
    assert (policy * 2).dominates(policy)
    verdict = policy.dominates(policy * 2)
    assert verdict.answer == "no"
    assert verdict.witness is not None
    # The witness is a record: its own columns, not a band that somebody claims, decide.
    record = {"county": None, "naics": None} | verdict.witness
    assert (2 * policy).loss(record) > policy.loss(record)


FINE = table_of({("001", "1111"): 0, ("001", "4411"): 2, ("003", "4421"): 1}, COUNTY, ConditionColumn("naics", 4))
COARSE = table_of({("001", "11"): 1, ("001", "44"): 2, ("003", "44"): 1}, COUNTY, SECTOR)


def test_only_combinations_of_bands_that_occur_are_compared() -> None:
    """No cell is in band 2 of the fine table and in band 0 of the coarse one: a budget need not cover that."""
    never = both(in_band(FINE, [2]), in_band(COARSE, [0, 1]))
    assert constant(1).dominates(constant(1) + constant(1).where(never))
    occurs = both(in_band(FINE, [2]), in_band(COARSE, [2]))
    refused = constant(1).dominates(constant(1) + constant(1).where(occurs))
    assert refused.answer == "no"
    assert refused.witness is not None
    assert (refused.witness["county"], refused.witness["naics"]) == ("001", "4411")


def test_a_record_that_only_the_coarse_table_lists_is_a_combination_too() -> None:
    beside = both(in_band(FINE, [0]), in_band(COARSE, [2]))
    refused = constant(1).dominates(constant(1) + constant(1).where(beside))
    assert refused.answer == "no"
    assert refused.witness is not None
    assert str(refused.witness["naics"]).startswith("44")


def test_tables_that_cross_are_compared_by_the_combinations_that_occur() -> None:
    """Counties by sector and states by industry: neither determines the other, and not all of their bands occur together."""
    by_county = table_of({("001", "11"): 1, ("001", "44"): 2, ("103", "44"): 1}, COUNTY, SECTOR)
    by_state = table_of({("0", "111"): 1, ("0", "441"): 2, ("1", "441"): 1}, ConditionColumn("county", 1), INDUSTRY)
    listed = [*("001", "103", "002", "102", "•"), None]
    codes = [*("111", "119", "441", "449", "55", "•"), None]
    records = [{"county": county, "naics": code} for county in listed for code in codes]
    occurring = {(by_county.band_of(each), by_state.band_of(each)) for each in records}
    assert 4 < len(occurring) < 9
    for one in range(3):
        for two in range(3):
            together = both(in_band(by_county, [one]), in_band(by_state, [two]))
            verdict = constant(1).dominates(constant(1) + constant(1).where(together))
            assert (verdict.answer == "no") == ((one, two) in occurring), (one, two)
            if verdict.answer == "no":
                assert by_county.band_of(verdict.witness) == one
                assert by_state.band_of(verdict.witness) == two


def test_records_that_no_table_lists_are_compared_where_every_listed_combination_is_in_a_higher_band() -> None:
    by_county = table_of({("001", "11"): 1, ("001", "44"): 1}, COUNTY, ConditionColumn("naics"))
    by_form = table_of({("11", "x"): 1, ("44", "x"): 1}, ConditionColumn("naics"), ConditionColumn("form"))
    for one in range(2):
        for two in range(2):
            together = both(in_band(by_county, [one]), in_band(by_form, [two]))
            verdict = constant(1).dominates(constant(1) + constant(1).where(together))
            assert verdict.answer == "no"
            assert (by_county.band_of(verdict.witness), by_form.band_of(verdict.witness)) == (one, two)


def test_a_list_of_combinations_that_is_cut_is_not_taken_for_a_proof() -> None:
    """18^4 combinations, more than are listed or compared: the budget fails in the last one only, which is not on the list."""
    edges = tuple(Fraction(100 * 2**at) for at in range(17))
    tables = [
        table_of({(f"{at:02}",): at for at in range(17)}, ConditionColumn(name), edges=edges)
        for name in ("county", "naics", "size", "form")
    ]
    assert len(combinations(tables)) == MOST_LISTED < 18**4
    assert MOST_LISTED > MOST_REGIONS
    last = both(
        both(in_band(tables[0], [16]), in_band(tables[1], [16])), both(*(in_band(each, [16]) for each in tables[2:]))
    )
    verdict = constant(1).dominates(constant(1) + constant(1).where(last))
    assert verdict.answer == "undecided"
    assert f"more than {MOST_REGIONS:,} combinations of groups, too many to compare one by one" in verdict.reason


@pytest.mark.theorem("T-COVER")
def test_laplace_noise_in_many_bands_is_within_that_of_the_smallest_scale_and_not_within_less() -> None:
    """Three tables of 17 bands: too many combinations to compare, and a record is in one band of each table."""
    edges = tuple(Fraction(50 * 2**at) for at in range(17))
    policy, shares = Policy(), (Fraction(1, 2), Fraction(1, 4), Fraction(1, 4))
    for name, share in zip(("county", "naics", "size"), shares):
        table = table_of({(f"{at:02}",): at for at in range(17)}, ConditionColumn(name), edges=edges)
        for band, edge in enumerate(edges):
            scale = edge / 10 / share
            # As drawn: the step of the data is halved until a scale has a thousand steps, so lattices differ by band.
            grid = Fraction(1)
            while scale < 1000 * grid:
                grid /= 2
            policy += laplace_sum("emp", scale=scale, grid=grid).where(in_band(table, [band]))
    assert laplace_sum("emp", scale=5, grid=Fraction(1, 128)).dominates(policy)
    assert not laplace_sum("emp", scale="5.01", grid=Fraction(1, 128)).dominates(policy)


def test_bands_combine_with_conditions_on_their_own_columns() -> None:
    policy = sized(BANDS).where(among("county", ["001"]))
    assert sized(BANDS).dominates(policy)
    assert not policy.dominates(sized(BANDS))


def test_bands_and_derived_measures_are_refuted_by_records_and_doubted_for_the_right_reason() -> None:
    emp, pay = Measure("emp"), Measure("payann")
    rest = Measure("rest", signed=True, derived=((emp, Fraction(-45)), (pay, Fraction(1))))
    policy = sized(BANDS) + gaussian_sum(rest, sigma=1000)
    assert policy.dominates(policy)
    verdict = policy.dominates(policy + gaussian_sum(rest, sigma=1000))
    assert verdict.answer == "no"
    assert verdict.witness is not None
    assert set(verdict.witness) <= {"emp", "payann", "county", "naics"}
    # It holds for every record, but is not proved: a derived measure may take any value in a proof.
    ample = sized(BANDS) * 2 + gaussian_sum(emp, sigma=1) + gaussian_sum(pay, sigma=1)
    doubt = ample.dominates(policy)
    assert doubt.answer == "undecided"
    assert "the same derived measures" in doubt.reason
