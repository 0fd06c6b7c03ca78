"""A hundred attempts to make SQL text do more than count and add up. All are refused before anything runs."""

import pytest
import sqlglot

from recordwise.errors import SqlError
from recordwise.mechanisms.base import Mechanism
from recordwise.plan import parse_sql
from recordwise.plan.sql.gate import read_statement
from recordwise.plan.sql.grammar import parse_predicate


class Fixed(Mechanism):
    def policy(self, measure, *, tight=True):
        raise AssertionError("nothing may ask for a policy")


STATEMENTS = [
    # reading files and other tables
    "SELECT COUNT(*) FROM 'records.parquet'",
    'SELECT COUNT(*) FROM "records.parquet"',
    "SELECT COUNT(*) FROM read_csv('/etc/passwd')",
    "SELECT COUNT(*) FROM read_parquet('*.parquet')",
    "SELECT COUNT(*) FROM read_text('/etc/hostname')",
    "SELECT COUNT(*) FROM glob('*')",
    "SELECT COUNT(*) FROM sqlite_scan('x.db', 'y')",
    "SELECT COUNT(*) FROM source",
    "SELECT COUNT(*) FROM records",
    "SELECT COUNT(*) FROM information_schema.tables",
    "SELECT COUNT(*) FROM main.t",
    "SELECT COUNT(*) FROM duckdb_settings()",
    "SELECT COUNT(*) FROM range(1000000000)",
    "SELECT COUNT(*) FROM 'http://example.org/x.csv'",
    "FROM t",
    "FROM t SELECT COUNT(*), emp",
    "TABLE t",
    "SELECT COUNT(*)",
    "VALUES (1)",
    # several tables, subqueries, sets
    "SELECT COUNT(*) FROM t, t AS u",
    "SELECT COUNT(*) FROM t AS u",
    "SELECT COUNT(*) FROM t JOIN t AS u ON t.id = u.id",
    "SELECT COUNT(*) FROM t CROSS JOIN t",
    "SELECT COUNT(*) FROM t POSITIONAL JOIN t",
    "SELECT COUNT(*) FROM (SELECT * FROM t)",
    "SELECT COUNT(*) FROM t WHERE emp IN (SELECT emp FROM t)",
    "SELECT COUNT(*) FROM t WHERE EXISTS (SELECT 1)",
    "SELECT COUNT(*) FROM t WHERE emp = (SELECT MAX(emp) FROM t)",
    "SELECT COUNT(*) FROM t UNION SELECT COUNT(*) FROM t",
    "SELECT COUNT(*) FROM t EXCEPT SELECT COUNT(*) FROM t",
    "WITH u AS (SELECT * FROM t) SELECT COUNT(*) FROM t",
    "WITH RECURSIVE u AS (SELECT 1) SELECT COUNT(*) FROM t",
    "SELECT COUNT(*), (SELECT MAX(emp) FROM t) FROM t",
    "SELECT COUNT(*) FROM t, LATERAL (SELECT 1) AS l",
    "PIVOT t ON county USING COUNT(*)",
    "UNPIVOT t ON emp INTO NAME n VALUE v",
    # clauses beside the whitelist
    "SELECT DISTINCT COUNT(*) FROM t",
    "SELECT DISTINCT ON (county) county, COUNT(*) FROM t GROUP BY county",
    "SELECT COUNT(*) FROM t HAVING COUNT(*) > 1",
    "SELECT COUNT(*) FROM t ORDER BY 1",
    "SELECT COUNT(*) FROM t LIMIT 1",
    "SELECT COUNT(*) FROM t OFFSET 1",
    "SELECT county, COUNT(*) FROM t GROUP BY ALL",
    "SELECT county, COUNT(*) FROM t GROUP BY 1",
    "SELECT county, COUNT(*) FROM t GROUP BY ROLLUP (county)",
    "SELECT county, COUNT(*) FROM t GROUP BY CUBE (county)",
    "SELECT county, COUNT(*) FROM t GROUP BY GROUPING SETS ((county), ())",
    "SELECT COUNT(*) FROM t USING SAMPLE 10%",
    "SELECT COUNT(*) FROM t TABLESAMPLE RESERVOIR (10)",
    "SELECT COUNT(*) FROM t QUALIFY ROW_NUMBER() OVER () = 1",
    "SELECT COUNT(*) INTO u FROM t",
    "SELECT COUNT(*) FROM t FOR UPDATE",
    "SELECT COUNT(*) FROM t WINDOW w AS (ORDER BY emp)",
    # other functions and aggregates
    "SELECT COUNT(emp) FROM t",
    "SELECT COUNT(*) FILTER (WHERE emp > 1) FROM t",
    "SELECT COUNT(*) OVER () FROM t",
    "SELECT COUNT(DISTINCT firm, county) FROM t",
    "SELECT SUM(emp * 1000) FROM t",
    "SELECT SUM(-emp) FROM t",
    "SELECT SUM(DISTINCT emp) FROM t",
    "SELECT SUM(emp) + 1 FROM t",
    "SELECT SUM(emp) / COUNT(*) FROM t",
    "SELECT MAX(emp) FROM t",
    "SELECT MIN(emp) FROM t",
    "SELECT LIST(emp) FROM t",
    "SELECT STRING_AGG(county, ',') FROM t",
    "SELECT FIRST(emp) FROM t",
    "SELECT ARG_MAX(id, emp) FROM t",
    "SELECT emp FROM t",
    "SELECT * FROM t",
    "SELECT t.* FROM t",
    "SELECT COLUMNS('.*') FROM t",
    "SELECT SUM(t.emp) FROM t",
    "SELECT getenv('HOME'), COUNT(*) FROM t",
    "SELECT UPPER(county), COUNT(*) FROM t GROUP BY UPPER(county)",
    "SELECT COUNT(*) FROM t WHERE RANDOM() < 0.5",
    "SELECT SUBSTR(naics, 2, 3), COUNT(*) FROM t GROUP BY SUBSTR(naics, 2, 3)",
    "SELECT LEFT(naics, emp), COUNT(*) FROM t GROUP BY LEFT(naics, emp)",
    "SELECT LEFT(naics, 1000000000), COUNT(*) FROM t GROUP BY LEFT(naics, 1000000000)",
    # other statements
    "PRAGMA database_list",
    "SET memory_limit = '1TB'",
    "ATTACH 'x.db' AS x",
    "DETACH x",
    "COPY t TO 'out.csv'",
    "COPY (SELECT COUNT(*) FROM t) TO 'out.csv'",
    "EXPORT DATABASE 'dump'",
    "INSTALL httpfs",
    "LOAD 'x.so'",
    "CREATE TABLE u AS SELECT * FROM t",
    "CREATE MACRO f(x) AS x",
    "INSERT INTO t VALUES (1)",
    "UPDATE t SET emp = 0",
    "DELETE FROM t",
    "DROP TABLE t",
    "CALL pragma_version()",
    "EXPLAIN ANALYZE SELECT COUNT(*) FROM t",
    "DESCRIBE t",
    "SUMMARIZE t",
    "CHECKPOINT",
    "PREPARE p AS SELECT COUNT(*) FROM t",
    # several statements, comments, strange text
    "SELECT COUNT(*) FROM t; DROP TABLE t",
    "SELECT COUNT(*) FROM t;; SELECT 1",
    "SELECT COUNT(*) FROM t -- harmless",
    "SELECT COUNT(*) /* hidden */ FROM t",
    "SELECT /*+ HINT */ COUNT(*) FROM t",
    "SELECT COUNT(*) FROM t --",
    "SELECT COUNT(*) FROM t /* never closed",
    "SELECT COUNT(*) FROM t WHERE county = 'a' --' AND emp = 1",
    "",
    "   ",
    ";",
    "SELECT COUNT(*) FROM t WHERE county = 'open",
    "SELECT\u00a0COUNT(*) FROM t",
    "SELECT COUNT(*) FROM\u200bt",
    "ＳＥＬＥＣＴ COUNT(*) FROM t",
    "SELECT COUNT(*) FROM \u0442",
    "SELECT COUNT(*) FROM t WHERE county = \u2019a\u2019",
    "SELECT COUNT(*) FROM t\x00; DROP TABLE t",
    "SELECT COUNT(*) FROM t WHERE county = E'\\x41'",
    "SELECT COUNT(*) FROM t WHERE county = $$a$$",
    "SELECT COUNT(*) FROM t WHERE county = x'41'",
    "SELECT COUNT(*) FROM t WHERE emp = ?",
    "SELECT COUNT(*) FROM t WHERE emp = $1",
    "SELECT COUNT(*) FROM t WHERE emp = 1e400",
    "SELECT COUNT(*) FROM t WHERE emp = 0x10",
    "SELECT COUNT(*) FROM t WHERE emp = " + "9" * 400,
    "SELECT COUNT(*) FROM t WHERE " + "(" * 5000 + "emp = 1" + ")" * 5000,
    "SELECT COUNT(*) FROM t WHERE " + "NOT " * 5000 + "emp = 1",
    "SELECT COUNT(*) FROM t WHERE emp = " + "- " * 5000 + "1",
    "SELECT COUNT(*) FROM t WHERE " + "CASE WHEN " * 500 + "emp = 1",
    "SELECT COUNT(*) FROM t WHERE " + " OR ".join(["emp = 1"] * 5000),
    "SELECT COUNT(*) FROM t WHERE county IN (" + "'x', " * 200_000 + "'y')",
]

CONDITIONS = [
    "1 = 1",
    "emp = emp",
    "emp + 1 > 2",
    "emp / 0 = 1",
    "county LIKE '%a%'",
    "county ~ '(a+)+$'",
    "county SIMILAR TO 'a*'",
    "county || 'x' = 'ax'",
    "CAST(county AS INTEGER) = 1",
    "county::INTEGER = 1",
    "emp > 1 GROUP BY county",
    "emp > 1 LIMIT 1",
    "emp > 1; DROP TABLE t",
    "emp > 1 UNION SELECT 2",
    "emp > (SELECT 1)",
    "emp IN (1, emp)",
    "emp IN ()",
    "emp = NULL",
    "emp IS DISTINCT FROM 1",
    "emp IS TRUE",
    "COALESCE(emp, 1) = 1",
    "error('leak') = 'x'",
    "emp = ANY([1, 2])",
    "emp BETWEEN 1 AND (SELECT 2)",
    "emp > 1 OR read_text('/etc/passwd') = ''",
    "(emp, pay) = (1, 2)",
    "emp[1] = 1",
    "s.field = 1",
    "CURRENT_USER = 'x'",
    "emp = CURRENT_DATE",
    "TRUE",
    "NULL",
    "",
]


def test_there_are_more_than_a_hundred_attempts():
    assert len(set(STATEMENTS)) == len(STATEMENTS) >= 100
    assert len(set(CONDITIONS)) == len(CONDITIONS)


@pytest.mark.parametrize("text", STATEMENTS, ids=lambda text: ascii(text[:50]))
def test_a_hostile_statement_is_refused(text):
    with pytest.raises(SqlError) as caught:
        parse_sql(text, mechanisms={"*": Fixed(), "emp": Fixed(), "firm": Fixed()})
    assert "Nothing ran" in str(caught.value)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("text", CONDITIONS, ids=lambda text: ascii(text[:50]))
def test_a_hostile_condition_is_refused(text):
    with pytest.raises(SqlError):
        parse_predicate(text)


@pytest.mark.parametrize("text", [None, 5, b"SELECT COUNT(*) FROM t", ["SELECT COUNT(*) FROM t"]])
def test_what_is_no_text_is_refused(text):
    with pytest.raises(SqlError):
        parse_sql(text, mechanisms={"*": Fixed()})


def test_the_gate_lets_the_plain_statement_through():
    assert parse_sql("SELECT COUNT(*) FROM t;", mechanisms={"*": Fixed()}).statistics


@pytest.mark.parametrize("text", ["SELECT COUNT(*) FROM t WHERE emp IS 1", "SELECT FROM t"])
def test_text_that_only_one_of_two_parsers_understands_is_refused(text):
    assert len(sqlglot.parse(text, read="duckdb")) == 1
    with pytest.raises(SqlError, match="DuckDB's parser"):
        read_statement(text)


@pytest.mark.parametrize("text", ["NOT " * 41 + "emp = 1", "(" * 41 + "emp = 1" + ")" * 41])
def test_nesting_is_counted_by_brackets_and_by_operators_in_a_row(text):
    with pytest.raises(SqlError, match="nesting deeper than 40"):
        read_statement(f"SELECT COUNT(*) FROM t WHERE {text}")


@pytest.mark.parametrize("blank", ["\u00a0", "\u2003", "\u3000"])
def test_a_blank_that_is_none_of_ascii_is_refused_outside_quotes(blank):
    with pytest.raises(SqlError, match="outside ASCII"):
        read_statement(f"SELECT COUNT(*){blank}FROM t")
    assert read_statement(f"SELECT COUNT(*) FROM t WHERE county = '{blank}'")
