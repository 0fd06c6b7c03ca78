"""Constants that no 64-bit column can hold: both engines select what three-valued logic says, and NULL is never let in for free."""

from fractions import Fraction

import pyarrow as pa
import pytest

from build import exact_totals
from engines.plain_mechanism import Plain
from recordwise.errors import PlanError
from recordwise.plan import Case, Column, Group, Keys, Measure, Plan, Schema, Splitting, prefix
from recordwise.plan.cost import plan_policy
from recordwise.plan.query import query
from recordwise.plan.sql.grammar import parse_predicate
from recordwise.policy import by

M = Plain(at=Fraction(1))
SIZES = {"none": None, "least": -(2**63), "below": -1, "zero": 0, "five": 5, "most": 2**63 - 1}
SCHEMA = Schema.of(
    unit="id",
    measures={"emp": Measure.of("emp", step=1, bound=2**62)},
    columns={"who": "text", "size": Column(name="size", type="integer", null="category")},
)
TABLE = pa.table(
    {
        "id": range(len(SIZES)),
        "who": list(SIZES),
        "size": pa.array(SIZES.values(), pa.int64()),
        "emp": [2**62, 3, 3, 3, 3, 3],
    }
)
KEYS = Keys.of({"who": list(SIZES)})
FAR = [2**63, -(2**63) - 1, 10**20, -(10**20), 10**38, 10**45, -(10**45)]
HELD = [2**63 - 1, -(2**63), 0]
COMPARISONS = {
    "<": lambda x, c: x < c,
    "<=": lambda x, c: x <= c,
    ">": lambda x, c: x > c,
    ">=": lambda x, c: x >= c,
    "=": lambda x, c: x == c,
    "<>": lambda x, c: x != c,
}


def cases():
    """Conditions in SQL, and what each is of a size that is known."""
    for constant in [*FAR, *HELD]:
        for sign, test in COMPARISONS.items():
            told = f"size {sign} {constant}"
            yield told, lambda x, c=constant, test=test: test(x, c)
            yield f"NOT ({told})", lambda x, c=constant, test=test: not test(x, c)
    yield "size < 9223372036854775807.5", lambda x: True
    yield "NOT (size > 99999999999999999999.25)", lambda x: True
    yield f"size IN ({10**20}, 5)", lambda x: x == 5
    yield f"size NOT IN ({10**20}, 5)", lambda x: x != 5
    yield f"size NOT IN ({10**20}, {-(10**45)})", lambda x: True
    yield f"size IN ({10**45}, {2**63})", lambda x: False
    yield f"size BETWEEN {-(10**20)} AND {10**45}", lambda x: True
    yield f"size NOT BETWEEN {-(10**20)} AND 4", lambda x: x > 4
    yield f"size < {10**20} AND size > {-(10**20)}", lambda x: True
    yield f"NOT (size > {10**20} OR size = {10**40})", lambda x: True


def counts(opens, *queries):
    plan = Plan(schema=SCHEMA, queries=queries)
    with opens(TABLE, SCHEMA) as engine:
        return [exact_totals(each)[0] for each in engine.totals(plan)]


def selected(test):
    """Keys are sorted by their text."""
    known = {who: size is not None and test(size) for who, size in SIZES.items()}
    return [int(known[who]) for who in sorted(known)]


def counted(text):
    return query().where(text).group_by("who", keys=KEYS).count(M)


@pytest.mark.theorem("T-COMPARE")
@pytest.mark.costly
def test_conditions_beside_one_another_select_what_logic_says(opens):
    found = opens.some(list(cases()))
    assert counts(opens, *(counted(text) for text, _ in found)) == [selected(test) for _, test in found]


@pytest.mark.parametrize("text", [f"size < {10**20}", f"NOT (size > {10**20})", f"size NOT IN ({10**20}, {2**63})"])
def test_a_condition_alone_selects_every_size_and_no_null(opens, text):
    assert counts(opens, counted(text)) == [selected(lambda x: True)]


def test_who_is_selected_is_charged():
    """Losses of count queries are constant: 0 for who cannot be selected, the whole loss for who can."""
    for text, test in cases():
        policy = plan_policy(Plan(schema=SCHEMA, queries=(counted(text),)))
        charged = [policy.loss({"size": SIZES[who], "who": who}) > 0 for who in sorted(SIZES)]
        assert charged == [bool(each) for each in selected(test)], text


def test_cases_with_far_constants_put_null_where_logic_does(opens):
    group = Case(
        branches=((parse_predicate(f"size < {10**20}"), "known"), (parse_predicate("size IS NULL"), "null")),
        default="else",
    )
    other = Case(branches=((parse_predicate(f"NOT (size > {-(10**45)})"), "low"),), default="else")
    by_group = query().group_by(Group("g", group), keys=Keys.of({"g": ["else", "known", "null"]})).count(M)
    by_other = query().group_by(Group("g", other), keys=Keys.of({"g": ["else", "low"]})).count(M)
    assert counts(opens, by_group, by_other) == [[0, 5, 1], [6, 0]]


def test_a_case_label_beyond_64_bits_is_refused():
    group = Case(branches=((parse_predicate("size = 0"), Fraction(2**63)),), default=Fraction(0))
    with pytest.raises(PlanError, match="all text or all 64-bit whole numbers"):
        plan_policy(
            Plan(schema=SCHEMA, queries=(query().group_by(Group("g", group), keys=Keys.of({"g": [0]})).count(M),))
        )


@pytest.mark.parametrize("at", [2**62, 10**20, 10**45])
def test_thresholds_that_no_record_reaches_make_one_piece_of_each(opens, at):
    """NULL has the default, like every size that the thresholds do not list."""
    grouped = by("size", {10**20: 1, 5: at}, default=at)
    for threshold in (at, grouped):
        with opens(TABLE, SCHEMA) as engine:
            rows = engine.split_table(Splitting.of({"emp": threshold})).reveal()
        assert rows.column("emp").to_pylist() == TABLE.column("emp").to_pylist()
        assert set(rows.column("piece").to_pylist()) == {1}


def test_sums_clamped_beyond_64_bits_are_the_sums(opens):
    clamped = Plain(at=Fraction(1))
    object.__setattr__(clamped, "to", Fraction(10**45))
    levels = query().levels(*prefix("who", [1, 5]), keys=KEYS).sum("emp", clamped)
    assert sum(counts(opens, levels)[1]) == 2**62 + 15
