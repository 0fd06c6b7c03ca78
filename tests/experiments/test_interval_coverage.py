"""How often the published intervals hold, through whole releases, by size of cell and mechanism."""

import re
from dataclasses import replace

import pyarrow as pa
import pytest
from scipy import stats

from experiments.coverage import changed, counted, fitted, plain, run
from experiments.coverage.chosen import COUNTS, SIGNED, SUMS
from experiments.coverage.lines import SIZES, Line, Tally
from experiments.coverage.page import GROUPS, NUMBERS, PAGE, file_text, read_numbers, stated, text
from experiments.coverage.reasons import CUT, NO_LESS, STEPS, reason
from recordwise.mechanisms.registry import BUILT_IN
from recordwise.plan.plan import ENDINGS
from recordwise.plan.statistics import KINDS
from recordwise.release.dictionary import ENDS

LINE = Line(
    column="sum",
    mechanism="Gaussian, sigma 30",
    size=100,
    level=0.95,
    cells=200_000,
    held=190_400,
    inside=190_000,
    empty=0,
)
FEW = ("Gaussian, sigma 1", "Gaussian, sigma 30", "GeneralizedGaussian, shape 1/2", "LogTransform, offset 10, sigma .2")
FEWER = ("Gaussian, sigma 30", "LogTransform, offset 10, sigma .2")


def quiet(doing):
    pass


def kept():
    """The numbers of the file, by what was measured."""
    return {each.key: each for each in read_numbers(NUMBERS.read_text(encoding="utf-8"))}


def wrong_claims(lines):
    return {claim.statement: claim.why for claim in run.claims(lines) if claim.agrees is not True}


@pytest.fixture(scope="module")
def small():
    """One small release of each kind, of few mechanisms: lines of 4 to 500 cells, with a fixed seed."""
    tally = Tally()
    plain.sums(tally, 500, 1, names=FEW)
    plain.forms(tally, 100, 2)
    counted.all_sizes(tally, 200, 3, sizes=(0, 10))
    changed.sums(tally, 500, 4, names=FEW)
    changed.added(tally, 200, 5)
    fitted.trees(tally, 12, 6, method="ols", names=FEWER)
    fitted.trees(tally, 4, 7, method="top_down", names=FEWER[:1])
    return tally


@pytest.mark.costly
def test_a_few_columns_of_every_kind_hold_as_often_as_they_should(small):
    """The claims' own false-alarm rate is 1e-9 for each line and side, and the seed is fixed."""
    assert small.unmeasured == []
    assert wrong_claims(small.pooled()) == {}


def test_every_kind_of_interval_column_is_measured(small):
    """What stands between a variable and ``_low`` is listed where the data dictionary is made, or belongs to a change."""
    listed = {end.removesuffix("_low") for end in ENDS if end.endswith("_low")}
    assert listed == {end.removesuffix("_low") for end in ENDINGS if end.endswith("_low")}
    assert small.endings == listed | {"_change", "_percent"}
    assert small.statistics == {kind.__name__ for kind in KINDS}


def test_every_mechanism_is_measured():
    measured = {type(part).__name__ for each in (SUMS | COUNTS | SIGNED).values() for part in (each, *each.inside())}
    # Under ByGroup each cell has the interval of one of the others.
    assert measured | {"TreeQuantile", "ByGroup"} == set(BUILT_IN)


def test_a_published_interval_column_without_a_line_is_an_error(monkeypatch):
    def careless(tally, runs, seed):
        data = pa.table({"cell": [1], "emp": [2.0], "emp_new_low": [1.0], "emp_new_high": [3.0]})
        tally.saw_table("careless", data, ["emp"])

    monkeypatch.setattr(run, "PARTS", {"careless": careless})
    with pytest.raises(AssertionError, match="emp_new"):
        run.measured(runs=1, seed=1, tell=quiet)


def test_the_page_has_the_lines_of_the_harness_and_every_number_is_inside_or_has_a_reason(small):
    """The page is in step: its rows are those that are measured, and its marks are those of today's reasons."""
    page = kept()
    assert {(line.column, line.mechanism, line.level, line.size) for line in small.pooled()} <= set(page)
    for each in page.values():
        above = each.share - each.level
        assert above >= -3 * each.standard_error - 1e-4  # as the page says of all
        assert above <= run.ABOVE + 3 * each.standard_error + 1e-4 or each.mark
        if each.mark:
            own = {"column": each.column, "mechanism": each.mechanism, "level": each.level, "size": each.size}
            line = replace(LINE, **own, held=200_000, inside=0)
            found = {reason(any_) for any_ in (line, replace(line, inside=200_000))} - {None}
            assert each.mark in {any_.mark for any_ in found}


def test_the_page_summarizes_the_numbers_of_the_file():
    page = PAGE.read_text(encoding="utf-8")
    cells = int(re.findall(r"([0-9,]+) cells each", page)[0].replace(",", ""))
    assert page == text(list(kept().values()), cells)


def test_the_page_agrees_with_what_is_measured_now(small):
    """At a false-alarm rate of 1e-9 for each line; the seed is fixed."""
    page = kept()
    off = [line for line in small.pooled() if differs(line, page[line.column, line.mechanism, line.level, line.size])]
    assert [(line.column, line.mechanism, line.size, line.coverage) for line in off] == []


def differs(line, number):
    """Whether a measured share is not that of the file, whose own cells follow from its standard error."""
    share, error = number.share, number.standard_error
    cells = round(share * (1 - share) / error**2) if error else 10_000
    both = [[line.held, line.cells - line.held], [round(share * cells), cells - round(share * cells)]]
    return min(map(sum, zip(*both))) > 0 and float(stats.fisher_exact(both)[1]) < run.FALSE_ALARM


def test_a_line_that_is_not_that_of_the_page_is_noticed():
    (number,) = stated([replace(LINE, cells=10_000, held=9_520)])
    assert not differs(LINE, number)
    assert differs(replace(LINE, cells=2000, held=1780), number)


def test_a_column_a_third_of_a_point_short_and_one_two_and_a_half_points_wide_are_reported():
    assert wrong_claims([LINE]) == {}
    assert run.claims([replace(LINE, held=189_300)])[0].agrees is False
    assert run.claims([replace(LINE, held=195_000, inside=194_000)])[1].agrees is False
    assert run.claims([replace(LINE, empty=4_000, held=186_000)])[0].agrees is False


def test_whole_numbers_excuse_a_wide_interval_only_where_a_shorter_one_would_fall_short():
    whole = replace(LINE, mechanism="Gaussian, sigma 1", held=198_200, inside=174_000)
    assert reason(whole) == STEPS
    assert wrong_claims([whole]) == {}
    assert reason(replace(whole, inside=192_000)) is None
    assert run.claims([replace(whole, inside=192_000)])[1].agrees is False


def test_a_reason_covers_one_side_and_no_more_than_it_says():
    cut = replace(LINE, mechanism="LogTransform, offset 10, sigma .2", size=0, held=195_000)
    assert reason(cut) == CUT
    assert wrong_claims([cut]) == {}
    assert run.claims([replace(cut, held=199_900)])[1].agrees is False
    assert run.claims([replace(cut, held=180_000)])[0].agrees is False
    fit = replace(LINE, column="fit (top_down), coarsest, complete keys", held=199_990)
    assert reason(fit) == NO_LESS
    assert wrong_claims([fit]) == {}
    assert run.claims([replace(fit, held=188_000)])[0].agrees is False


def test_the_page_shows_a_number_its_error_and_why_it_is_outside():
    wide = replace(LINE, size=1, mechanism="Gaussian, sigma 1", held=198_000, inside=174_000)
    numbers = stated([LINE, wide])
    page = text(numbers)
    assert "| sum | 0.95 | 2 | 0.952±0.001 | 0.990±0.000 | 1w |" in page
    assert "- **w**: whole numbers" in page
    assert '\nsum,"Gaussian, sigma 1",0.95,1,0.9900,0.0002,w\n' in file_text(numbers)
    assert read_numbers(file_text(numbers)) == numbers
    columns = [replace(LINE, column=f"best, {place}, complete keys") for place in ("coarsest", "finest among equals")]
    columns += [replace(LINE, column=f"best, crossed, {way}") for way in ("formula", "drawn")]
    assert re.findall(r"^\| (best.*?) \| 0.95 \| (\d)", text(stated(columns)), re.MULTILINE) == [
        ("best, complete keys", "2"),
        ("best, crossed", "2"),
    ]
    assert set(GROUPS) >= {"Sums", "Changes", "Nonnegative fits"}
    assert len(SIZES) == 6


@pytest.mark.slow
def test_every_interval_column_holds_as_often_as_it_should_and_as_the_page_says():
    """All lines with noise other than the page's: 1e-9 for each of three tests of some 2,500 lines, 8e-6 together."""
    tally = Tally()
    lines = run.measured(runs=run.RUNS // 2, seed=7, tell=quiet, tally=tally)
    assert wrong_claims(lines) == {}
    # Under ByGroup each cell has the interval of one of the others.
    assert tally.mechanisms | {"ByGroup"} >= set(BUILT_IN)
    page = kept()
    assert {(line.column, line.mechanism, line.level, line.size) for line in lines} == set(page)
    off = [line for line in lines if differs(line, page[line.column, line.mechanism, line.level, line.size])]
    assert [(line.column, line.mechanism, line.size, line.coverage) for line in off] == []
