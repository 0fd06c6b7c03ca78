"""SQL text and the builder make the same plan object."""

from fractions import Fraction

import pytest

import recordwise.plan.sql.gate as guard
from recordwise.errors import ParameterError, PlanError, SqlError
from recordwise.mechanisms.base import Mechanism
from recordwise.plan import Case, Field, Group, Keys, Plan, Prefix, Schema, parse_sql, prefix
from recordwise.plan.expressions import And, Compare, In, IsNull, Not, Or
from recordwise.plan.query import query
from recordwise.plan.sql.grammar import parse_predicate
from recordwise.policy import constant, gaussian_sum


class Fixed(Mechanism):
    def policy(self, measure, *, tight=True):
        return gaussian_sum(measure, sigma=1)

    def policy_of_count(self):
        return constant("0.1")


A, B, C = Fixed(), Fixed(), Fixed()
KEYS = Keys.product(county=["01", "02"], naics3=["311", "312"])
SCHEMA = Schema.of(
    unit="id",
    measures={"emp": 1, "pay": "0.01"},
    columns={"county": "text", "naics": "text", "size": "integer"},
    firm="firm",
)


def test_sql_and_builder_make_equal_queries():
    text = """SELECT county, LEFT(naics, 3) AS naics3, COUNT(*), SUM(emp) AS jobs, COUNT(DISTINCT firm)
              FROM t WHERE county <> '99' AND (emp >= 5 OR size BETWEEN 1 AND 3) GROUP BY county, naics3"""
    read = parse_sql(text, mechanisms={"*": A, "jobs": B, "firm": C}, keys=KEYS)
    built = (
        query()
        .where("county <> '99' AND (emp >= 5 OR size BETWEEN 1 AND 3)")
        .group_by("county", prefix("naics", 3), keys=KEYS)
        .count(A)
        .sum("emp", B, alias="jobs")
        .count_distinct("firm", C)
    )
    assert read == built
    assert Plan(schema=SCHEMA, queries=(read,)) == Plan(schema=SCHEMA, queries=(built,))
    assert read != built.where("emp > 1")


def test_aliases_and_order_are_kept():
    read = parse_sql(
        "SELECT SUM(emp) AS b, SUM(pay) AS a, SUBSTR(naics, 1, 2) AS sector FROM t GROUP BY SUBSTR(naics, 1, 2)",
        mechanisms={"a": A, "emp": B},
    )
    assert [statistic.alias for statistic in read.statistics] == ["b", "a"]
    assert [statistic.mechanism for statistic in read.statistics] == [B, A]
    assert read.groups == (Group("sector", Prefix("naics", 2)),)


def test_case_becomes_a_named_group():
    read = parse_sql(
        "SELECT CASE WHEN emp < 5 THEN 'small' WHEN emp < 50 THEN 'middle' ELSE 'large' END AS class, COUNT(*) FROM t "
        "GROUP BY class",
        mechanisms={"*": A},
    )
    small = Compare(Field("emp"), "<", Fraction(5)), "small"
    middle = Compare(Field("emp"), "<", Fraction(50)), "middle"
    assert read.groups == (Group("class", Case((small, middle), "large")),)


@pytest.mark.parametrize(
    "text, tree",
    [
        ("a = 'x'", Compare(Field("a"), "=", "x")),
        ("5 < b", Compare(Field("b"), ">", Fraction(5))),
        ("b != -2.50", Compare(Field("b"), "<>", Fraction(-5, 2))),
        ("a IN ('x', 'it''s')", In(Field("a"), ("x", "it's"))),
        ("a NOT IN ('x')", Not(In(Field("a"), ("x",)))),
        ("a IS NOT NULL", Not(IsNull(Field("a")))),
        ("LEFT(a, 2) = '31'", Compare(Prefix("a", 2), "=", "31")),
        ("c = TRUE", Compare(Field("c"), "=", True)),
        ('"odd name" = 1', Compare(Field("odd name"), "=", Fraction(1))),
        ("a = 'é ﷽'", Compare(Field("a"), "=", "é ﷽")),
        ("a = '--no comment /* */ ; drop'", Compare(Field("a"), "=", "--no comment /* */ ; drop")),
        (
            "a = 'x' AND b = 1 AND c = FALSE",
            And(
                (Compare(Field("a"), "=", "x"), Compare(Field("b"), "=", Fraction(1)), Compare(Field("c"), "=", False))
            ),
        ),
        (
            "NOT (b > 1 OR b < 0)",
            Not(Or((Compare(Field("b"), ">", Fraction(1)), Compare(Field("b"), "<", Fraction(0))))),
        ),
    ],
)
def test_conditions_are_read_as_trees(text, tree):
    assert parse_predicate(text) == tree


@pytest.mark.parametrize(
    "operator, mirrored", [("<", ">"), ("<=", ">="), (">", "<"), (">=", "<="), ("=", "="), ("<>", "<>")]
)
def test_a_constant_on_the_left_is_read_like_one_on_the_right(operator, mirrored):
    assert parse_predicate(f"5 {operator} b") == Compare(Field("b"), mirrored, 5) == parse_predicate(f"b {mirrored} 5")
    assert parse_predicate(f"-5 {operator} b") == Compare(Field("b"), mirrored, -5)


MENDED = [
    "SELECT COUNT(*) FROM t GROUP BY",
    "SELECT COUNT(*) FROM t GROUP BY county WHERE emp = 1",
    "SELECT , COUNT(*) FROM t",
]


@pytest.mark.parametrize("text", MENDED)
def test_text_that_only_one_of_two_parsers_understands_is_refused(text, monkeypatch):
    """Our parser mends it, so that DuckDB's own is all that stands between a guess and a query."""
    with pytest.raises(SqlError, match="DuckDB's parser"):
        parse_sql(text, mechanisms={"*": A})
    monkeypatch.setattr(guard, "one_select", lambda text: True)
    assert parse_sql(text, mechanisms={"*": A}).statistics


@pytest.mark.costly
def test_a_long_chain_and_a_long_list_are_read_without_recursion():
    chain = parse_predicate(" OR ".join(f"b = {i}" for i in range(1500)))
    assert len(chain.parts) == 1500
    listed = parse_predicate("b IN (" + ", ".join(str(-i) for i in range(5000)) + ")")
    assert len(listed.literals) == 5000


@pytest.mark.parametrize(
    "text, mechanisms, problem",
    [
        ("SELECT COUNT(*) FROM t", {}, "no mechanism for '\\*'"),
        ("SELECT COUNT(*) FROM t", {"*": A, "emp": B}, "no statistic for the mechanism of emp"),
        ("SELECT county, COUNT(*) FROM t", {"*": A}, "selected but not grouped by"),
        ("SELECT county FROM t GROUP BY county", {}, "no COUNT and no SUM"),
        ("SELECT COUNT(*) FROM t GROUP BY CASE WHEN emp < 1 THEN 'a' ELSE 'b' END", {"*": A}, "does not name"),
        ("SELECT CASE WHEN emp < 1 THEN 'a' END AS c, COUNT(*) FROM t GROUP BY c", {"*": A}, "CASE without ELSE"),
    ],
)
def test_statements_that_say_too_little_are_refused(text, mechanisms, problem):
    with pytest.raises(SqlError, match=problem):
        parse_sql(text, mechanisms=mechanisms)


def test_every_problem_of_a_plan_is_told_at_once():
    bad = (
        query()
        .where("nowhere = 1 AND county > 3 AND LEFT(size, 2) = '1'")
        .group_by("emp", prefix("size", 2), Group("county", Field("naics")))
        .sum("county", A, alias="emp")
        .count_distinct("naics", A)
    )
    with pytest.raises(PlanError) as caught:
        Plan(schema=SCHEMA, queries=(bad,))
    told = " ".join(caught.value.problems)
    for part in (
        "'county' is summed but is not a measure",
        "COUNT(DISTINCT naics)",
        "'nowhere' is used in a condition",
        "'county' is compared with a constant that is not of type text",
        "a prefix of 'size' needs a column of type text",
        "'emp' is a group but not a conditional column",
        "the group 'county' has the name of another column",
        "the name 'emp' is used twice",
        "no public keys",
    ):
        assert part in told
    assert "Nothing was read" in str(caught.value)


def test_a_plan_without_queries_or_statistics_is_refused():
    with pytest.raises(PlanError, match="no query"):
        Plan(schema=SCHEMA, queries=())
    with pytest.raises(PlanError, match="no statistic"):
        Plan(schema=SCHEMA, queries=(query(),))


def test_a_mechanism_without_a_policy_is_refused():
    with pytest.raises(ParameterError, match="no policy"):
        query().count(5)


def test_shares_add_up_to_one_and_multiply_over_axes():
    asked = (
        query().levels(prefix("naics", [2, 3]), share=["0.25", "0.75"]).levels("county", "size", share=["1/3", "2/3"])
    )
    assert [level.share for level in asked.tables()] == [
        Fraction(1, 12),
        Fraction(1, 6),
        Fraction(1, 4),
        Fraction(1, 2),
    ]
    assert asked.tables()[0].names() == ("naics2", "county")
    with pytest.raises(ParameterError, match="add up to 1"):
        query().levels(prefix("naics", [2, 3]), share=[0.3, 0.3])
    with pytest.raises(ParameterError, match="add up to 1"):
        query().levels(prefix("naics", [2, 3]), share=[0.7, 0.7])


@pytest.mark.parametrize(
    "roles, problem",
    [
        ({"measures": {"id": 1}}, "two roles"),
        ({"measures": {"emp": 1}, "columns": {"EMP": "text"}}, "two roles"),
        ({"measures": {"emp": 0}}, "above 0"),
        ({"columns": {"a": "day"}}, "text, integer, boolean or date"),
        ({"measures": {"": 1}}, "empty column name"),
    ],
)
def test_a_schema_that_makes_no_sense_is_refused(roles, problem):
    with pytest.raises(ParameterError, match=problem):
        Schema.of(unit="id", **roles)


@pytest.mark.parametrize(
    ("written", "read"), [("=", "="), ("<>", "<>"), ("<", ">"), ("<=", ">="), (">", "<"), (">=", "<=")]
)
def test_a_constant_on_the_left_turns_the_comparison_round(written, read):
    assert parse_predicate(f"5 {written} emp") == Compare(Field("emp"), read, Fraction(5))
    assert parse_predicate(f"-5 {written} emp") == Compare(Field("emp"), read, Fraction(-5))


def test_between_holds_both_of_its_ends():
    low, high = Compare(Field("emp"), ">=", Fraction(1)), Compare(Field("emp"), "<=", Fraction(3))
    assert parse_predicate("emp BETWEEN 1 AND 3") == And((low, high))


def test_a_condition_that_cannot_be_parsed_is_called_a_condition():
    with pytest.raises(SqlError, match=r"cannot parse the condition"):
        query().where("emp >>> 3")
