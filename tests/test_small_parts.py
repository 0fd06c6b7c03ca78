"""Small functions of rooms that the guarantee rests on, each at its last value and the next, and each of its guards by itself."""

import hashlib
import hmac
import inspect
import json
import re
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from flint import arb

import recordwise as rw
from mechanisms.mechanism_catalogue import EVERY
from recordwise.engines.sources.files import beside_folders, unique_names
from recordwise.errors import ParameterError, SourceError
from recordwise.ledger.chain import Event
from recordwise.ledger.ledger import amount_bounds, changed_names, combined_schema, within
from recordwise.mechanisms import Gaussian, LogTransform
from recordwise.mechanisms.quantile import Grid
from recordwise.noise.probabilities import surely_positive
from recordwise.plan import Plan, Schema
from recordwise.plan.describe import plan_json
from recordwise.plan.expressions import LONGEST_PREFIX
from recordwise.plan.plan import Sensitive, TableTotals
from recordwise.plan.schema import (
    LARGEST_INTEGER,
    LEAST_INTEGER,
    LONGEST_SIGN,
    DateFormat,
    NumberFormat,
    fits,
    is_plain_text,
    is_value,
    part_problems,
    prefix_problems,
)
from recordwise.plan.sources import (
    bare_names,
    check_table_name,
    compression,
    ending,
    is_table_name,
    look_like_values,
    names_spark_table,
)
from recordwise.plan.statistics.totals import ExactTable
from recordwise.policy.columns import Truth
from recordwise.release.tables import PRIVATE
from recordwise.session.checks import _budget_problem, _bytes, _digests, _noted, _total_name
from recordwise.session.shares import best_shares
from recordwise.session.stages import _answers

KNOWN = {
    "unit": "id",
    "firm": "firm",
    "measures": [{"name": "emp", "step": "1", "bound": "100"}],
    "columns": [{"name": "county", "type": "text"}],
    "rows": {"collapse": "sum"},
}
MORE = {"unit": "id", "measures": [{"name": "pay", "step": "1"}], "columns": [], "rows": {"collapse": "sum"}}


@pytest.mark.parametrize(
    "change, told",
    [
        ({}, []),
        ({"unit": "other"}, ["the unit"]),
        ({"unit": ["id", "year"]}, ["the unit"]),
        ({"firm": "group"}, ["the firm"]),
        ({"firm": None}, []),
        ({"rows": None}, ["the rows of a unit"]),
        ({"measures": []}, []),
        ({"measures": [{"name": "EMP", "step": "1", "bound": "100"}]}, ["emp"]),
        ({"measures": [{"name": "emp", "step": "1", "bound": "101"}]}, ["emp"]),
        ({"columns": [{"name": "county", "type": "integer"}]}, ["county"]),
        ({"columns": [{"name": "emp", "type": "integer"}], "measures": []}, ["emp"]),
        ({"columns": [{"name": "id", "type": "integer"}]}, ["id"]),
        ({"columns": [{"type": "integer"}]}, ["everything (it is not a valid schema)"]),
        ({"columns": 5}, ["everything (it is not a valid schema)"]),
    ],
    ids=str,
)
def test_what_changed_in_a_schema_is_named(change: dict[str, Any], told: list[str]) -> None:
    assert changed_names(KNOWN, KNOWN | change) == told
    assert within(KNOWN | change, KNOWN) == (not told)


def test_a_schema_that_is_not_there_changes_nothing_and_names_are_added_once() -> None:
    assert changed_names(None, KNOWN) == changed_names(KNOWN, {}) == []
    assert combined_schema(None, KNOWN) == combined_schema(KNOWN, None) == KNOWN
    both = combined_schema(KNOWN, MORE)
    assert [each["name"] for each in both["measures"]] == ["emp", "pay"]
    assert both["columns"] == KNOWN["columns"]
    assert both["firm"] == "firm"
    assert combined_schema(MORE, KNOWN)["firm"] == "firm"
    assert [each["name"] for each in combined_schema(MORE, KNOWN)["measures"]] == ["pay", "emp"]
    assert "firm" not in combined_schema(MORE, MORE)
    assert combined_schema(KNOWN, KNOWN | {"columns": [{"name": "COUNTY", "type": "text"}]}) == KNOWN
    assert not within(MORE, KNOWN)
    assert within(KNOWN, both)
    assert within({}, KNOWN)
    assert amount_bounds(both) == {"emp": "100"}
    assert amount_bounds(None) == {}


def test_whole_numbers_have_the_same_bytes_whatever_their_type_and_others_do_not() -> None:
    small = [0, -1, 2**62]
    assert _bytes(np.array(small)) == _bytes(np.array(small, object)) == np.array(small, "<i8").tobytes()
    assert _bytes(np.array([2**63 - 1], object)) == np.array([2**63 - 1], "<i8").tobytes()
    assert _bytes(np.array([2**63, 5], object)) == f"{2**63},5".encode()
    assert _bytes(np.array([5, -(2**63)], object)) == f"5,{-(2**63)}".encode()


def test_the_latest_digest_of_a_charge_is_found_between_others_and_torn_lines(tmp_path: Path) -> None:
    charge: Any = SimpleNamespace(sequence=3, head=SimpleNamespace(digest="abc"))
    path = tmp_path / "totals"
    assert _noted(path, charge) is None
    first, second = ({"charge": 3, "head": "abc", "key": key, "totals": {"q": "ff"}} for key in ("00", "11"))
    others = [{"charge": 4, "head": "abc"}, {"charge": 3, "head": "abd"}, {"charge": 3}, 7]
    others += [second | {"key": "no digits"}, second | {"totals": None}]
    path.write_text("\n".join(map(json.dumps, [first, second, *others])) + '\n{"charge": 3, "hea')
    assert _noted(path, charge) == {"key": "11", "totals": {"q": "ff"}}
    path.write_text("\n".join(map(json.dumps, others)))
    assert _noted(path, charge) is None


def test_published_answers_are_taken_on_the_scale_of_their_noise() -> None:
    names = {"emp": [1], "emp_noisy": [2.5], "emp_noisy_positive": [3.0], "emp_noisy_negative": [4.0]}
    data = pa.table(names)
    assert _answers(Gaussian(sigma=1), "emp", data).tolist() == [1.0]
    assert _answers(LogTransform(offset=1, sigma=1), "emp", data).tolist() == [2.5]
    assert _answers(LogTransform(offset=1, sigma=1, signed=True), "emp", data).tolist() == [[3.0], [4.0]]


def test_a_number_whose_sign_is_not_known_has_none() -> None:
    assert surely_positive(arb(3))
    assert surely_positive(arb("1e-30"))
    assert not surely_positive(arb("-1e-30"))
    for unknown in (arb(0, "0.1"), arb("0.05", "0.1"), arb("-0.05", "0.1"), arb(0, 5)):
        with pytest.raises(ArithmeticError):
            surely_positive(unknown)


def test_a_column_is_refused_if_another_has_its_name_in_other_letters() -> None:
    unique_names(["emp", "Pay"], ["EMP", "pay", "x", "X"], "the file")
    for wanted in (["emp"], ["pay", "Emp"]):
        with pytest.raises(SourceError, match=r"the file.*unique"):
            unique_names(wanted, ["emp", "EMP", "pay"], "the file")
    beside_folders(["year"], ["emp", "years"], "the file")
    with pytest.raises(SourceError, match="year"):
        beside_folders(["month", "year"], ["emp", "YEAR"], "the file")


@pytest.mark.parametrize("name", ["", "a\x00b", 5, None, b"county"])
def test_a_column_needs_a_name_that_is_a_text(name: Any) -> None:
    assert Schema.of(unit="id", columns={"county": "text"}).columns
    with pytest.raises(ParameterError, match="empty column name"):
        Schema.of(unit="id", columns={"county": "text", name: "text"})


def test_levels_without_a_sum_have_even_shares() -> None:
    schema = Schema.of(unit="id", measures={"emp": 1}, columns={"naics": "text"})
    keys = rw.Keys.of({"naics": ["111", "112", "221"]})
    grid = Grid.linear(0, 80, bits=3)
    asked = rw.query().levels(rw.prefix("naics", [1, 2, 3]), keys=keys).quantile("emp", p="0.5", grid=grid, rho=1)
    found = best_shares(Plan(schema=schema, queries=(asked,)))
    assert found.axes == ((Fraction(1, 3),) * 3,)
    assert (found.now, found.equal, found.sized, found.variables) == (1.0, 1.0, False, ())


def entry(sequence: int, kind: str, **body: Any) -> Event:
    return Event(sequence=sequence, time="", kind=kind, body=body, digest="")


@pytest.mark.parametrize("without", [None, "2024", "2025"])
@pytest.mark.parametrize("digest, period", [("a", "2024"), ("b", "2025")])
def test_sizes_of_a_release_need_a_budget_in_the_period_it_was_charged_in(
    digest: str, period: str, without: str | None
) -> None:
    """Terms of two periods, and a charge in each; the releases come in the other order."""

    def terms(sequence: int, period: str) -> Event:
        return entry(sequence, "opened", period=period, budget=None if period == without else {"rho": []})

    events = [
        terms(1, "2024"),
        entry(2, "charged", period="2024"),
        terms(3, "2025"),
        entry(4, "charged", period="2025"),
        entry(5, "released", charge=4, digest="b", mark=PRIVATE),
        entry(6, "released", charge=2, digest="a", mark=PRIVATE),
        entry(7, "released", charge=2, digest="c", mark="NOT PRIVATE"),
    ]
    ledger: Any = SimpleNamespace(budget=1, history=lambda: events)
    problem = _budget_problem([digest], ledger)
    assert (problem is None) == (period != without)
    assert problem is None or "without a declared budget" in problem
    for unknown in ("c", "d"):
        assert "not charged" in str(_budget_problem([unknown], ledger))
    assert _budget_problem([], ledger) is None
    assert "without a declared budget" in str(_budget_problem([digest], SimpleNamespace(budget=None)))  # type: ignore[arg-type]


def test_totals_are_noted_by_a_digest_that_needs_the_key() -> None:
    """As the standard library makes it: a key, and before each part its length in eight bytes."""
    schema = Schema.of(unit="id", measures={"emp": 1}, columns={"naics": "text"})
    asked = rw.query().group_by("naics", keys={"naics": ["1", "2"]}).sum("emp", Gaussian(sigma=1))
    plan = Plan(schema=schema, queries=(asked,))
    (table,) = plan.tables()
    values = {total: np.array([3, 40]) for total in table.totals}
    exact = ExactTable(cells=2, totals=values, bins={})  # type: ignore[arg-type]
    found = TableTotals(table=table, cells=plan.cells(table), exact=Sensitive(exact))
    described = plan_json(plan)
    by = described[0]["tables"][0]["by"]
    names = [
        json.dumps([None, described[0]["where"], by, None, _total_name(total)], sort_keys=True, default=str)
        for total in values
    ]
    parts = [part for name in sorted(names) for part in (name.encode(), np.array([3, 40], "<i8").tobytes())]
    whole = b"".join(len(part).to_bytes(8, "little") + part for part in parts)
    public = hashlib.sha256("\n".join(sorted(names)).encode()).hexdigest()
    assert _digests(b"key", None, described, [found]) == {public: hmac.digest(b"key", whole, "sha256").hex()}


def test_mechanisms_mean_the_same_by_what_is_not_said() -> None:
    """Steps are 1, intervals hold with 95 %, policies are the tight ones, wherever that may be left out."""
    usual = {"step": 1, "confidence": 0.95, "tight": True, "rng": None, "kept": None}
    for kind in {type(entry.mechanism) for entry in EVERY}:
        for name, method in inspect.getmembers(kind, inspect.isfunction):
            for given in inspect.signature(method).parameters.values():
                if name != "__init__" and given.name in usual and given.default is not inspect.Parameter.empty:
                    assert given.default == usual[given.name], (kind, name, given.name)


def accepted(pattern: str, texts: list[str]) -> list[str]:
    return [text for text in texts if re.search(pattern.replace(r"\z", r"\Z"), text)]


NUMBERS = ["1", "-1", "+1", "12.5", ".5", "5.", "1,234", "1,234.5", "12,34", "1234", ",234", "1,2345", "", ".", "1 234"]
SIGNED = ["$1", "$ 1", "-$1", "$-1", "$ -1", "- $1", "1 EUR", "1EUR", "$1EUR", " $1 EUR ", "$", "EUR", "$$1", "1 EU"]


def test_numbers_are_those_of_the_declared_format_and_no_others() -> None:
    assert accepted(NumberFormat().pattern(), NUMBERS) == ["1", "-1", "+1", "12.5", ".5", "5.", "1234"]
    plain = ["1", "-1", "+1", "12.5", ".5", "5.", "1,234", "1,234.5", "1234"]
    assert accepted(NumberFormat(thousands=",").pattern(), NUMBERS) == plain
    comma = NumberFormat(thousands=".", decimal=",").pattern()
    assert accepted(comma, ["1.234,5", "1.234", "1,5", ",5", "1.23", "1,234.5", "1234,"]) == [
        "1.234,5",
        "1.234",
        "1,5",
        ",5",
        "1234,",
    ]
    money = NumberFormat(prefix="$", suffix="EUR")
    kept = ["$1", "$ 1", "-$1", "$-1", "$ -1", "1 EUR", "1EUR", "$1EUR", " $1 EUR "]
    assert accepted(money.pattern(), SIGNED) == kept
    assert money.removed() == ("$", "EUR", " ")
    assert NumberFormat(thousands="'").removed() == ("'", " ")


@pytest.mark.parametrize(
    "how, told",
    [
        ({"thousands": 1}, "thousands of number must be text"),
        ({"decimal": ";"}, "decimal of number"),
        ({"thousands": ";"}, "thousands of number must be a comma"),
        ({"thousands": "."}, "is the decimal sign already"),
        ({"thousands": ",", "decimal": ","}, "is the decimal sign already"),
        ({"prefix": "x" * (LONGEST_SIGN + 1)}, "prefix of number must be up to"),
        ({"suffix": " x"}, "suffix of number must be up to"),
        ({"suffix": "a\n"}, "suffix of number must be up to"),
        ({"prefix": "a1"}, "prefix of number must hold no digit"),
        ({"suffix": "-"}, "suffix of number must hold no digit"),
        ({"suffix": "+"}, "suffix of number must hold no digit"),
        ({"prefix": ".,"}, "prefix of number must hold no digit"),
    ],
    ids=str,
)
def test_a_format_of_numbers_that_could_be_misread_is_refused(how: dict[str, Any], told: str) -> None:
    with pytest.raises(ParameterError, match=told):
        NumberFormat(**how)


def test_the_longest_sign_is_accepted() -> None:
    assert NumberFormat(prefix="x" * LONGEST_SIGN, suffix="%").removed() == ("x" * LONGEST_SIGN, "%", " ")


@pytest.mark.parametrize(
    "form, right, wrong",
    [
        ("%d.%m.%Y", ["1.2.2024", "31.12.1999", " 01.02.2024 "], ["1.2.24", "001.2.2024", "1-2-2024", "1.2.20245"]),
        ("%Y%m%d", ["20240102"], ["2024012", "2024-01-02", "202401021"]),
        ("%d %b %Y", ["1 Jan 2024", "31 dEc 1999"], ["1 Foo 2024", "1 January 2024", "1 01 2024"]),
        ("%Y-%m-%d %H:%M:%S", ["2024-1-2 23:59:59", "2024-01-02 0:0:0"], ["2024-1-2 24:00:00", "2024-1-2 3:60:00"]),
        ("%Y-%m-%dT%H%M", ["2024-1-2T2359"], ["2024-1-2T2360"]),
        ("%d%%%m%%%Y", ["1%2%2024"], ["1.2.2024", "1%%2%%2024"]),
        ("%d/%m/%Y0", ["1/2/20240"], ["1/2/2024"]),
    ],
)
def test_dates_are_those_of_the_declared_format_and_no_others(form: str, right: list[str], wrong: list[str]) -> None:
    assert accepted(DateFormat(form).pattern(), [*right, *wrong]) == right
    order = re.findall(r"%([Ymdb])", form)
    assert DateFormat(form).groups() == {part: place for place, part in enumerate(order, 1)}


@pytest.mark.parametrize("form", ["%d.%m.%y", "%d.%m", "%d.%m.%m.%Y", "%d.%b.%m.%Y", "%q%d%m%Y", "%d\n%m.%Y", "%", 5])
def test_a_format_of_dates_that_does_not_tell_the_day_is_refused(form: Any) -> None:
    with pytest.raises(ParameterError):
        DateFormat(form)


def test_constants_are_held_against_the_type_of_their_column() -> None:
    held = {"text": "a", "boolean": Truth(True), "number": Fraction(5, 2), "integer": Fraction(2)}
    for kind in ("text", "boolean", "integer"):
        found = {name for name, value in held.items() if fits(value, kind)}
        assert found == ({kind} if kind != "integer" else {"number", "integer"})
        assert {name for name, value in held.items() if is_value(value, kind)} == {kind}
    assert not any(fits(value, "date") or is_value(value, "date") for value in held.values())
    assert [is_value(Fraction(end), "integer") for end in (LEAST_INTEGER, LARGEST_INTEGER)] == [True, True]
    assert [is_value(Fraction(end), "integer") for end in (LEAST_INTEGER - 1, LARGEST_INTEGER + 1)] == [False, False]
    assert [is_plain_text(text) for text in ("a\ud7ff\ue000", "\x00", "\ud800", "\udfff")] == [
        True,
        False,
        False,
        False,
    ]


def test_prefixes_and_parts_need_columns_of_their_type() -> None:
    assert list(prefix_problems("a", None, "integer")) == list(prefix_problems("a", LONGEST_PREFIX, "text")) == []
    assert len(list(prefix_problems("a", LONGEST_PREFIX + 1, "text"))) == 1
    assert len(list(prefix_problems("a", LONGEST_PREFIX + 1, "date"))) == 2
    assert list(part_problems("a", "", "text")) == list(part_problems("a", "year", "date")) == []
    assert len(list(part_problems("a", "year", "text"))) == 1


def test_files_are_known_by_their_endings() -> None:
    names = ["a.csv", "a.CSV.GZ", "a.tsv.zst", "a.parquet", "a.parquet.gz", "a.gz", "a"]
    assert [ending(Path(name)) for name in names] == [".csv", ".csv", ".tsv", ".parquet", ".gz", ".gz", ""]
    assert [compression(Path(name)) for name in names] == [None, "gzip", "zstd", None, "gzip", "gzip", None]
    assert [look_like_values([name]) for name in ("emp", "12", "", "2024-01-02", "county;emp", "county;7")] == [
        False,
        True,
        True,
        True,
        False,
        True,
    ]
    tables = ["records", "db.records", "a.parquet", "A.CSV", "folder/a", "a*", "a?", "a[1]", "a\\b"]
    assert [is_table_name(name) for name in tables] == [True, True, *[False] * 7]
    assert names_spark_table("s3://bucket/a.parquet")
    assert not names_spark_table("bucket/a.parquet")


def test_a_table_name_has_one_or_two_parts_which_may_be_quoted() -> None:
    assert bare_names("a") == ("a",)
    assert bare_names('public."a.""b"') == ("public", 'a."b')
    for name in ("a", "s.a", '"a b"', 's."a.b"'):
        check_table_name(name)
    for wrong in ("", "a.", "a..b", "a.b.c", 7):
        with pytest.raises(ParameterError):
            check_table_name(wrong)
