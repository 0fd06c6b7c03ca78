"""Levels rolled up in memory by codes equal levels rolled up by the engine's own SQL, to the last unit."""

import numpy as np
import pyarrow as pa
import pytest

from build import exact_totals
from engines.plain_mechanism import Plain
from recordwise.engines import DuckDB
from recordwise.engines import engine as passes
from recordwise.engines import engine as rolling
from recordwise.plan import Column, Keys, Measure, Plan, Schema, prefix
from recordwise.plan.query import query

M = Plain()
LETTERS = ["a", "\u00e9", "e\u0301", "\U0001f986", "\U0001f469\u200d\U0001f680", "\u00df", "\u4e2d", " ", "0", "1"]


def made(rows: int, seed: int) -> pa.Table:
    """Codes of odd letters, NULL among them, truth values, whole numbers, values of every size."""
    chance = np.random.default_rng(seed)
    codes = ["".join(chance.choice(LETTERS, chance.integers(0, 6))) for _ in range(40)]
    return pa.table(
        {
            "id": np.arange(rows),
            "code": pa.array(chance.choice(codes, rows)),
            "kind": pa.array(chance.choice(["x", "y", None], rows), pa.string()),
            "flag": chance.random(rows) < 0.3,
            "size": chance.integers(-3, 3, rows),
            "emp": chance.integers(0, 2 ** int(chance.integers(1, 40)), rows),
            "firm": chance.integers(0, rows // 2, rows),
        }
    )


SCHEMA = Schema.of(
    unit="id",
    firm="firm",
    measures={"emp": Measure.of("emp", step=1, bound=2**62)},
    columns={"code": "text", "kind": Column(name="kind", null="category"), "flag": "boolean", "size": "integer"},
)


def asked(table: pa.Table, seed: int) -> Plan:
    """Levels of a code beside NULL, truth values and numbers; keys that miss some cells and list others nobody is in."""
    chance = np.random.default_rng(seed)
    codes = [code for code in set(table["code"].to_pylist()) if chance.random() < 0.7] + ["nobody"]
    keys = Keys.product(code=codes, kind=["x", None], flag=[True, False])
    sizes = Keys.of({"size": [-3, 0, 2, 99]})
    by_code = query().where("emp > 3").group_by("kind", "flag", keys=keys).levels(prefix("code", [1, 2, 5]))
    plain = query().group_by("size", keys=sizes).count(M).sum("emp", M)
    cases = query().count(M).sum("emp", M).count_distinct("firm", M)
    return Plan(schema=SCHEMA, queries=(by_code.count(M).sum("emp", M).count_distinct("firm", M), plain, cases))


def totals(source, plan):
    with DuckDB(source, plan.schema, threads=1) as engine:
        answers = engine.totals(plan)
    return [exact_totals(answer) for answer in answers]


@pytest.mark.theorem("T-ROLLUP")
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.costly
def test_codes_and_sql_give_the_same_totals(seed, monkeypatch):
    table = made(900, seed)
    plan = asked(table, seed)
    used = []
    real = rolling.CodedCells.totals
    monkeypatch.setattr(rolling.CodedCells, "totals", lambda self, *more: used.append(1) or real(self, *more))
    coded = totals(table, plan)
    assert len(used) == len(plan.tables())
    monkeypatch.setattr(passes, "MOST_CELLS", -1)
    assert totals(table, plan) == coded
    assert len(used) == len(plan.tables())
    assert sum(coded[0][0]) > 0


def test_a_table_whose_look_up_would_be_too_large_is_rolled_up_by_sql(monkeypatch):
    table = made(500, 1)
    plan = asked(table, 1)
    coded = totals(table, plan)
    monkeypatch.setattr(rolling, "MOST_PLACES", 3)
    assert totals(table, plan) == coded


def test_totals_beyond_64_bits_are_exact():
    """Sums of 2^62 a record do not fit 64 bits; the way that adds 64-bit numbers declines them."""
    schema = Schema.of(unit="id", measures={"emp": Measure.of("emp", step=1, bound=2**62)}, columns={"code": "text"})
    table = pa.table({"id": range(8), "emp": [2**62 - each for each in range(8)], "code": list("abababab")})
    keys = Keys.of({"code": ["a", "b"]})
    plan = Plan(schema=schema, queries=(query().group_by("code", keys=keys).sum("emp", M), query().sum("emp", M)))
    found = totals(table, plan)
    assert found == [[[4 * 2**62 - 12, 4 * 2**62 - 16]], [[8 * 2**62 - 28]]]


def test_totals_just_below_the_limit_do_not_wrap():
    schema = Schema.of(unit="id", measures={"emp": Measure.of("emp", step=1, bound=2**62)}, columns={"code": "text"})
    table = pa.table({"id": range(3), "emp": [2**61, 2**61 - 1, 5], "code": ["a1", "a2", "a3"]})
    keys = Keys.of({"code": ["a1", "a2", "a3"]})
    levels = query().group_by(keys=keys).levels(*prefix("code", [1, 2])).sum("emp", M)
    assert totals(table, Plan(schema=schema, queries=(levels,))) == [[[2**62 + 4]], [[2**61, 2**61 - 1, 5]]]


@pytest.mark.parametrize(
    ("groups", "why"),
    [
        ([1, 1, 1], "each cell fits, their total of 3 * 2^62 does not fit 63 bits"),
        ([2, 1, 0], "a cell of 2^63 has its highest bit set, which reads as a negative number"),
        ([4, 1, 0], "a cell of 2^64 has nothing in its low word"),
    ],
    ids=["total", "sign", "high word"],
)
def test_sums_that_64_bits_cannot_add_up_are_left_to_the_engine(groups, why, monkeypatch):
    """Each part of the guard alone keeps one of these from wrapping: dropping it gives a wrong total."""
    schema = Schema.of(unit="id", measures={"emp": Measure.of("emp", step=1, bound=2**62)}, columns={"code": "text"})
    codes = [f"a{place}" for place, count in enumerate(groups) for _ in range(count)]
    table = pa.table({"id": range(len(codes)), "emp": [2**62] * len(codes), "code": codes})
    keys = Keys.of({"code": ["a0", "a1", "a2"]})
    levels = query().group_by(keys=keys).levels(*prefix("code", [1, 2])).sum("emp", M)
    coded = []
    real = rolling.CodedCells.of
    monkeypatch.setattr(rolling.CodedCells, "of", lambda *given: coded.append(real(*given)) or coded[-1])
    wanted = [[[sum(groups) * 2**62]], [[count * 2**62 for count in groups]]]
    assert totals(table, Plan(schema=schema, queries=(levels,))) == wanted, why
    assert coded == [None]
