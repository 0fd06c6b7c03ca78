"""Every problem at once, each on its line."""

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plan.whole_plan import WHOLE, changed, line_of
from recordwise.errors import PlanFileError
from recordwise.plan.file import load_plan


@pytest.fixture
def problems(tmp_path):
    def found(text):
        (tmp_path / "plan.toml").write_text(text)
        with pytest.raises(PlanFileError) as refused:
            load_plan(tmp_path / "plan.toml")
        return list(refused.value.problems)

    return found


ONE = [
    ("[schema]", 'labels.empl = "employees"\n[schema]', "is not a measure, a column or a published name"),
    ("[schema]", "labels.emp = 7\n[schema]", "must be text"),
    ('dataset = "establishments"', "dataset = 7", "must be text, not a number"),
    ('dataset = "establishments"', 'dataset = ""', "must not be empty"),
    ('tuned_on = "synthetic"', 'tuned_on = "syntetic"', "did you mean 'synthetic'?"),
    ('tuned_on = "synthetic"', 'tuned_on = "confidential"', "tuning_reason"),
    ("[schema]", 'ledgr = "x"\n[schema]', "did you mean 'ledger'?"),
    ('unit = "estab_id"', "unit = 1979-05-27", "must be text, not a date"),
    ("measures.emp = 1", "measures.emp = 0", "must be above 0"),
    ("bound = 50_000_000", "bond = 50_000_000", "did you mean 'bound'?"),
    ('columns.county = "text"', 'columns.county = "string"', "choose from text, integer, boolean"),
    ('null = "refuse"', 'null = "drop"', "choose from refuse, category"),
    ("rho = 3", "rho = -3", "must be above 0"),
    ("rho = 3", "rho = 3\nsigma = 2", "is not recognized here"),
    ("at = { emp = 20, payann = 1000 }", "at = { emp = 20, pay = 1000 }", "did you mean 'payann'?"),
    (
        'small = { kind = "Gaussian", rho = 0.05 }',
        'small = { kind = "Gausian", rho = 0.05 }',
        "did you mean 'Gaussian'?",
    ),
    ('small = { kind = "Gaussian", rho = 0.05 }', "small = { rho = 0.05 }", "'kind' is missing"),
    ('small = { kind = "Gaussian", rho = 0.05 }', 'small = { kind = "Gaussian" }', "Give exactly one of"),
    ('naics = ["441110", "722511"] }', 'naics = ["441110", 7] }', "mixes types"),
    ('where = "emp < 5000"', 'where = "emp < (SELECT 1)"', "SUBQUERY"),
    ('where = "emp < 5000"', 'where = "employees < 5000"', "'employees' is used in a condition"),
    ('group_by = ["county", {', 'group_by = ["country", {', "'country' is a group"),
    ("length = 3", "length = 0", "whole number from 1"),
    ("length = 3", "lenght = 3", "did you mean 'length'?"),
    ('keys = "areas"', 'keys = "area"', "did you mean 'areas'?"),
    ('count = "small"', 'count = "smal"', "did you mean 'small'?"),
    ("sum.emp = { kind", "sum.employees = { kind", "is summed but is not a measure"),
    ("at = 50, rho = 0.1", "rho = 0.1", "'at' is missing"),
    ("at = 50, rho = 0.1", 'at = 50, rho = "a lot"', "is not a number"),
    ("at = 50, rho = 0.1", 'at = { by = "nics", values = { a = 1 } }, rho = 0.1', "did you mean 'naics'?"),
    (
        "at = 50, rho = 0.1",
        'at = { by = "size", values = { a = 1 } }, rho = 0.1',
        "not a value of a column of type integer",
    ),
    ("at = 50, rho = 0.1", "at = 50.5, rho = 0.1", "multiple of the step"),
    ("offset = 2000, sigma = 0.5", "offset = 2000", "Give exactly one of"),
    (
        "offset = 2000, sigma = 0.5",
        'offset = 2000, rho = 1, at = 5, noise = "cauchy"',
        "choose from gaussian, laplace",
    ),
    ("count_distinct.firm_id", "count_distinct.county", "only for the unit id and the firm id"),
    ("SELECT county, COUNT(*) AS n", "SELECT county, STDDEV(emp) AS n", "STDDEV"),
    ('count = "small"', "avg.emp = { count = 3 }", "'sum' is missing"),
    ('count = "small"', 'avg.emp = { sum = "small" }', ""),
    ('count = "small"', "quantile.emp = { p = 0.5, rho = 0.1 }", "'grid' is missing"),
    (
        'count = "small"',
        "quantile.emp = { p = 0.5, rho = 1, grid = { root = [1, 9] } }",
        "choose from log, linear, bits",
    ),
    (
        'count = "small"',
        "quantile.emp = { p = 5, rho = 1, grid = { log = [1, 9] } }",
        "between 0 and 1",
    ),
    (
        'product = { county = ["06001", "06003"], naics',
        'selct = { rho = 1 }\nproduct = { county = ["06001", "06003"], naics',
        "did you mean 'select'?",
    ),
    ("rho = 3", "select = { rho = 0.1, pieces = { emp = 50 } }", "'delta' is missing"),
    ("SELECT county, COUNT(*) AS n", "SELECT county, COUNT(*) AS m", "no mechanism for 'm'"),
    ('county = ["06001", "06003"] } }', 'county = ["06001", "06001"] } }', "twice"),
    ('county = ["06001", "06003"] } }', 'state = ["06001", "06003"] } }', "no public keys for county"),
    ('formats = ["parquet"]', 'csv = "no"', "must be true or false, not text"),
    ('formats = ["parquet"]', "formats = [1]", "must be text, not a number"),
    (
        'formats = ["parquet"]',
        'formats = ["parquet"]\ncsv = true',
        "is replaced by formats, which is also given; remove csv",
    ),
    ("confidence = 0.9", "confidence = 95", "must lie between 0 and 1"),
    ("emp = 4, payann = 140", "employees = 4", "choose from emp, payann"),
]


@pytest.mark.parametrize(("old", "new", "words"), ONE)
def test_one_mistake_is_one_problem_on_its_line(problems, old, new, words):
    text = changed(old, new)
    found = problems(text)
    changed_lines = {
        number
        for number, line in enumerate(text.splitlines(), 1)
        if line not in WHOLE.splitlines() and any(part in line for part in new.splitlines())
    }
    assert changed_lines
    assert {each.line for each in found} == changed_lines
    assert any(words in each.text for each in found)


def test_a_problem_that_several_parts_have_is_told_once_at_the_last_of_them(problems):
    text = changed('where = "emp < 5000"', "where = \"left(size, 2) = 'a'\"")
    text = text.replace("at = 50, rho", 'at = { by = "size", length = 2, values = { 1 = 20 } }, rho')
    (only,) = problems(text)
    assert (only.place, only.line) == ("queries[1].where", line_of(text, "where = "))
    assert only.text == "a prefix of 'size' needs a column of type text"


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        ('keys = "areas"\n', "", "queries[1]"),
        ('keys = "areas"', 'keys = { rows = { county = ["06001"] } }', "queries[1].keys"),
        ('count = "small"', 'sum.pay = ["small", { mechanism = "small", as = "pay" }]', "queries[1].sum.pay[2]"),
        ('group_by = ["county"', 'levels = { by = ["nope"] }\ngroup_by = ["nope"', "queries[1].levels"),
        ("SELECT county, COUNT(*) AS n", "SELECT size AS county, COUNT(*) AS n", "queries[2].sql"),
        ('as = "firms"', 'as = "county"', "queries[1]"),
    ],
)
def test_a_problem_of_a_query_is_told_where_its_part_stands(problems, old, new, place):
    assert place in {each.place for each in problems(changed(old, new))}


def test_all_problems_are_told_at_once(problems):
    text = WHOLE
    wrong = [(old, new) for old, new, _ in ONE if old in text]
    lines = 0
    for old, new in wrong:
        if old in text and "\n" not in new and "{ kind" not in old:
            text = text.replace(old, new)
            lines += 1
    found = problems(text)
    assert lines > 15
    assert len({each.line for each in found}) > 12
    assert [each.line for each in found] == sorted(each.line for each in found)


def test_a_missing_part_is_named(problems):
    texts = [each.text for each in problems("[schema]\nunit = 'id'\n")]
    assert texts == [f"'{name}' is missing" for name in ("dataset", "ledger", "queries", "source", "tuned_on")]


def test_invalid_toml_is_told_with_its_line(problems):
    text = changed('firm = "firm_id"', 'firm = "firm_id')
    (only,) = problems(text)
    assert only.line == line_of(text, 'firm = "firm_id')
    assert "not valid TOML" in only.text


def test_files_that_are_no_text_are_refused(tmp_path):
    (tmp_path / "noise.toml").write_bytes(bytes(range(256)))
    for name in ("noise.toml", "absent.toml", "."):
        with pytest.raises(PlanFileError):
            load_plan(tmp_path / name)


def test_deep_nesting_is_refused(problems):
    assert problems("a = " + "[" * 100_000)


LINES = WHOLE.splitlines()


@settings(max_examples=150, deadline=None)
@given(
    place=st.integers(0, len(LINES) - 1),
    cut=st.integers(0, 60),
    junk=st.sampled_from(["", "[", "}", "= 3", '"', " 1e400", " nan", "\x00", "[[[", "-inf", "{}", "[]", "true"]),
)
@pytest.mark.costly
def test_no_damage_to_a_plan_causes_anything_but_a_refusal(tmp_path_factory, place, cut, junk):
    damaged = [*LINES[:place], LINES[place][:cut] + junk, *LINES[place + 1 :]]
    file = tmp_path_factory.mktemp("damaged") / "plan.toml"
    file.write_text("\n".join(damaged))
    with contextlib.suppress(PlanFileError):
        load_plan(file)
