"""Sizes from earlier releases by hand: which table they are read from, and how bands rise until a budget covers them."""

from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import recordwise as rw
from recordwise.errors import BudgetError, KeysError
from recordwise.plan import Plan, Schema
from recordwise.policy import constant
from recordwise.release import files
from recordwise.session import checks

SCHEMA = Schema.of(unit="id", measures={"emp": 1}, columns={"state": "text", "county": "text"})
SIZED = rw.Sized(rw.Gaussian(sigma="0.1"), floor=50)


def planned(*queries: Any) -> Plan:
    return Plan(schema=SCHEMA, queries=queries)


# Reading.


def table(name: str, keys: tuple[str, ...], **columns: Any) -> Any:
    return SimpleNamespace(name=name, keys=keys, data=pa.table(columns))


def waiting(column: str = "emp", cells: Any = None) -> rw.Keys:
    cells = {"state": ["1", "1", "2"], "county": ["11", "12", "21"]} if cells is None else cells
    return rw.Keys.of(cells, size=rw.FromRelease(release="out/2025", column=column))


def read(monkeypatch: pytest.MonkeyPatch, *tables: Any, private: bool = True, **given: Any) -> list[float]:
    release = SimpleNamespace(private=private, tables=tables, digest="abc")
    monkeypatch.setattr(files, "load_release", lambda folder: release)
    values, source = checks._sizes_of_release(waiting(**given), rw.FromRelease(release="out/2025", column="emp"))
    assert source == "release abc"
    return [float(each) for each in np.asarray(values)]


STATES = table("state", ("state",), state=["1", "2"], emp=[30, 5])
COUNTIES = table("county", ("county",), county=["21", "11", "12"], emp=[5, 10, 20])
BOTH = table("both", ("county", "state"), state=["2", "1", "1"], county=["21", "11", "12"], emp=[6, 11, 21])
WHOLE = table("whole", (), emp=[35])


def test_sizes_are_those_of_the_table_with_the_same_keys_or_with_keys_that_tell_all_cells(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert read(monkeypatch, WHOLE, STATES, COUNTIES, BOTH) == [11, 21, 6]
    assert read(monkeypatch, WHOLE, STATES, COUNTIES) == [10, 20, 5]
    finer = table("finer", ("county", "size"), county=["11"], size=["1"], emp=[1])
    other = table("other", ("county", "state"), state=["1"], county=["11"], pay=[1])
    assert read(monkeypatch, finer, other, COUNTIES) == [10, 20, 5]


@pytest.mark.parametrize("tables", [(), (WHOLE,), (STATES,), (BOTH, BOTH), (COUNTIES, COUNTIES)])
def test_sizes_are_refused_unless_one_table_has_them(tables: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(KeysError, match="has no single table by county x state with a column 'emp'"):
        read(monkeypatch, *tables)


def test_a_total_is_no_size_of_a_single_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(KeysError, match="has no single table by county with a column 'emp'"):
        read(monkeypatch, WHOLE, cells={"county": ["11"]})


def test_numbers_that_are_not_private_are_no_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(KeysError, match=r"'out/2025'.*is NOT PRIVATE"):
        read(monkeypatch, BOTH, private=False)


def test_only_keys_that_wait_for_sizes_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[str] = []

    def load(folder: str) -> Any:
        loaded.append(folder)
        return SimpleNamespace(private=True, tables=(BOTH,), digest="abc")

    monkeypatch.setattr(files, "load_release", load)
    plain = rw.query().group_by("county", keys={"county": ["11"]}).sum("emp", rw.Gaussian(sigma=1))
    known = rw.Keys.of({"county": ["11"], "s": [5]}, size="s", sized_on="public: a table")
    public = rw.query().group_by("county", keys=known).sum("emp", SIZED)
    plan = planned(plain, public)
    assert checks.with_sizes(plan) is plan
    assert loaded == []
    asked = rw.query().group_by("state", "county", keys=waiting()).sum("emp", SIZED)
    made = checks.with_sizes(planned(plain, asked))
    assert loaded == ["out/2025"]
    assert made.queries[0] == plain
    (keys,) = made.queries[1].key_lists
    assert keys.sizes is not None
    assert not keys.sizes.waiting
    assert not any(checks._waits(each) for query in made.queries for each in query.key_lists)
    (alone,) = checks.query_with_sizes(asked).key_lists
    assert alone.sizes is not None
    assert alone.sizes.digest() == keys.sizes.digest()
    assert checks.query_with_sizes(plain) == plain


# Bands.


def ours(*sizes: int, own: bool = True) -> Plan:
    """Counties 0, 1, ... of some sizes, from an earlier release of ours."""
    cells = {"county": [str(number) for number in range(len(sizes))], "s": list(sizes)}
    keys = rw.Keys.of(cells, size={"emp": "s"}, sized_on="public: a table")
    assert keys.sizes is not None
    if own:
        keys = rw.Keys(keys.domain, sizes=replace(keys.sizes, sized_on=("release abc",)))
    return planned(rw.query().group_by("county", keys=keys).sum("emp", SIZED))


class Refusing:
    """A ledger that refuses so many times, for the record of some county."""

    budget: Any = constant(1)

    def __init__(self, times: int, county: str | None = "0") -> None:
        self.left, self.county, self.asked = times, county, 0

    def check(self, policy: Any, *, query: str) -> None:
        self.asked += 1
        if self.left:
            self.left -= 1
            witness: Any = None if self.county is None else {"county": self.county, "emp": 1}
            raise BudgetError(query=query, witness=witness, needed=2, left=1, reason="loss")


def bands(plan: Plan) -> tuple[list[int], list[int]]:
    (own,) = checks._tables(plan).values()
    return [int(edge) for edge in own.edges], own.bands.tolist()


def raised(times: int, county: str | None = "0", *sizes: int) -> tuple[list[int], list[int]]:
    ledger: Any = Refusing(times, county)
    found = checks.raise_bands(ours(*(sizes or (60, 150, 450))), ledger)
    assert ledger.asked == times + 1
    return bands(found)


def test_bands_rise_one_by_one_until_the_budget_covers_them() -> None:
    assert raised(0) == ([50, 100, 200, 400], [0, 1, 3])
    assert raised(1) == ([100, 200, 400], [0, 0, 2])
    assert raised(2) == ([200, 400], [0, 0, 1])
    assert raised(3) == ([400], [0, 0, 0])
    assert raised(4) == ([800], [0, 0, 0])
    assert raised(5) == ([1600], [0, 0, 0])
    assert raised(1, "1") == ([50, 100, 200, 400], [0, 2, 3])
    assert raised(2, "1") == ([50, 100, 200, 400], [0, 3, 3])
    assert raised(1, "2") == ([50, 100, 200, 400, 800], [0, 1, 4])


def test_one_band_rises_for_any_record_and_the_second_of_two_for_its_own() -> None:
    (own,) = checks._tables(checks._raised_at(ours(60), {"emp": 1})).values()  # type: ignore[arg-type]
    assert [int(edge) for edge in own.edges] == [100]
    assert raised(1, "1", 60, 150) == ([50, 100, 200], [0, 2])


def test_queries_without_sizes_stay_as_they_are() -> None:
    plain = rw.query().group_by("county", keys={"county": ["0"]}).sum("emp", rw.Gaussian(sigma=1))
    found = checks._raised_at(planned(plain, *ours(60, 150).queries), {"county": "0", "emp": 1})
    assert found is not None
    assert found.queries[0] == plain
    assert bands(found) == ([100], [0, 0])


def test_bands_of_public_sizes_and_without_a_budget_do_not_rise() -> None:
    without: Any = Refusing(9)
    without.budget = None
    for plan, ledger in ((ours(60, own=False), Refusing(9)), (ours(60), without)):
        assert checks.raise_bands(plan, ledger) is plan  # type: ignore[arg-type]
        assert ledger.asked == 0
    assert checks._release_digests(ours(60)) == ["abc"]
    assert checks._release_digests(ours(60, own=False)) == []


def test_a_refusal_for_no_record_in_particular_is_passed_on() -> None:
    with pytest.raises(BudgetError):
        checks.raise_bands(ours(60), Refusing(1, None))  # type: ignore[arg-type]


def test_no_band_rises_beyond_the_last_one(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = ours(60, 150, 450)
    monkeypatch.setattr(checks, "MOST_BANDS", 4)
    assert checks._raised_at(plan, {"county": "2", "emp": 1}) is None
    assert checks._raised_at(plan, {"county": "1", "emp": 1}) is not None
    monkeypatch.setattr(checks, "MOST_BANDS", 5)
    assert bands(checks._raised_at(plan, {"county": "2", "emp": 1})) == ([50, 100, 200, 400, 800], [0, 1, 4])  # type: ignore[arg-type]


def test_raising_ends_after_so_many_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "MOST_RAISES", 2)
    ledger: Any = Refusing(99)
    assert bands(checks.raise_bands(ours(60, 150, 450), ledger)) == ([200, 400], [0, 0, 1])
    assert ledger.asked == 2


# What would fit.


def test_shares_of_a_loss_have_two_digits() -> None:
    assert [checks._two_digits(each) for each in (0.4567, 0.4, 0.0123)] == [
        Fraction("0.46"), Fraction("0.4"), Fraction("0.012"),
    ]  # fmt: skip


def test_what_needs_most_is_named_by_statistic_and_table() -> None:
    by = rw.query().levels((), "county", share=["0.25", "0.75"], keys={"county": ["1"]})
    plan = planned(by.count(rw.Gaussian(sigma=1), alias="n").sum("emp", rw.Gaussian(sigma=10)))
    refusal = BudgetError(query="q", witness={"emp": 20, "county": "1"}, needed=2, left=1, reason="loss")
    assert checks.needs_most(plan, refusal) == "Most of it is sum_emp in table county, 1.5."
    small = BudgetError(query="q", witness={"emp": 1, "county": "1"}, needed=2, left=1, reason="loss")
    assert checks.needs_most(plan, small) == "Most of it is n in table county, 0.375."
    two = planned(rw.query().count(rw.Gaussian(sigma=1), alias="n").sum("emp", rw.Gaussian(sigma=10)))
    assert checks.needs_most(two, refusal).startswith("Most of it is sum_emp in table ")
    one = planned(rw.query().count(rw.Gaussian(sigma=1)))
    assert checks.needs_most(one, refusal) == ""
