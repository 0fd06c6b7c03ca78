"""Queries, keys and sessions print what a person wants to know, and nothing of the records."""

import recordwise as rw
from build import employers
from recordwise.plan import prefix

TABLE = {"id": [1, 2], "naics": ["441", "441"], "emp": [5, 9]}
KEYS = rw.Keys.of({"naics": ["441"]})
COUNT = rw.Gaussian(rho="0.05")


def test_a_session_says_its_table_schema_ledger_and_what_was_spent(tmp_path):
    ledger = tmp_path / "books.ledger"
    budget = rw.policy.constant("0.2")
    with employers(TABLE, "naics", ledger=ledger, budget=budget, tuned_on="past") as session:
        session.run(rw.query().group_by("naics", keys=KEYS).count(COUNT))
        shown, spent = repr(session), session.spent()
    start = "<Session: 'table' by duckdb; unit id, measures emp, columns naics; "
    assert shown == f"{start}ledger {ledger}: 1 charge; budget {budget!r}, of which {spent!r} is spent>"
    assert repr(session) == "<Session: 'table', closed>"


def test_a_query_names_its_statistics_and_its_tables():
    assert repr(rw.query()) == "<Query: no statistic yet by the grand total>"
    asked = rw.query().levels("naics", prefix("naics", 2)).count(COUNT).where("emp > 3")
    assert repr(asked) == "<Query: count by naics; naics2; 1 condition>"


def test_keys_say_how_many_cells_of_what():
    assert repr(KEYS) == "<Keys: 1 cell of naics>"


def test_what_only_the_owner_may_see_prints_nothing():
    with employers(TABLE, "naics") as session:
        assert repr(session.owner) == "<Owner: CONFIDENTIAL>"
