"""Private keys and quantiles end to end: the splitting paper's examples 4 and 5, hidden singletons, books, files and SQL."""

import json
import re
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import recordwise as rw
from build import employers
from recordwise.errors import BudgetError, KeysError, PlanError, SqlError
from recordwise.mechanisms import Gaussian, UnitSplit
from recordwise.mechanisms.key_selection import SelectionLaw
from recordwise.mechanisms.quantile import Grid, TreeQuantile
from recordwise.noise import Seeded
from recordwise.plan import Domain, Keys, Measure, Plan, Schema, SumAndCount, parse_sql
from recordwise.plan.query import query
from recordwise.policy import by, constant
from recordwise.release.verify import verify

GRID = Grid.log(1, 10**6, bits=8)
INDUSTRIES = ["Mining", "Retail"]


def four_establishments():
    """Pieces at {Mining: emp 5, pay 250; else emp 10, pay 100}: 3, 3, 2 and 1, so squares 9, 9, 4 and 1."""
    return pa.table(
        {
            "id": [1, 2, 3, 4],
            "industry": ["Mining", "Retail", "Mining", "Retail"],
            "emp": [12, 8, 10, 3],
            "pay": [500, 290, 100, 90],
        }
    )


RECORDS = four_establishments().to_pylist()
SQUARES = [9, 9, 4, 1]
EMP_AT = by("industry", {"Mining": 5}, default=10)
PAY_AT = by("industry", {"Mining": 250}, default=100)


def opened(table=None, **how):
    return employers(four_establishments() if table is None else table, measures={"emp": 1, "pay": 1}, **how)


def near(loss, exact):
    """A published loss is the exact one rounded up, by next to nothing."""
    return 0 <= Fraction(loss) - exact <= exact * Fraction(1, 10**15)


def rho_of(mechanism):
    """The loss at the sigma that is drawn, which is rounded up to a rational."""
    return Fraction(1) / (2 * mechanism.noise_sigma**2)


def test_example_4_a_median_before_splitting_and_a_sum_after():
    """rho1 for everybody, plus rho2 times the squared number of pieces: rho1 + 9 rho2 for the record of three pieces."""
    median, total = TreeQuantile(grid=GRID, rho="0.25"), UnitSplit(at=5, rho="0.02")
    keys = Keys.of({"industry": INDUSTRIES})
    asked = query().group_by("industry", keys=keys).quantile("pay", p="0.5", grid=GRID, rho="0.25").sum("emp", total)
    with opened() as session:
        printed, tight = session.policy_of(asked, tight=False), session.policy_of(asked)
        release = session.run(asked, rng=Seeded(4))
    rho1 = GRID.bits * rho_of(median)
    assert 0 <= Fraction("0.25") - rho1 < Fraction(1, 10**15)
    for record, pieces in zip(RECORDS, [3, 2, 2, 1]):
        assert near(printed.loss(record), rho1 + Fraction("0.02") * pieces**2)
        assert near(tight.loss(record), rho1 + record["emp"] ** 2 * rho_of(total))
    assert printed.loss(RECORDS[0]) == pytest.approx(0.25 + 9 * 0.02, rel=1e-14)
    assert release.policy == tight
    assert release.paper_policy == printed
    assert release.table.column_names[:2] == ["industry", "median_pay"]


def test_example_5_private_keys_and_two_sums_with_thresholds_by_industry():
    """(rho_keys + rho_emp + rho_pay) times 9, 9, 4 and 1, and the delta the paper is silent about."""
    joint = {"emp": EMP_AT, "pay": PAY_AT}
    asked = (
        query()
        .group_by("industry", keys=Keys.select(rho="0.1", delta="1e-6", pieces=joint))
        .sum("emp", UnitSplit(at=joint, rho="0.2"))
        .sum("pay", UnitSplit(at=joint, rho="0.3"))
    )
    law = SelectionLaw.for_delta(rho="0.1", delta="1e-6")
    keys = 1 / (2 * law.sigma**2)
    with opened() as session:
        printed, tight = session.policy_of(asked, tight=False), session.policy_of(asked)
        release = session.run(asked, rng=Seeded(5))
    for record, square in zip(RECORDS, SQUARES):
        assert near(printed.loss(record), (keys + Fraction("0.5")) * square)
        assert printed.loss(record) == pytest.approx(0.6 * square, rel=1e-13)
        mining = record["industry"] == "Mining"
        emp, pay = UnitSplit(at=5 if mining else 10, rho="0.2"), UnitSplit(at=250 if mining else 100, rho="0.3")
        own = keys * square + record["emp"] ** 2 * rho_of(emp) + record["pay"] ** 2 * rho_of(pay)
        assert near(tight.loss(record), own)
        pieces = {9: 3, 4: 2, 1: 1}[square]
        for policy in (printed, tight):
            assert policy.delta(record) == float(law.noise.sf_upper(law.threshold - pieces))
    assert release.paper_policy == printed
    assert "pieces_selected_on" in release.table.column_names


def with_singletons(giants=30, singletons=2000):
    """Counties of one small establishment each, and a few with a giant."""
    emp = [1] * singletons + [20_000] * giants
    names = [f"small{i}" for i in range(singletons)] + [f"giant{i}" for i in range(giants)]
    count = len(emp)
    return pa.table({"id": range(count), "county": names, "emp": emp, "pay": [1] * count})


def test_lone_small_records_stay_hidden_and_giants_are_found():
    """2,000 lone pieces at delta 1e-13: one appears with at most 2e-10. A giant of 400 pieces is missed with less than 1e-9."""
    keys = Keys.select(rho="0.05", delta="1e-13", pieces={"emp": 50})
    law = keys.selection.law
    assert 2000 * law.keep_probability(1) < 1e-9
    assert 1 - law.keep_probability(400) < 1e-9
    with opened(with_singletons()) as session:
        release = session.run(query().group_by("county", keys=keys).sum("emp", UnitSplit(at=50, rho="0.1")))
    assert sorted(release.table["county"].to_pylist()) == sorted(f"giant{i}" for i in range(30))
    assert release.table["county"].to_pylist() == sorted(release.table["county"].to_pylist())


def test_a_selection_that_keeps_nothing_publishes_an_empty_table():
    keys = Keys.select(rho="0.05", delta="1e-13")
    asked = (
        query()
        .group_by("county", keys=keys)
        .count(Gaussian(rho=1))
        .avg("emp", sum=UnitSplit(at=by("county", {"A": 5}, default=7), rho=1))
        .sum("pay", rw.LogTransform(offset=100, sigma=1))
        .quantile("pay", p=0.5, grid=GRID, rho=1)
    )
    with opened(with_singletons(giants=0, singletons=50)) as session:
        release = session.run(asked)
    assert release.table.num_rows == 0
    assert {"count_cv", "avg_emp_sum_low", "sum_pay_sigma", "median_pay_high"} <= set(release.table.column_names)
    assert "found" not in json.dumps(release.to_json())


def test_cells_that_only_another_query_sees_are_not_candidates():
    """County B has no record above the bar; it must not even be drawn for, however low the threshold."""
    table = pa.table({"id": range(80), "county": ["A"] * 40 + ["B"] * 40, "emp": [99] * 40 + [1] * 40, "pay": [1] * 80})
    low = Keys.select(rho="0.05", delta="0.999")
    assert low.selection.law.keep_probability(0) > 0.9
    large = query().where("emp > 50").group_by("county", keys=low).count(Gaussian(rho=1))
    every = query().group_by("county", keys=Keys.of({"county": ["A", "B"]})).count(Gaussian(rho=1))
    with opened(table) as session:
        for pieces in (None, {"emp": 10}):
            keys = Keys.select(rho="0.05", delta="0.999", pieces=pieces)
            large = query().where("emp > 50").group_by("county", keys=keys).count(Gaussian(rho=1))
            release = session.run(large, every)
            assert release["q1_county"]["county"].to_pylist() == ["A"]


@pytest.mark.costly
def test_totals_of_selected_cells_are_those_of_listed_ones():
    """The same exact totals reach the same cells, whichever way the keys came: next to no noise."""
    rng = np.random.default_rng(3)
    table = pa.table(
        {
            "id": range(3000),
            "county": [f"{i:02d}" for i in rng.integers(0, 30, 3000)],
            "emp": rng.integers(0, 50, 3000),
            "pay": rng.integers(0, 10**5, 3000),
        }
    )
    exact = [Gaussian(rho=10**9), UnitSplit(at=1, rho=10**9)]
    names = [f"{i:02d}" for i in range(40)]
    tables = []
    with opened(table) as session:
        for keys in (
            Keys.of({"county": names}),
            Keys.select(rho=10**6, delta="1e-9"),
            Keys.select_from({"county": names}, rho=10**6, threshold=1),
            Keys.select_from(Keys.of({"county": names[::-1]}), rho=10**6, threshold=1),
            Keys.select_from(county_function(), rho=10**6, threshold=1),
        ):
            asked = query().where("emp > 0").group_by("county", keys=keys)
            asked = asked.count(exact[0]).sum("emp", exact[1]).quantile("pay", p=0.5, grid=GRID, rho=10**9)
            found = session.run(asked).to_pandas()
            tables.append(found[["county", "count", "sum_emp", "median_pay"]])
    listed = tables[0][tables[0]["count"] > 0].reset_index(drop=True)
    assert len(listed) == 30
    for selected in tables[1:]:
        assert selected.equals(listed)


def county_function():
    return Domain(
        columns=("county",),
        size=100,
        keys=lambda positions: {"county": [f"{i:02d}" for i in positions]},
        positions=lambda columns: [int(name) for name in columns["county"].to_pylist()],
    )


def test_a_domain_whose_functions_fail_is_refused_before_the_charge_and_without_its_text():
    def positions(columns):
        raise ValueError(columns["county"].to_pylist())

    broken = Domain(columns=("county",), size=5, keys=lambda at: {"county": [str(i) for i in at]}, positions=positions)
    short = Domain(columns=("county",), size=5, keys=broken.keys, positions=lambda columns: [0])
    with opened(with_singletons()) as session:
        for domain, problem in ((broken, "failed with ValueError"), (short, "one number for each cell")):
            keys = Keys.select_from(domain, rho=1, threshold=3)
            with pytest.raises(KeysError, match=problem) as refused:
                session.run(query().group_by("county", keys=keys).count(Gaussian(rho=1)))
            assert "small1" not in str(refused.value)
            assert refused.value.__cause__ is None
        assert [event.kind for event in session.history()] == ["opened"]


def test_selected_empty_cells_get_noise_in_every_statistic():
    """No record at all: every published row is an empty cell, and its sum is noise."""
    table = four_establishments().slice(0, 0)
    keys = Keys.select_from({"industry": [f"i{n}" for n in range(400)]}, rho="0.01", threshold=6)
    asked = query().group_by("industry", keys=keys).sum("emp", UnitSplit(at=50, rho="0.1")).count(Gaussian(rho="0.01"))
    with opened(table, columns={"industry": "text"}) as session:
        rows = session.run(asked, rng=Seeded(8)).to_pandas()
    assert 20 < len(rows) < 250
    assert rows["rows_selected_on"].min() >= 6
    assert rows["sum_emp"].nunique() > 10
    assert rows["count"].min() < 0
    assert np.all(rows["rows_selected_on_low"] <= rows["rows_selected_on"])


def test_a_budget_without_delta_refuses_private_keys_and_nothing_is_read_or_spent(tmp_path):
    ledger = tmp_path / "books.ledger"
    asked = query().group_by("industry", keys=Keys.select(rho="0.1", delta="1e-6")).count(Gaussian(rho="0.1"))
    with opened(ledger=ledger, budget=constant(10)) as session:
        with pytest.raises(BudgetError, match="delta") as refused:
            session.run(asked)
        assert refused.value.reason == "delta"
        assert session.spent().loss({}) == 0
        public = Keys.select_from({"industry": INDUSTRIES}, rho="0.1", threshold=2)
        session.run(query().group_by("industry", keys=public).count(Gaussian(rho="0.1")))
        assert session.spent().loss({}) == pytest.approx(0.2, rel=1e-12)
    assert verify(ledger) == []


@pytest.mark.costly
def test_the_books_and_the_files_tell_what_was_selected_and_never_how_many_cells_held_records(tmp_path):
    asked = (
        query()
        .group_by("county", keys=Keys.select(rho="0.05", delta="1e-9", pieces={"emp": 50}))
        .count(Gaussian(rho="0.1"))
        .avg("emp", sum=UnitSplit(at=50, rho="0.1"))
        .quantile("pay", p="0.5", grid=GRID, rho="0.1")
    )
    with opened(with_singletons(singletons=777), ledger=tmp_path / "books.ledger") as session:
        release = session.run(asked)
        charged = next(event for event in session.history() if event.kind == "charged")
    folder = release.save(tmp_path / "out")
    text = (folder / "release.json").read_text()
    described = json.loads(text)
    (selected,) = [table["keys"] for table in described["plan"][0]["tables"]]
    assert selected["selected"] == "from the data"
    assert selected["threshold"] == SelectionLaw.for_delta(rho="0.05", delta="1e-9").threshold
    assert selected["pieces"] == {"emp": "50"}
    assert set(described["flags"]["county"]) == {"pieces_selected_on", "avg_emp", "median_pay"}
    # As numbers of their own: noise may well draw a figure that contains these digits.
    for number in ("777", "807"):
        alone = re.compile(rf"(?<![\w.]){number}(?![\w.])")
        assert not alone.search(text)
        assert not alone.search(json.dumps(charged.body["details"]))
    saved = pq.read_table(folder / "county.parquet")
    assert b"selected_on" in saved.schema.field("pieces_selected_on").metadata[b"recordwise_flag"]
    policies = json.loads((folder / "policy.json").read_text())
    for kind, policy in (("tight", release.policy), ("paper", release.paper_policy)):
        assert rw.Policy.from_json(policies[kind]) == policy
        assert policies[kind]["delta"]
    assert verify(tmp_path / "books.ledger", against=[folder]) == []


def test_several_quantiles_are_read_off_one_tree_and_paid_once():
    keys = Keys.of({"industry": INDUSTRIES})
    one = query().group_by("industry", keys=keys).quantile("pay", p="0.5", grid=GRID, rho="0.2")
    three = one.quantile("pay", p="0.9", grid=GRID, rho="0.2").quantile("pay", p="0.1", grid=GRID, rho="0.2")
    with opened() as session:
        assert session.policy_of(three) == session.policy_of(one)
        assert session.policy_of(three.quantile("emp", p="0.5", grid=GRID, rho="0.2")).loss({}) == pytest.approx(0.4)
        rows = session.run(three, rng=Seeded(1)).to_pandas()
    assert np.all(rows["quantile_pay_0_1"] <= rows["median_pay"])
    assert np.all(rows["median_pay"] <= rows["quantile_pay_0_9"])


@pytest.mark.theorem("T-BIN")
@pytest.mark.parametrize(
    "grid", [GRID, Grid.linear(0, 5000, bits=6), Grid.log("0.5", 300, bits=5), Grid.linear(7, 8, bits=3)]
)
@pytest.mark.parametrize("step", [Fraction(1), Fraction(1, 4), Fraction(5)])
@pytest.mark.costly
def test_the_engine_counts_every_value_at_the_point_whole_numbers_say(opens, grid, step):
    points = np.array(grid.steps(step), dtype=np.int64)
    beside = np.concatenate([points - 1, points, points + 1, [0, 1, 2, 10**12]])
    steps = np.unique(beside[beside >= 0])
    amounts = steps.astype(float) * float(step)
    table = pa.table({"id": range(len(steps)), "pay": amounts, "half": steps % 2})
    schema = Schema.of(unit="id", measures={"pay": Measure.of("pay", step=step)}, columns={"half": "integer"})
    asked = query().group_by("half", keys=Keys.of({"half": [0, 1, 2]})).quantile("pay", p=0.5, grid=grid, rho=1)
    whole = query().quantile("pay", p=0.5, grid=grid, rho=1)
    with opens(table, schema) as engine:
        by_half, total = engine.totals(Plan(schema=schema, queries=(asked, whole)))
    truth = np.zeros((3, grid.size), dtype=np.int64)
    np.add.at(truth, (steps % 2, grid.bins(steps, step)), 1)
    found = np.zeros_like(truth)
    (rows,) = by_half.exact.reveal().bins.values()
    found[rows.position, rows.point] = rows.held
    assert np.array_equal(found, truth)
    (rows,) = total.exact.reveal().bins.values()
    assert np.array_equal(np.bincount(rows.point, rows.held, grid.size).astype(int), truth.sum(axis=0))


KEYS = Keys.of({"industry": INDUSTRIES})
TREE = TreeQuantile(grid=GRID, rho="0.2")


@pytest.mark.parametrize(
    ("text", "p"),
    [
        ("MEDIAN(pay)", "1/2"),
        ("QUANTILE_CONT(pay, 0.25)", "1/4"),
        ("PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY pay)", "9/10"),
    ],
)
def test_sql_quantiles_read_as_the_builder_s(text, p):
    read = parse_sql(f"SELECT industry, {text} FROM t GROUP BY industry", mechanisms={"pay": TREE}, keys=KEYS)
    assert read == query().group_by("industry", keys=KEYS).quantile("pay", p=Fraction(p), grid=GRID, rho="0.2")


@pytest.mark.parametrize(
    "text",
    [
        "QUANTILE_DISC(pay, 0.5)",
        "APPROX_QUANTILE(pay, 0.5)",
        "QUANTILE_CONT(pay, [0.5, 0.9])",
        "QUANTILE_CONT(pay, 0.5 ORDER BY emp)",
        "QUANTILE_CONT(pay, 1)",
        "QUANTILE_CONT(pay, 0)",
        "QUANTILE_CONT(pay + 1, 0.5)",
        "MEDIAN(DISTINCT pay)",
        "MEDIAN(pay) FILTER (WHERE emp > 3)",
        "MEDIAN(pay) OVER ()",
        "AVG(DISTINCT pay)",
        "AVG(pay) FILTER (WHERE emp > 3)",
        "PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY pay DESC)",
        "PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY pay, emp)",
        "PERCENTILE_CONT(0.9)",
        "MODE(pay)",
        "STDDEV(pay)",
    ],
)
def test_other_aggregates_of_sql_are_refused(text):
    with pytest.raises(SqlError):
        parse_sql(f"SELECT industry, {text} FROM t GROUP BY industry", mechanisms={"pay": TREE}, keys=KEYS)


def test_a_quantile_needs_a_grid_and_an_average_is_no_sum():
    with pytest.raises(SqlError, match="without a grid"):
        parse_sql("SELECT MEDIAN(pay) FROM t", mechanisms={"pay": Gaussian(rho=1)})
    both = SumAndCount(sum=UnitSplit(at=5, rho=1), count=Gaussian(rho=1))
    with opened() as session, pytest.raises(Exception, match="averages only"):
        session.sql("SELECT SUM(pay) FROM t", mechanisms={"pay": both})


def test_sql_runs_with_selected_keys():
    with opened(with_singletons()) as session:
        release = session.sql(
            "SELECT county, AVG(emp) AS mean, MEDIAN(pay) AS middle FROM t WHERE emp > 0 GROUP BY county",
            mechanisms={"mean": SumAndCount(sum=UnitSplit(at=50, rho="0.1"), count=Gaussian(rho="0.1")), "pay": TREE},
            keys=Keys.select(rho="0.05", delta="1e-13", pieces={"emp": 50}),
        )
    assert release.table.num_rows == 30
    assert {"pieces_selected_on", "mean", "mean_sum", "mean_count", "middle"} <= set(release.table.column_names)


def test_a_quantile_that_makes_no_sense_is_refused_with_the_plan():
    for asked, problem in [
        (query().quantile("industry", p=0.5, grid=GRID, rho=1), "not a measure"),
        (query().quantile("pay", p=1, grid=GRID, rho=1), "between 0 and 1"),
        (query().quantile("pay", p=0.5, grid=Grid.log("0.1", "0.5"), rho=1), "below one step"),
        (query().group_by("industry").quantile("pay", p=0.5, grid=GRID, rho=1), "no public keys"),
    ]:
        with opened() as session, pytest.raises(PlanError, match=problem):
            session.policy_of(asked)


def test_thresholds_without_a_default_are_refused_where_keys_are_selected():
    asked = query().group_by("industry", keys=Keys.select(rho="0.1", delta="1e-6"))
    asked = asked.sum("emp", UnitSplit(at=by("industry", {"Mining": 5}), rho=1))
    with opened() as session, pytest.raises(PlanError, match="need a default"):
        session.policy_of(asked)


def test_found_cells_print_nothing(opens):
    schema = Schema.of(unit="id", measures={"emp": 1, "pay": 1}, columns={"industry": "text"})
    asked = query().group_by("industry", keys=Keys.select(rho="0.1", delta="1e-6")).count(Gaussian(rho=1))
    with opens(four_establishments(), schema) as engine:
        (found,) = engine.totals(Plan(schema=schema, queries=(asked,)))
    assert "Mining" not in repr(found)
    assert repr(found.cells) == "<Sensitive>"


def test_keys_of_a_domain_come_in_the_order_of_the_domain_whether_they_hold_records_or_not():
    table = pa.table({"id": range(40), "county": ["c"] * 20 + ["a"] * 20})
    keys = Keys.select_from({"county": ["a", "b", "c", "d"]}, rho=50, threshold=-5)
    with employers(table, "county", measures={}, tuned_on="public") as session:
        found = session.run(query().group_by("county", keys=keys).count(Gaussian(rho=50)), rng=Seeded(1)).table
    assert found["county"].to_pylist() == ["a", "b", "c", "d"]
    assert [round(each / 20) for each in found["count"].to_pylist()] == [1, 0, 1, 0]
    assert found["rows_selected_on_low"].to_pylist()[1::2] == [0, 0]


def test_records_of_a_key_that_was_not_kept_are_in_no_quantile_of_another():
    """Thirty lone giants, none of whose keys is kept, beside a hundred small records of one that is."""
    counties = ["a"] * 100 + [f"x{number}" for number in range(30)]
    giants = np.geomspace(5_000, 900_000, 30).astype(int).tolist()
    table = pa.table({"id": range(130), "emp": [2] * 100 + giants, "county": counties})
    asked = query().group_by("county", keys=Keys.select(rho=10, delta="1e-6"))
    asked = asked.quantile("emp", p="0.9", grid=Grid.log(1, 10**6, bits=6), rho=100, alias="q")
    with employers(table, "county", tuned_on="public") as session:
        found = session.run(asked, rng=Seeded(1)).table
    assert found["county"].to_pylist() == ["a"]
    assert found["q"].to_pylist()[0] < 10
