"""Two releases of one table that declare a measure differently: signed in one of them, by another name, on another step.

Noise is so small that it is 0 but for a chance of e^-200, so every number is known from the records.
"""

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import recordwise as rw
from build import employers, few
from recordwise.plan import Measure
from recordwise.release.verify import verify

COUNTIES = ["a", "b", "c"]
PLAIN, SIGNED = Measure.of("profit"), Measure.of("profit", signed=True)
UP, DOWN = [100, 200, 300, 5, 6, 7], [-50, 220, -301, 5, -6, 7]
PERCENT = {f"p_percent{end}" for end in ("", "_sd", "_low", "_high")}


def released(place: Path, values: list[Any], measure: Measure, **how: Any) -> rw.Release:
    """The sum p and the count n by county."""
    column = measure.name
    numbers = [float(value) if Fraction(value).denominator > 1 else int(value) for value in values]
    records = pa.table({"id": np.arange(len(values)), "county": COUNTIES * (len(values) // 3), column: numbers})
    sigma = measure.step / 20
    asked = rw.query().group_by("county", keys={"county": COUNTIES}).count(rw.Gaussian(sigma="1/20"), alias="n")
    with employers(records, "county", measures={column: measure}, ledger=place, **how) as session:
        return session.run(asked.sum(column, rw.Gaussian(sigma=sigma), alias="p"))


def sums(values: list[Any]) -> list[Any]:
    return [sum(map(Fraction, values[place::3])) for place in range(3)]


def change(now: rw.Release, before: rw.Release) -> pa.Table:
    (table,) = now.change(before).tables.values()
    return table


@pytest.mark.parametrize("now_signed", [False, True])
@pytest.mark.parametrize("before_signed", [False, True])
@pytest.mark.parametrize("other", ["profit", "loss"])
@pytest.mark.costly
def test_percentages_are_given_only_where_neither_total_can_be_negative(
    tmp_path: Path, now_signed: bool, before_signed: bool, other: str
) -> None:
    kinds = [Measure.of("profit", signed=now_signed), Measure.of(other, signed=before_signed)]
    values = [DOWN if kinds[0].signed else UP, [each + 40 for each in (DOWN if kinds[1].signed else UP)]]
    now, before = (released(tmp_path / f"{n}.ledger", values[n], kinds[n]) for n in range(2))
    found = change(now, before)
    expected = [float(one - two) for one, two in zip(sums(values[0]), sums(values[1]))]
    assert found.column("p_change").to_pylist() == expected
    assert found.column("p_change_low").to_pylist() == found.column("p_change_high").to_pylist() == expected
    assert found.column("p_before").to_pylist() == [float(each) for each in sums(values[1])]
    assert found.column("n_change").to_pylist() == [0.0] * 3
    assert "n_percent" in found.column_names
    signed = now_signed or before_signed
    assert set(found.column_names) & PERCENT == (set() if signed else PERCENT)
    if not signed:
        expected = [float(100 * (one / two - 1)) for one, two in zip(sums(values[0]), sums(values[1]))]
        assert found.column("p_percent").to_pylist() == pytest.approx(expected)


@pytest.mark.parametrize("first_signed", [False, True])
@pytest.mark.costly
def test_each_of_two_years_is_verified_and_has_a_page_that_takes_the_signs_it_declares(
    tmp_path: Path, first_signed: bool
) -> None:
    kinds = [SIGNED, PLAIN] if first_signed else [PLAIN, SIGNED]
    folders = []
    for year, measure in enumerate(kinds):
        release = released(tmp_path / f"{year}.ledger", DOWN if measure.signed else UP, measure)
        folders.append(release.save(tmp_path / f"year{year}"))
        assert verify(tmp_path / f"{year}.ledger", against=[folders[-1]]) == []
        (stated,) = json.loads((folders[-1] / "release.json").read_text())["schema"]["measures"]
        assert bool(stated.get("signed")) == measure.signed
        page = (folders[-1] / "report.html").read_text().replace(" ", "")
        assert ('"signed":true' in page) == measure.signed
        loss = release.policy.loss
        assert loss({"profit": 7}) == pytest.approx(200 + 49 * 200)
        if measure.signed:
            assert loss({"profit": -7}) == loss({"profit": 7})
    before, now = map(rw.read, folders)
    assert PERCENT.isdisjoint(change(now, before).column_names)


@pytest.mark.parametrize("first_signed", [False, True])
def test_last_year_s_signed_or_plain_totals_are_this_year_s_sizes(tmp_path: Path, first_signed: bool) -> None:
    """A cell's noise is a tenth of its size, at least of the floor: a total that was negative has the floor."""
    ledger, first = tmp_path / "books.ledger", SIGNED if first_signed else PLAIN
    values = [-500, 2200, 30, 10, 20, 5] if first_signed else [500, 2200, 30, 10, 20, 5]
    release = released(tmp_path / "first.ledger", values, first)
    totals = [float(each) for each in release.table.column("p").to_pylist()]
    assert totals == [float(each) for each in sums(values)]
    sizes = [max(total, 100.0) for total in totals]
    listed = rw.Keys.of({"county": COUNTIES, "profit": totals}, size="profit", sized_on="public: last year")
    asked = rw.query().group_by("county", keys=listed)
    asked = asked.sum("profit", rw.Sized(rw.Gaussian(sigma="0.1"), floor=100), alias="p")
    with employers(
        {"id": [1, 2, 3], "county": COUNTIES, "profit": [1, 2, 3]},
        "county",
        measures={"profit": PLAIN if first_signed else SIGNED},
        ledger=ledger,
    ) as session:
        found = session.run(asked).table.column("p_sd").to_pylist()
    assert all(one / 10 * (1 - 1e-9) / 2 <= sd <= one / 10 * (1 + 1e-9) for sd, one in zip(found, sizes))


STEPS: dict[str, Any] = {"a cent": "0.01", "five": 5, "a third": "1/3", "a quarter": "1/4"}


EACH = list(zip(STEPS, ["the same", "one"] * 2)) + list(zip(STEPS, ["one", "the same"] * 2))


@pytest.mark.parametrize("name, other", few(EACH, 4))
def test_changes_are_exact_whatever_the_steps_of_both_years(tmp_path: Path, name: str, other: str) -> None:
    step = Fraction(STEPS[name])
    kinds = [Measure.of("profit", step=step), Measure.of("profit", step=step if other == "the same" else 1)]
    values = [[(each + 40 * number) * kind.step for each in UP] for number, kind in enumerate(kinds)]
    now, before = (released(tmp_path / f"{n}.ledger", values[n], kinds[n]) for n in range(2))
    found = change(now, before)
    expected = [float(one - two) for one, two in zip(sums(values[0]), sums(values[1]))]
    assert found.column("p_change").to_pylist() == pytest.approx(expected, rel=1e-12, abs=1e-12)
    low, high = (np.array(found.column(f"p_change_{end}")) for end in ("low", "high"))
    assert (low <= np.array(expected) + 1e-9).all()
    assert (high >= np.array(expected) - 1e-9).all()
    widest = 1e-9 if other == "the same" else 3 * max(1.0, float(step))
    assert (high - low <= widest).all()
    assert found.column("p_percent").to_pylist() == pytest.approx(
        [100 * (one / two - 1) for one, two in zip(map(float, sums(values[0])), map(float, sums(values[1])))], abs=1e-9
    )
