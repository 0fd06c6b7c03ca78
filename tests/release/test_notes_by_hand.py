"""What is said about a release and verified of it, by hand: order and terms of a ledger, notes of fits, units, files, records."""

import math
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from recordwise.errors import OutputError, ParameterError
from recordwise.ledger.chain import Event
from recordwise.plan.publication import StatusRules
from recordwise.release.basic import _column, _common_unit, _units, bias_text
from recordwise.release.consistent import (
    BIASED,
    CUT,
    MEASURED_MOVED,
    NEARLY,
    WIDENED,
    _around,
    _how,
    _named_columns,
    _scatter,
    check_method,
    columns_json,
    flags_of,
    is_laplace,
    order_of,
)
from recordwise.release.formats.records import Records, _free
from recordwise.release.spread import FORMULA, MOVED, FittedColumn, FixedNoise, JoinedNoise
from recordwise.release.staging import file_digest, file_problems, new_folder, remove_stale, require_new
from recordwise.release.tables import BasicNote, ClassBias, FitNote, ReleasedTable, SavedNoise, VariableFit
from recordwise.release.verify import _amends, _continues, _looks_agree, terms_at, wrong_order, wrong_terms


def events(*kinds: Any) -> list[Event]:
    """Entries of a chain: a kind, or a kind with its body."""
    pairs = [each if isinstance(each, tuple) else (each, {}) for each in kinds]
    return [
        Event(sequence=number, time="", kind=kind, body=body, digest="") for number, (kind, body) in enumerate(pairs, 1)
    ]


# The order and the terms of a ledger.


@pytest.mark.parametrize(
    "kinds, problems",
    [
        (["opened", "charged", ("released", {"charge": 2})], []),
        (["opened", "charged", "looked", "charged", ("failed", {"charge": 2}), ("released", {"charge": 4})], []),
        (["charged"], ["event 1 is out of place (charged)"]),
        (["opened", "lost"], ["event 2 is out of place (lost)"]),
        (["opened", ("released", {"charge": 1})], ["event 2 closes a charge that is not open"]),
        (["opened", ("failed", {})], ["event 2 closes a charge that is not open"]),
        (
            ["opened", "charged", ("released", {"charge": 2}), ("failed", {"charge": 2})],
            ["event 4 closes a charge that is not open"],
        ),
    ],
)
def test_every_closing_belongs_to_an_open_charge_and_terms_come_first(kinds: list[Any], problems: list[str]) -> None:
    assert wrong_order(events(*kinds)) == problems


SMALL: dict[str, Any] = {"unit": "id", "measures": [{"name": "emp", "step": "1", "bound": "9"}], "columns": []}
LARGE = SMALL | {"measures": [*SMALL["measures"], {"name": "pay", "step": "1", "bound": "9"}]}


def terms(**more: Any) -> dict[str, Any]:
    return {"dataset": "d", "budget": "b", "schema": SMALL, "format": 1} | more


def charge(**more: Any) -> tuple[str, dict[str, Any]]:
    return "charged", {"schema": SMALL} | more


@pytest.mark.parametrize(
    "later, accepted",
    [
        (terms(), True),
        (terms(schema=LARGE), True),
        (terms(schema={"unit": "id", "measures": [], "columns": []}), False),
        (terms(budget="c"), False),
        (terms(dataset="e"), False),
        (terms(format=2), True),
        (terms(format=0), False),
        (terms(guarantee="another"), True),
        (terms(budget="c", amendments=[{"budget": "b"}]), True),
        (terms(budget="c", amendments=[{"budget": "x"}]), False),
        (terms(budget="c", amendments=[{"budget": "b"}, {"budget": "b"}]), False),
        (terms(dataset="e", amendments=[{"budget": "b"}]), False),
    ],
)
def test_terms_after_a_charge_may_grow_or_amend_their_budget_and_nothing_else(
    later: dict[str, Any], accepted: bool
) -> None:
    assert _continues(terms(), later) == accepted
    told = wrong_terms(events(("opened", terms()), charge(), ("opened", later)))
    assert told == ([] if accepted else ["event 3 changes the terms of earlier charges"])
    assert wrong_terms(events(("opened", terms()), ("opened", later))) == []


def test_an_amendment_is_one_more_than_before_and_of_the_budget_before() -> None:
    first = terms(budget="c", amendments=[{"budget": "b"}])
    assert _amends(terms(), first)
    assert _amends(first, terms(budget="e", amendments=[{"budget": "b"}, {"budget": "c"}]))
    assert not _amends(first, terms(budget="e", amendments=[{"budget": "x"}, {"budget": "c"}]))
    assert not _amends(first, first)
    assert not _amends(terms(), terms())


def test_a_charge_is_stated_in_the_terms_of_its_period() -> None:
    assert wrong_terms(events(("opened", terms()), charge(period="2024"))) == ["event 2 charges a period without terms"]
    other = "event 2 is stated in a schema other than that of the terms"
    assert wrong_terms(events(("opened", terms()), charge(schema=LARGE))) == [other]
    assert wrong_terms(events(("opened", terms(schema=LARGE)), charge())) == []
    one, two = terms(period="1", series="s"), terms(period="2", series="t")
    both = events(("opened", one), charge(period="1"), ("opened", two), charge(period="2"))
    assert wrong_terms(both) == ["its periods belong to different series"]
    assert wrong_terms(both[:3]) == []
    same = events(("opened", one), charge(period="1"), ("opened", two | {"series": "s"}), charge(period="2"))
    assert wrong_terms(same) == []
    listed = events(("opened", one), ("opened", two), charge(period="1"), ("opened", one | {"format": 2}))
    assert terms_at(listed, 3)["format"] == 1
    assert terms_at(listed, 3)["period"] == "1"
    assert terms_at(events(charge()), 1) == {}


def test_what_was_looked_at_is_compared_with_how_versions_stated_it() -> None:
    def stated(viewed: Any, looks: Any) -> Any:
        return SimpleNamespace(looked_at_records=viewed, looks=looks)

    some, preflight = {"compare": 2}, {"preflight": 1}
    assert _looks_agree(stated(True, some), some)
    assert not _looks_agree(stated(False, some), some)
    assert _looks_agree(stated(None, None), some)
    assert not _looks_agree(stated(False, None), some)
    assert _looks_agree(stated(False, None), preflight)
    assert not _looks_agree(stated(None, None), {})


# Notes about fitted columns.


def column(how: str = FORMULA, draws: int = 0, **ends: Any) -> FittedColumn:
    given: dict[str, Any] = {
        "value": np.array([5.0]),
        "sd": np.ones(1),
        "low": np.array([3.0]),
        "high": np.array([7.0]),
    }
    return FittedColumn(how=how, draws=draws, **(given | ends))


def test_columns_that_are_not_unbiased_are_flagged_by_what_they_come_from() -> None:
    assert flags_of("n", biased=False, best=column()) == {}
    assert flags_of("n", biased=True, best=column()) == {"n_fit": BIASED.replace("NAME", "n")}
    assert flags_of("n", biased=False, best=column(MOVED)) == {"n_best": NEARLY}
    assert _how(column()) == {"intervals": FORMULA}
    assert _how(column(MOVED, 40)) == {"intervals": MOVED, "draws": 40, "accuracy": MEASURED_MOVED}
    assert list(columns_json("ols", drawn=True)) == [
        f"NAME{fit}{end}" for fit in ("_fit", "_best") for end in ("", "_sd", "_low", "_high")
    ]
    assert "NAME_fit_sd" not in columns_json("nnls", drawn=False)
    assert "biased" in columns_json("nnls", drawn=False)["NAME_fit"]
    assert "biased" not in columns_json("ols", drawn=False)["NAME_fit"]
    names = [name for name, _ in _named_columns("_fit", column(CUT))]
    assert names == ["_fit", "_fit_low", "_fit_high"]
    for own in (column(CUT, 40), column(FORMULA)):
        assert [name for name, _ in _named_columns("_fit", own)] == ["_fit", "_fit_sd", "_fit_low", "_fit_high"]
    assert [name for name, _ in _named_columns("_fit", column(WIDENED))] == names


def test_intervals_of_fitted_values_are_cut_at_0_and_hold_the_value() -> None:
    best = column(
        value=np.zeros(4), low=np.array([-3.0, 2.0, -9.0, np.nan]), high=np.array([4.0, 6.0, -1.0, 5.0]), sd=np.ones(4)
    )
    value = np.array([1.0, 8.0, 0.0, 3.0])
    found = _around(best, value, cut=True)
    assert (found.low.tolist(), found.high.tolist()) == ([0.0, 2.0, 0.0, 0.0], [4.0, 8.0, 0.0, 5.0])
    assert np.isnan(found.sd).all()
    plain = _around(best, value, cut=False)
    assert plain.low[:3].tolist() == [-3.0, 2.0, -9.0]
    assert plain.high.tolist() == [4.0, 8.0, 0.0, 5.0]
    assert (found.how, plain.how) == (CUT, WIDENED)
    answered = np.array([True, False, True])
    assert _scatter(np.array([1.0, 2.0]), answered).tolist() == [1.0, 0.0, 2.0]
    assert np.isnan(_scatter(np.array([1.0, 2.0]), answered, np.nan)[1])


def test_laplace_noise_is_such_in_every_part() -> None:
    plain, laplace = (FixedNoise(np.ones(1), (), known=True, laplace=each) for each in (False, True))
    rows = np.arange(1)
    assert (is_laplace(plain), is_laplace(laplace)) == (False, True)
    assert is_laplace(JoinedNoise(((rows, laplace), (rows, laplace))))
    assert not is_laplace(JoinedNoise(((rows, laplace), (rows, plain))))


def release(*tables: str, external: bool = False) -> Any:
    named = [SimpleNamespace(name=each) for each in tables]
    return SimpleNamespace(tables=named, published=SimpleNamespace(queries=[SimpleNamespace(external=external)]))


def test_methods_and_priorities_are_checked_before_anything_is_fitted() -> None:
    check_method(release("a", "b"), "top_down", None)
    check_method(release("a", "b"), "ols", ["b", "a"])
    for wrong in (["a"], ["a", "b", "b"], ["a", "c"]):
        with pytest.raises(ParameterError, match="must order exactly these tables: a, b"):
            check_method(release("a", "b"), "ols", wrong)
    with pytest.raises(ParameterError, match="must be one of top_down, ols"):
        check_method(release("a"), "other", None)
    with pytest.raises(ParameterError, match="external mechanism"):
        check_method(release("a", external=True), "ols", None)
    nesting: Any = release("fine", "middle", "coarse")
    assert order_of(nesting, None) == ["coarse", "middle", "fine"]
    assert order_of(nesting, ["middle", "other", "fine"]) == ["middle", "fine"]


def test_notes_are_read_as_they_were_written_and_earlier_ones_added_one_column() -> None:
    bias = ClassBias(up_to=1.0, cells=3, bias=0.25)
    fit = VariableFit(
        kkt=0.1, primal=0.2, converged=True, fit={"intervals": "x"}, best={"intervals": "y"}, left=(bias,)
    )
    note = FitNote(
        method="max_fit",
        complete=True,
        zero_counts=False,
        at_most={"a": "b"},
        digest="d",
        together=(("t", "u"),),
        fits={"q1:n": fit},
        options={"slack": 0.5},
    )
    again = FitNote.read(note.to_json())
    assert again == note
    assert again.fits["q1:n"].intervals == ("x", "y")
    assert "fitted_together" not in FitNote.read({"digest": "d", "uncertainty": {}}).to_json()
    assert FitNote.read({"digest": "d"}).added == ("_fit",)
    assert len(FitNote.read({"digest": "d", "uncertainty": {}}).added) > 1
    bare = VariableFit.read({}, {})
    assert (math.isnan(bare.kkt), bare.converged, bare.left, bare.to_json()) == (
        True,
        False,
        (),
        {"fit": {}, "best": {}},
    )


# Basic tables.


def test_the_bias_that_is_left_is_said_by_size_class() -> None:
    text = bias_text(
        [
            ClassBias(up_to=0.0, cells=1, bias=0.5),
            ClassBias(up_to=1.0, cells=1, bias=-0.25),
            ClassBias(up_to=3.0, cells=1, bias=0.0049),
            ClassBias(up_to=None, cells=1, bias=0.006),
        ]
    )
    assert "cells of 0 are 0.50 too high, cells of 0 to 1 standard errors are 0.25 too low, " in text
    assert "cells of 1 to 3 standard errors are not off, cells of more than 3 are 0.01 too high on average" in text
    assert "not off" not in bias_text([ClassBias(up_to=None, cells=1, bias=-0.005)])


def test_units_are_those_of_the_variable_its_measure_or_one() -> None:
    statistics = [
        SimpleNamespace(name="a", of="emp"),
        SimpleNamespace(name="b", of="emp"),
        SimpleNamespace(name="n", of=None),
    ]
    published = SimpleNamespace(query_of=lambda name: SimpleNamespace(statistics=statistics))
    own: Any = SimpleNamespace(tables=[SimpleNamespace(name="t", variables=("a", "b", "n"))], published=published)
    assert _units(own, {"emp": 5, "b": "0.5"}) == {"a": 5, "b": Fraction(1, 2), "n": 1}
    assert _units(own, {}) == {"a": 1, "b": 1, "n": 1}
    with pytest.raises(ParameterError, match="name 'x', which is neither"):
        _units(own, {"x": 5})
    for wrong in (0, -1):
        with pytest.raises(ParameterError, match="the unit of 'a'"):
            _units(own, {"a": wrong})
    both: Any = SimpleNamespace(names=("a", "b"))
    assert _common_unit([Fraction(2), Fraction(2)], both) == 2
    with pytest.raises(ParameterError, match="differ for a and b"):
        _common_unit([Fraction(2), Fraction(1)], both)
    assert _column(np.array([1, 2]), Fraction(5)).to_pylist() == [5, 10]
    assert _column(np.array([1, 2]), Fraction(3, 2)).to_pylist() == [1.5, 3.0]


def test_a_note_on_basic_tables_says_what_is_left_of_a_bias() -> None:
    note = BasicNote(
        tables={"t_basic": ("n",)},
        rounded_to={"n": "5"},
        largest_change={"q1:n": 0.5},
        moved_more={"q1:n": 2},
        rules=StatusRules(),
        digest="d",
        bias={"q1:n": "NAME is high"},
    )
    assert (note.bias_of(1, "n"), note.bias_of(2, "n")) == ("n is high", "")
    again = BasicNote.read(note.to_json())
    assert (again.moved_more, again.bias, again.rules, again.rounded_to) == (
        {"q1:n": 2},
        note.bias,
        note.rules,
        {"n": "5"},
    )
    assert BasicNote.read(note.to_json() | {"bias": "of NAME"}).bias_of(3, "m") == "of m"
    plain = {name: each for name, each in note.to_json().items() if name not in ("bias", "moved_more")}
    assert (BasicNote.read(plain).bias, BasicNote.read(plain).moved_more) == ("", {})
    assert "bias" not in BasicNote.read(plain).to_json()


def test_saved_noise_has_its_variances_at_the_saved_sizes_and_between_them() -> None:
    saved = SavedNoise(noise_sigma=None, sizes=(1.0, 100.0), variances=(4.0, 400.0))
    assert saved.variance_of(np.array([1.0, 100.0])).tolist() == [4.0, 400.0]
    assert saved.variance_of(np.array([10.0])) == pytest.approx([40.0])
    assert saved.variance_of(np.array([1000.0])) == pytest.approx([400.0])


# Folders and records.


def test_a_folder_gets_its_name_when_it_is_complete_and_nothing_is_overwritten(tmp_path: Path) -> None:
    target = tmp_path / "deep" / "out"
    with new_folder(target) as staging:
        assert not target.exists()
        (staging / "file").write_text("x")
    assert (target / "file").read_text() == "x"
    for taken in (target, target / "file"):
        with pytest.raises(OutputError, match="already exists"):
            require_new(taken)
    with pytest.raises(ZeroDivisionError), new_folder(tmp_path / "other") as staging:
        (staging / "file").write_text(str(1 // 0))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["deep"]
    with new_folder(tmp_path / "own", owner_only=True) as staging:
        (staging / "file").write_text("x")
    assert (tmp_path / "own").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "own" / "file").stat().st_mode & 0o777 == 0o600
    assert target.stat().st_mode & 0o077 != 0


def test_what_killed_processes_left_is_removed_and_nothing_else(tmp_path: Path) -> None:
    for name in (".out.staging-1-1", ".out.staging-x-1", ".other.staging-1-1", ".outXstaging-1-1"):
        (tmp_path / name).mkdir()
    remove_stale(tmp_path / "out")
    left = sorted(path.name for path in tmp_path.iterdir())
    assert left == [".other.staging-1-1", ".out.staging-x-1", ".outXstaging-1-1"]


def test_files_that_are_missing_or_others_are_named(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a")
    (tmp_path / "b").write_text("b")
    listed = {"a": file_digest(tmp_path / "a"), "b": "0" * 64, "c": "0" * 64}
    assert file_problems(tmp_path, listed) == ["b is not the file that was saved", "c is missing"]
    assert file_digest(tmp_path / "a") == "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"


def test_records_are_saved_as_text_and_say_what_they_are(tmp_path: Path) -> None:
    data = pa.table({"k": pa.array(["=a", "b"]).dictionary_encode(), "weight": [1.5, 2.0]})
    made = Records(data=data, whole=False, about={"of": "n", "mark": "private"}, no_bound="because")
    assert repr(made) == "<Records: 2 weighted records of n, private>"
    assert made.to_json() == {"of": "n", "mark": "private", "no_bound": "because"}
    folder = made.save(tmp_path / "out", formats=["csv"])
    assert sorted(path.name for path in folder.iterdir()) == ["records.csv", "records.json"]
    assert (folder / "records.csv").read_text() == '"k","weight"\n"\'=a",1.5\n"b",2\n'
    for wrong in ([], ["xlsx"], ["csv", "xlsx"]):
        with pytest.raises(ParameterError, match="of records are parquet and csv"):
            made.save(tmp_path / "other", formats=wrong)
    both = made.save(tmp_path / "both")
    assert sorted(path.name for path in both.iterdir()) == ["records.csv", "records.json", "records.parquet"]
    assert "whole" in repr(Records(data=data, whole=True, about={"of": "n", "mark": ""}))
    assert (_free("weight", {}), _free("weight", {"weight": 1, "record_weight": 1})) == (
        "weight",
        "record_record_weight",
    )
    for label, first in (("private", ""), ("NOT PRIVATE: why", "# NOT PRIVATE: why\n")):
        empty = Records(data=data.slice(0, 0), whole=True, about={"of": "n", "mark": label})
        saved = empty.save(tmp_path / label[:3], formats=["csv"])
        assert (saved / "records.csv").read_text() == f'{first}"k","weight"\n'


def test_a_released_table_tells_its_flags() -> None:
    field = pa.field("n", pa.float64(), metadata={"recordwise_flag": "why"})
    data = pa.table([pa.array([1.0]), pa.array([2.0])], schema=pa.schema([field, pa.field("m", pa.float64())]))
    assert ReleasedTable(name="t", keys=(), variables=("n", "m"), data=data).flags() == {"n": "why"}
