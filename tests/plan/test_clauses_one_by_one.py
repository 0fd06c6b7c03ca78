"""Every clause and modifier that SQL text may hide something in, one by one: what is not understood is refused, never left out."""

import pytest

import recordwise as rw
from recordwise.errors import SqlError
from recordwise.mechanisms.quantile import Grid
from recordwise.plan.sql.grammar import parse_predicate
from recordwise.plan.sql.parse import parse_sql

TREE = rw.TreeQuantile(grid=Grid.log(1, 100, bits=3), rho=1)
NOISE = rw.Gaussian(sigma=5)
PLAIN = "SELECT county, COUNT(*) AS n FROM t WHERE emp > 1 GROUP BY county"
CLAUSES = [
    PLAIN.replace("SELECT", "SELECT DISTINCT"),
    f"{PLAIN} HAVING COUNT(*) > 5",
    f"{PLAIN} HAVING county > 'a'",
    f"{PLAIN} ORDER BY county",
    f"{PLAIN} ORDER BY n DESC",
    f"{PLAIN} LIMIT 5",
    f"{PLAIN} LIMIT 5 OFFSET 2",
    f"{PLAIN} OFFSET 2",
    f"{PLAIN} QUALIFY ROW_NUMBER() OVER () = 1",
    f"{PLAIN} WINDOW w AS (PARTITION BY county)",
    f"{PLAIN} UNION ALL {PLAIN}",
    f"WITH c AS (SELECT 1) {PLAIN}",
    PLAIN.replace("FROM t", "FROM t USING SAMPLE 10%"),
    PLAIN.replace("FROM t", "FROM t TABLESAMPLE 10%"),
    PLAIN.replace("FROM t", "FROM t AS u"),
    PLAIN.replace("FROM t", "FROM s.t"),
    PLAIN.replace("FROM t", "FROM u"),
    PLAIN.replace("FROM t", "FROM t, u"),
    PLAIN.replace("FROM t", "FROM t JOIN u ON TRUE"),
    PLAIN.replace("FROM t", "FROM (SELECT * FROM t)"),
    PLAIN.replace("FROM t", "FROM t PIVOT (SUM(emp) FOR county IN ('a'))"),
    PLAIN.replace(" FROM t", ""),
    PLAIN.replace("GROUP BY county", "GROUP BY ALL"),
    PLAIN.replace("GROUP BY county", "GROUP BY ROLLUP (county)"),
    PLAIN.replace("GROUP BY county", "GROUP BY CUBE (county)"),
    PLAIN.replace("GROUP BY county", "GROUP BY GROUPING SETS ((county), ())"),
    PLAIN.replace("GROUP BY county", "GROUP BY naics"),
    PLAIN.replace(" GROUP BY county", ""),
    PLAIN.replace("COUNT(*)", "COUNT(*) FILTER (WHERE emp > 3)"),
    PLAIN.replace("COUNT(*)", "COUNT(*) OVER (PARTITION BY county)"),
    PLAIN.replace("COUNT(*)", "COUNT(DISTINCT *)"),
    PLAIN.replace("COUNT(*)", "COUNT(DISTINCT emp + 1)"),
    PLAIN.replace("COUNT(*)", "COUNT(* EXCLUDE (emp))"),
    PLAIN.replace("COUNT(*)", "COUNT(t.*)"),
    PLAIN.replace("COUNT(*)", "SUM(DISTINCT emp)"),
    PLAIN.replace("COUNT(*)", "SUM(emp ORDER BY emp)"),
    PLAIN.replace("COUNT(*)", "SUM(emp) FILTER (WHERE emp > 3)"),
    PLAIN.replace("COUNT(*)", "SUM(emp) OVER ()"),
    PLAIN.replace("COUNT(*)", "SUM(emp + 1)"),
    PLAIN.replace("COUNT(*)", "SUM(CASE WHEN emp > 1 THEN emp END)"),
    PLAIN.replace("COUNT(*)", "SUM(u.emp)"),
    PLAIN.replace("COUNT(*)", "AVG(DISTINCT emp)"),
    PLAIN.replace("COUNT(*)", "AVG(emp) FILTER (WHERE emp > 3)"),
    PLAIN.replace("COUNT(*)", "MAX(emp)"),
    PLAIN.replace("COUNT(*)", "COUNT(*) + 1"),
    PLAIN.replace("COUNT(*) AS n", "COUNT(*) AS n, SUM(emp) * '2' AS c"),
    PLAIN.replace("COUNT(*) AS n", "COUNT(*) AS n, SUM(emp) / COUNT(*) FILTER (WHERE emp > 3) AS c"),
    PLAIN.replace("SELECT county", "SELECT county COLLATE NOCASE"),
    PLAIN.replace("SELECT county", "SELECT UPPER(county)"),
    PLAIN.replace("SELECT county", "SELECT *"),
    PLAIN.replace("SELECT county", "SELECT county::INTEGER"),
]


@pytest.mark.parametrize("text", CLAUSES)
def test_a_clause_that_is_not_understood_is_refused(text: str) -> None:
    assert parse_sql(PLAIN, mechanisms={"n": NOISE}).statistics
    with pytest.raises(SqlError):
        parse_sql(text, mechanisms={"n": NOISE})


QUANTILES = [
    "MEDIAN(DISTINCT emp)",
    "MEDIAN(emp) FILTER (WHERE emp > 3)",
    "MEDIAN(emp + 1)",
    "QUANTILE_CONT(emp, 0)",
    "QUANTILE_CONT(emp, '0.5')",
    "QUANTILE_CONT(emp, [0.5, 0.9])",
    "QUANTILE_CONT(DISTINCT emp, 0.5)",
    "PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY emp DESC)",
    "PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY emp, pay)",
    "PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY emp + 1)",
    "PERCENTILE_CONT(1) WITHIN GROUP (ORDER BY emp)",
    "PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY emp) FILTER (WHERE emp > 3)",
    "PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY emp)",
]


@pytest.mark.parametrize("text", QUANTILES)
def test_a_quantile_that_is_not_understood_is_refused(text: str) -> None:
    for right in ("MEDIAN(emp)", "QUANTILE_CONT(emp, 0.5)", "PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY emp)"):
        (found,) = parse_sql(f"SELECT {right} AS n FROM t", mechanisms={"n": TREE}).statistics
        assert found.p == 0.5  # type: ignore[attr-defined]
    with pytest.raises(SqlError):
        parse_sql(f"SELECT {text} AS n FROM t", mechanisms={"n": TREE})


CONDITIONS = [
    "emp > 1 ORDER BY emp",
    "emp > 1 GROUP BY emp",
    "emp > 1 LIMIT 3",
    "emp > 1; SELECT 1",
    "emp > 1 -- x",
    "! (emp > 1)",
    "emp > pay",
    "emp + 1 > 2",
    "1 < emp + 1",
    "emp BETWEEN SYMMETRIC 5 AND 1",
    "county LIKE 'a%'",
    "county ILIKE 'a'",
    "county IN (SELECT 'a')",
    "county IN (naics)",
    "EXISTS (SELECT 1)",
    "emp > ALL (1, 2)",
    "emp IS TRUE",
    "emp = NULL",
    "emp <=> 1",
    "emp IS DISTINCT FROM 1",
    "SUBSTR(county, 2, 1) = 'a'",
    "SUBSTR(county, 1) = 'a'",
    "SUBSTR(county, 1, emp) = 'a'",
    "LEFT(county, -1) = 'a'",
    "LEFT('abc', 1) = 'a'",
    "RIGHT(county, 1) = 'a'",
    "EXTRACT(DAY FROM since) = 1",
    "EXTRACT(YEAR FROM since + 1) = 1",
    "CASE WHEN emp > 1 THEN TRUE ELSE FALSE END",
    "CAST(emp AS TEXT) = '1'",
    "t.s.emp > 1",
    "emp > 1e3",
    "emp > 0x10",
    "random() > 0.5",
    "TRUE",
    "emp",
]


@pytest.mark.parametrize("text", CONDITIONS)
def test_a_condition_that_is_not_understood_is_refused(text: str) -> None:
    with pytest.raises(SqlError):
        parse_predicate(text)


def test_conditions_that_mean_the_same_are_the_same() -> None:
    for one, other in (
        ("emp BETWEEN 1 AND 5", "emp >= 1 AND emp <= 5"),
        ("emp NOT BETWEEN 1 AND 5", "NOT (emp >= 1 AND emp <= 5)"),
        ("1 < emp", "emp > 1"),
        ("5 >= emp", "emp <= 5"),
        ("5 = emp", "emp = 5"),
        ("emp != 5", "emp <> 5"),
        ("county NOT IN ('a')", "NOT county IN ('a')"),
        ("county IS NOT NULL", "NOT county IS NULL"),
        ("LEFT(county, 2) = 'ab'", "SUBSTR(county, 1, 2) = 'ab'"),
        ("emp > 1_000", "emp > 1000"),
        ("emp > -1.50", "emp > -1.5"),
        ("((emp > 1))", "emp > 1"),
    ):
        assert parse_predicate(one) == parse_predicate(other), one
