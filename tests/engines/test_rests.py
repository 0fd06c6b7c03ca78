"""Published rests: a record is in exactly one cell below each listed coarser cell, in every engine and on every way there."""

from collections import Counter
from fractions import Fraction

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recordwise as rw
from engines.plain_mechanism import Plain
from recordwise.engines import engine as engine_totals
from recordwise.plan import Column, Keys, Plan, Schema, prefix
from recordwise.plan.cost import plan_policy
from recordwise.plan.expressions import ALL_OTHER
from recordwise.plan.query import query
from recordwise.plan.statistics import CountFirms, CountUnits, SumSteps

M = Plain()
SCHEMA = Schema.of(
    unit="id",
    measures={"emp": 1},
    columns={"place": Column(name="place", null="category"), "code": "text"},
    firm="firm",
)
TYPES = pa.schema(
    [("id", pa.int64()), ("emp", pa.int64()), ("place", pa.string()), ("code", pa.string()), ("firm", pa.string())]
)
CODES = ["311111", "311112", "3121", "32", "3", "44", "4411"]
KEYS = Keys.of({"place": ["a", "a", "a", None, "b"], "code": ["311111", "3121", "44", "3121", "32"]})
row = st.fixed_dictionaries(
    {
        "emp": st.integers(0, 60),
        "place": st.sampled_from(["a", "b", "c", None]),
        "code": st.sampled_from(CODES),
        "firm": st.sampled_from(["f", "g", "h"]),
    }
)
rows = st.lists(row, max_size=25).map(lambda found: [{"id": i, **each} for i, each in enumerate(found)])


def asked(condition=None):
    start = query().group_by("place").levels(prefix("code", [1, 2, 4]), "code", keys=KEYS, all_other="publish")
    start = start.count(M).sum("emp", M).count_distinct("firm", M)
    return start if condition is None else start.where(condition)


LENGTHS = (1, 2, 4, 99)


def cell_of(record, level):
    """The reference: the listed cell of a record, the rest of its coarser cell, or none."""
    listed = {(place, code[: LENGTHS[level]]) for place, code in zip(*KEYS.table.to_pydict().values())}
    own = (record["place"], record["code"][: LENGTHS[level]])
    if own in listed:
        return (*own, False) if level else own
    if level == 0:
        return None
    above = (record["place"], record["code"][: LENGTHS[level - 1]])
    coarser = {(place, code[: LENGTHS[level - 1]]) for place, code in zip(*KEYS.table.to_pydict().values())}
    return (*above, True) if above in coarser else None


def found_by(engine, plan):
    """For each table, its cells and what the engine found there."""
    answers = []
    for each in engine.totals(plan):
        exact = each.exact.reveal()
        cells = list(zip(*each.cells.to_pydict().values()))
        answers.append({total: dict(zip(cells, values.tolist())) for total, values in exact.totals.items()})
        assert all(len(by_cell) == len(cells) for by_cell in answers[-1].values())
    return answers


def expected(found, level, cells):
    inside = [(cell, record) for record in found if (cell := cell_of(record, level)) is not None]
    assert {cell for cell, _ in inside} <= set(cells)
    counts, sums = Counter(cell for cell, _ in inside), Counter()
    firms = {cell: {record["firm"] for other, record in inside if other == cell} for cell in cells}
    for cell, record in inside:
        sums[cell] += record["emp"]
    return {
        CountUnits(): {cell: counts[cell] for cell in cells},
        SumSteps("emp"): {cell: sums[cell] for cell in cells},
        CountFirms(): {cell: len(firms[cell]) for cell in cells},
    }


@pytest.mark.theorem("T-REST")
@pytest.mark.parametrize("in_memory", [True, False])
@pytest.mark.costly
def test_every_listed_cell_and_every_rest_has_its_records_and_no_others(opens, in_memory, monkeypatch):
    monkeypatch.setattr(engine_totals, "MOST_CELLS", engine_totals.MOST_CELLS if in_memory else -1)

    @settings(max_examples=opens.examples(12), deadline=None)
    @given(rows)
    def check(found):
        with opens(pa.Table.from_pylist(found, TYPES), SCHEMA, threads=1) as engine:
            answers = found_by(engine, Plan(schema=SCHEMA, queries=(asked(),)))
        for level, answer in enumerate(answers):
            cells = list(next(iter(answer.values())))
            assert answer == expected(found, level, cells)
        # Each listed coarser cell is the sum of what is below it.
        for coarse, fine, length in zip(answers, answers[1:], LENGTHS):
            for (place, code, *rest), total in coarse[SumSteps("emp")].items():
                if rest != [True]:
                    below = fine[SumSteps("emp")].items()
                    assert total == sum(v for cell, v in below if (cell[0], cell[1][:length]) == (place, code))

    check()


@pytest.mark.theorem("T-REST")
@pytest.mark.parametrize("in_memory", [True, False])
@pytest.mark.costly
def test_a_record_shifts_one_cell_of_each_table_and_is_charged_for_all_of_them(opens, in_memory, monkeypatch):
    """The record of each kind (listed at all levels, a rest at some level, in no cell) is added to the same others."""
    monkeypatch.setattr(engine_totals, "MOST_CELLS", engine_totals.MOST_CELLS if in_memory else -1)
    others = [{"id": i, "emp": 7, "place": "a", "code": code, "firm": "f"} for i, code in enumerate(CODES)]
    sigma = Fraction(10)
    start = query().group_by("place").levels(prefix("code", [1, 2, 4]), "code", keys=KEYS, all_other="publish")
    plan = Plan(schema=SCHEMA, queries=(start.sum("emp", rw.Gaussian(sigma=sigma)),))
    policy = plan_policy(plan)
    with opens(pa.Table.from_pylist(others, TYPES), SCHEMA, threads=1) as engine:
        before = found_by(engine, plan)
    shifted = {}
    for place, code in [("a", "311112"), ("a", "32"), ("c", "311111"), (None, "3122")]:
        more = {"id": 99, "emp": 40, "place": place, "code": code, "firm": "g"}
        with opens(pa.Table.from_pylist([*others, more], TYPES), SCHEMA, threads=1) as engine:
            after = found_by(engine, plan)
        changes = [
            [
                abs(value - old[total][cell])
                for total in new
                for cell, value in new[total].items()
                if value != old[total][cell]
            ]
            for old, new in zip(before, after)
        ]
        assert all(len(each) <= 1 and all(size == 40 for size in each) for each in changes)
        shifted[place, code] = sum(map(len, changes))
        loss = sum(Fraction(40) ** 2 / (2 * sigma**2 * 4) for _ in range(shifted[place, code]))
        assert policy.loss({"emp": 40, "place": place, "code": code}) >= float(loss)
    # Of four tables: a rest at the last; at the second (and nowhere below); in no cell at all; a rest at the third.
    assert shifted == {("a", "311112"): 4, ("a", "32"): 2, ("c", "311111"): 0, (None, "3122"): 3}


def test_rests_of_quantiles_hold_the_records_that_no_listed_cell_has(opens):
    found = [{"id": i, "emp": i, "place": "a", "code": code, "firm": "f"} for i, code in enumerate(CODES)]
    start = query().group_by("place").levels(prefix("code", [1, 2]), keys=KEYS, all_other="publish")
    plan = Plan(
        schema=SCHEMA,
        queries=(start.quantile("emp", p="0.5", grid=rw.mechanisms.Grid.linear(0, 8, bits=3), rho=1, alias="median"),),
    )
    with opens(pa.Table.from_pylist(found, TYPES), SCHEMA, threads=1) as engine:
        fine = engine.totals(plan)[1]
    (bins,) = fine.exact.reveal().bins.values()
    cells = list(zip(*fine.cells.to_pydict().values()))
    held = Counter()
    for position, number in zip(bins.position.tolist(), bins.held.tolist()):
        held[cells[position]] += number
    # 32 and 3 are in the rest of 3, all others of place a in listed cells.
    assert held == {("a", "31", False): 3, ("a", "3", True): 2, ("a", "44", False): 2}


def test_a_rest_is_listed_once_for_each_coarser_cell_and_marked(opens):
    with opens(pa.Table.from_pylist([], TYPES), SCHEMA) as engine:
        coarse, fine, *_ = engine.totals(Plan(schema=SCHEMA, queries=(asked(),)))
    assert ALL_OTHER not in coarse.cells.column_names
    assert fine.cells.filter(fine.cells[ALL_OTHER]).drop_columns([ALL_OTHER]).to_pydict() == {
        "place": ["a", "a", "b", None],
        "code2": ["3", "4", "3", "3"],
    }
