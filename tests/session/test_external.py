"""Mechanisms from elsewhere on the split table: what they cost, what is refused, what is told."""

from fractions import Fraction

import numpy as np
import opendp.prelude as dp
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recordwise as rw
from build import employers, generous, records, session
from divergences import ROUNDING, renyi
from recordwise.errors import BudgetError, DataError, ExternalError, ParameterError, PlanError, SqlError
from recordwise.mechanisms.external import per_row_loss
from recordwise.policy import ConditionColumn as PolicyColumn
from recordwise.policy import Measure, among, by, constant, pure_split, pure_to_zcdp, split
from recordwise.release.verify import verify

dp.enable_features("contrib")


def bounded_sum(noise, upper: int = 50, **domain):
    """A noisy sum of whole numbers from 0 to ``upper``."""
    vector = dp.vector_domain(dp.atom_domain(bounds=(0, upper), T="i64"), **domain)
    return dp.t.make_sum(vector, dp.symmetric_distance()) >> noise


def kinds(opened: rw.Session) -> list[str]:
    return [event.kind for event in opened.history()]


@pytest.mark.usefixtures("on_both_engines")
@pytest.mark.costly
def test_a_callable_sees_every_piece_and_costs_the_declared_loss_times_the_pieces_squared() -> None:
    rows = records()
    seen: list[pa.Table] = []
    with session(rows) as opened:
        release = opened.run_external(lambda table: seen.append(table) or 7.5, split={"emp": 5, "pay": 400}, rho="0.1")
    assert release.table.to_pydict() == {"value": [7.5]}
    assert release.policy == split("0.1", {"emp": 5, "pay": 400})
    (table,) = seen
    emp, pay = (rows[name].to_numpy() for name in ("emp", "pay"))
    pieces = np.maximum(1, np.maximum(-(-emp // 5), -(-pay // 400)))
    assert table.num_rows == pieces.sum()
    assert (table["emp"].to_numpy().max(), table["pay"].to_numpy().max()) == (5, 400)
    assert (table["emp"].to_numpy().sum(), table["pay"].to_numpy().sum()) == (emp.sum(), pay.sum())


def test_the_charge_is_committed_before_the_callable_sees_a_row() -> None:
    with session(records()) as opened:
        stages = []
        opened.run_external(lambda _: stages.append(kinds(opened)) or 0, split={"emp": 5}, rho="0.1")
        assert stages == [["opened", "charged"]]
        assert kinds(opened) == ["opened", "charged", "released"]


@pytest.mark.usefixtures("on_both_engines")
def test_records_outside_the_condition_cost_nothing_and_are_not_seen() -> None:
    seen: list[pa.Table] = []
    with session(records()) as opened:
        release = opened.run_external(
            lambda table: seen.append(table) or 0, split={"emp": 5}, rho="0.1", where="county = '02'"
        )
    assert set(seen[0]["county"].to_pylist()) == {"02"}
    assert release.policy == split("0.1", {"emp": 5}).where(among(PolicyColumn("county"), ["02"]))
    assert release.policy.loss({"county": "01", "emp": 10**6}) == 0


@pytest.mark.costly
def test_thresholds_may_differ_by_group_but_every_group_needs_one() -> None:
    with session(records()) as opened:
        threshold = by("county", {"02": 5}, default=50)
        assert opened.run_external(len, split={"emp": threshold}, rho="0.1").policy == split("0.1", {"emp": threshold})
        with pytest.raises(PlanError, match="default"):
            opened.run_external(len, split={"emp": by("county", {"02": 5})}, rho="0.1")


@pytest.mark.costly
def test_an_external_release_is_saved_recorded_and_verified_like_any_other(tmp_path) -> None:
    with session(records(), tmp_path / "l", generous()) as opened:
        result = {"who": ["a", "b"], "much": [1.5, None], "sure": [True, False]}
        release = opened.run_external(lambda _: result, split={"emp": 5}, rho="0.1", name="my mechanism/2")
        release.save(tmp_path / "out")
        seeded = opened.run_external(lambda _: result, split={"emp": 5}, rho="0.1", seeded=True)
        seeded.save(tmp_path / "out2")
    assert sorted(path.name for path in (tmp_path / "out").glob("*.csv")) == ["my_mechanism_2.csv"]
    assert verify(tmp_path / "l", against=[tmp_path / "out", tmp_path / "out2"]) == []
    (plan,) = release.to_json()["plan"]
    assert plan["loss_known_from"] == "declared by the caller, not checked by recordwise"
    assert (plan["split"], plan["rho_per_row"]) == ({"emp": "5"}, "1/10")
    assert "NOT PRIVATE" in (tmp_path / "out2" / "external.csv").read_text()


@pytest.mark.parametrize("result", [3, 2.5, [1, 2], np.array([0.5]), "yes", True, pa.table({"a": [1]})])
def test_numbers_lists_and_tables_become_a_table(result) -> None:
    with session(records()) as opened:
        assert opened.run_external(lambda _: result, split={"emp": 5}, rho="0.1").table.num_rows >= 1


@pytest.mark.parametrize("result", [object(), {"a": [1], "b": [1, 2]}, [[1, 2], [3, 4]], pa.table({"a": [[1]]}), None])
def test_a_result_that_is_no_table_is_refused_and_stays_charged(result) -> None:
    with session(records()) as opened:
        with pytest.raises(ExternalError, match=r"not a table, list or number\. The charge stays"):
            opened.run_external(lambda _: result, split={"emp": 5}, rho="0.1")
        assert kinds(opened) == ["opened", "charged", "failed"]


def test_what_a_callable_raises_is_told_by_its_kind_alone() -> None:
    def leaky(table: pa.Table) -> float:
        raise ValueError(f"the largest is {max(table['emp'].to_pylist())}, of {table.num_rows}")

    with session(records()) as opened:
        with pytest.raises(ExternalError) as failed:
            opened.run_external(leaky, split={"emp": 5}, rho="0.1", name="leaky")
        assert str(failed.value) == (
            "leaky failed with ValueError. The charge stays in the ledger and nothing was published."
        )
        assert failed.value.__cause__ is None
        assert failed.value.__context__ is None
        assert kinds(opened) == ["opened", "charged", "failed"]


@pytest.mark.parametrize(
    "mechanism, more, error",
    [
        (len, {}, ParameterError),
        (len, {"rho": 0}, ParameterError),
        ("no callable", {"rho": 1}, ParameterError),
        (len, {"rho": 1, "split": {}}, ParameterError),
        (len, {"rho": 1, "split": {"county": 5}}, PlanError),
        (len, {"rho": 1, "split": {"emp": "1/2"}}, PlanError),
        (len, {"rho": 1, "column": "nobody"}, PlanError),
        (len, {"rho": 1, "where": "nobody = 1"}, PlanError),
        (len, {"rho": 1, "where": "emp = (SELECT 1)"}, SqlError),
        (len, {"rho": 1000}, BudgetError),
    ],
)
def test_what_makes_no_sense_is_refused_before_a_record_is_read(mechanism, more: dict, error: type) -> None:
    broken = records().set_column(4, "emp", pa.array([-1] * 500))
    with session(broken, budget=constant(100)) as opened:
        with pytest.raises(error):
            opened.run_external(mechanism, **({"split": {"emp": 5}} | more))
        assert kinds(opened) == ["opened"]


def test_invalid_records_are_refused_before_anything_is_spent() -> None:
    with session(records().set_column(4, "emp", pa.array([-1] * 500))) as opened:
        with pytest.raises(DataError):
            opened.run_external(len, split={"emp": 5}, rho=1)
        assert kinds(opened) == ["opened"]


@pytest.mark.theorem("T-EXTERNAL")
@pytest.mark.costly
def test_an_opendp_measurement_costs_what_its_map_says_of_one_row() -> None:
    measurement = bounded_sum(dp.m.then_gaussian(500.0))
    rows = records()
    with session(rows) as opened:
        release = opened.run_external(measurement, split={"emp": 50}, column="emp")
    rho = Fraction(measurement.map(1))
    assert release.policy == split(rho, {"emp": 50})
    assert "OpenDP" in release.to_json()["plan"][0]["loss_known_from"]
    # Noise of sigma 500 is beyond 6,000 with probability below 4e-33.
    assert abs(release.table["value"][0].as_py() - rows["emp"].to_numpy().sum()) < 6000


@pytest.mark.theorem("T-EXTERNAL")
def test_a_pure_measurement_is_converted_and_covers_every_number_of_pieces() -> None:
    measurement = bounded_sum(dp.m.then_laplace(100.0))
    with session(records()) as opened:
        policy = opened.run_external(measurement, split={"emp": 50}, column="emp").policy
    epsilon = measurement.map(1)
    assert policy.loss({"emp": 1}) == pure_to_zcdp(epsilon)
    assert policy.epsilon_pure({"emp": 500}) == pytest.approx(10 * epsilon, rel=1e-12)
    for pieces in (2, 3, 10, 1000):
        assert policy.loss({"emp": 50 * pieces}) == pytest.approx(pure_to_zcdp(pieces * epsilon), rel=1e-12)


@pytest.mark.theorem("T-EXTERNAL")
def test_a_declared_pure_loss_costs_the_smaller_of_both_bounds() -> None:
    """At 100 pieces and epsilon 1, 46 times less than 100**2 rows' worth."""
    with session(records()) as opened:
        pure = opened.run_external(len, split={"emp": 5}, epsilon=1)
        both = opened.run_external(len, split={"emp": 5}, epsilon=1, rho="0.01")
    assert pure.policy == pure_split({"emp": 5}, epsilon=1)
    assert pure.policy.loss({"emp": 500}) == 100
    assert 46 < 100**2 * pure_to_zcdp(1.0) / 100 < 46.3
    assert [both.policy.loss({"emp": 5 * m}) for m in (1, 10, 1000)] == pytest.approx([0.01, 1.0, 1000.0], rel=1e-12)


@pytest.mark.theorem("T-EXTERNAL")
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_no_number_of_rows_loses_more_of_laplace_noise_than_is_charged(epsilon: float) -> None:
    """A count of rows with lattice Laplace noise of scale 1/epsilon; charging for half the rows would not do."""
    policy = pure_split({"emp": 1}, epsilon=epsilon)
    points = np.arange(-4000, 4001)
    log_p = -epsilon * np.abs(points) - np.log(np.sum(np.exp(-epsilon * np.abs(points))))
    for rows in (1, 2, 7, 60):
        log_q = log_p - epsilon * (np.abs(points - rows) - np.abs(points))
        truth = max(renyi(log_p, log_q, order) / order for order in (1.0, 1.001, 1.01, 1.5, 3.0, 20.0))
        assert truth <= policy.loss({"emp": rows}) * ROUNDING < truth + 1
        assert truth > pure_to_zcdp(rows * epsilon / 2)


@pytest.mark.theorem("T-CELLS")
@pytest.mark.parametrize("epsilon", ["0.05", 1, 3])
@pytest.mark.parametrize("emp", [[3, 4], [5, 5, 40], [50] * 10])
def test_a_firm_loses_by_all_its_rows_at_once_and_never_more_than_is_stated(epsilon, emp) -> None:
    """A count of rows with lattice Laplace noise of scale 1/epsilon, whose cells nobody knows."""
    with session(records()) as opened:
        released = opened.run_external(len, split={"emp": 5}, epsilon=epsilon)
    units = {"emp": emp, "county": [str(place) for place in range(len(emp))]}
    pieces = [-(-size // 5) for size in emp]
    rows, one = sum(pieces), float(Fraction(epsilon))
    stated = released.firms.loss(units).rho
    assert stated == pytest.approx(min(rows**2 * pure_to_zcdp(one), pure_to_zcdp(rows * one)), rel=1e-9)
    points = np.arange(-4000, 4001)
    log_p = -one * np.abs(points) - np.log(np.sum(np.exp(-one * np.abs(points))))
    log_q = log_p - one * (np.abs(points - rows) - np.abs(points))
    truth = max(renyi(log_p, log_q, order) / order for order in (1.0, 1.001, 1.01, 1.5, 3.0, 20.0))
    assert truth <= stated * ROUNDING
    # As if the units were in tables of their own.
    assert truth > sum(pure_to_zcdp(own * one) for own in pieces) or rows * one >= 6
    assert stated <= sum(released.policy.loss(units) ** 0.5) ** 2 * ROUNDING


@pytest.mark.theorem("T-EXTERNAL")
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_one_row_of_randomized_response_loses_all_that_is_charged(epsilon: float) -> None:
    heads = 1 / (1 + np.exp(-epsilon))
    log_p, log_q = np.log([heads, 1 - heads]), np.log([1 - heads, heads])
    charged = pure_split({"emp": 1}, epsilon=epsilon).loss({"emp": 1})
    assert renyi(log_p, log_q, 1.0) == pytest.approx(charged, rel=1e-9)


@pytest.mark.theorem("T-EXTERNAL")
@settings(max_examples=200, deadline=None)
@given(st.floats(min_value=1e-6, max_value=50), st.integers(min_value=1, max_value=10**4))
@pytest.mark.costly
def test_the_zcdp_of_k_pure_rows_is_at_most_k_squared_that_of_one(epsilon: float, rows: int) -> None:
    assert pure_to_zcdp(rows * epsilon) <= rows**2 * pure_to_zcdp(epsilon) * (1 + 1e-12)


class Says:
    """What is asked of a measurement about its loss, and nothing else."""

    def __init__(self, measure: str, power: float) -> None:
        self.output_measure, self._power = measure, power

    def map(self, rows: int) -> float:
        return 0.01 * rows**self._power


@pytest.mark.parametrize("measure, power", [("MaxDivergence", 1), ("ZeroConcentratedDivergence", 2)])
def test_a_map_may_grow_as_group_privacy_does_and_no_faster(measure: str, power: int) -> None:
    """Pure DP grows with the number of rows, zCDP with its square: what grows faster means something else by one row."""
    assert per_row_loss(Says(measure, power), "map") == (power == 1, Fraction(0.01))
    for steeper in (power + 0.01, power + 1):
        with pytest.raises(ExternalError, match="exceeds what group privacy allows"):
            per_row_loss(Says(measure, steeper), "map")


def test_a_measurement_on_a_domain_of_known_size_is_refused() -> None:
    """With the size known, one row more is impossible and its map says almost nothing of one row: two rows are a replacement."""
    vector = dp.vector_domain(dp.atom_domain(bounds=(0.0, 50.0)), size=500)
    mean = dp.t.make_mean(vector, dp.symmetric_distance()) >> dp.m.then_gaussian(1.0)
    with session(records()) as opened:
        with pytest.raises(ExternalError, match=r"group privacy allow.*Nothing was spent.*known size"):
            opened.run_external(mean, split={"emp": 50}, column="emp")
        assert kinds(opened) == ["opened"]


def test_other_metrics_measures_and_domains_are_refused() -> None:
    approximate = dp.c.make_approximate(bounded_sum(dp.m.then_gaussian(500.0)))
    scalar = dp.m.make_gaussian(dp.atom_domain(T="i64"), dp.absolute_distance(T="i64"), scale=5.0)
    vector = dp.vector_domain(dp.atom_domain(bounds=(0, 50), T="i64"), size=500)
    changed = dp.t.make_sum(vector, dp.symmetric_distance()) >> dp.m.then_gaussian(5.0)
    changed = dp.t.make_metric_unbounded(vector, dp.change_one_distance()) >> changed
    for measurement, words in ((approximate, "Approximate"), (scalar, "AbsoluteDistance"), (changed, "ChangeOne")):
        with session(records()) as opened:
            with pytest.raises(ExternalError, match=words):
                opened.run_external(measurement, split={"emp": 50}, column="emp")
            assert kinds(opened) == ["opened"]


@pytest.mark.parametrize("amount, kind", [(101, "i64"), (2**32 + 5, "i32")])
def test_rows_outside_the_domain_are_refused_before_anything_is_spent(amount: int, kind: str) -> None:
    """The second amount would be 5 if it were cut to 32 bits, and inside the bounds."""
    vector = dp.vector_domain(dp.atom_domain(bounds=(0, 100), T=kind))
    measurement = dp.t.make_sum(vector, dp.symmetric_distance()) >> dp.m.then_gaussian(500.0)
    rows = records().set_column(4, "emp", pa.array([amount] * 500))
    with session(rows) as opened:
        with pytest.raises(ExternalError, match="does not contain every row"):
            opened.run_external(measurement, split={"emp": 2**33}, column="emp")
        assert kinds(opened) == ["opened"]


def test_an_opendp_measurement_needs_a_column_and_takes_no_declared_loss() -> None:
    measurement = bounded_sum(dp.m.then_gaussian(500.0))
    with session(records()) as opened:
        with pytest.raises(ParameterError, match="column"):
            opened.run_external(measurement, split={"emp": 50})
        with pytest.raises(ParameterError, match="privacy map determines it"):
            opened.run_external(measurement, split={"emp": 50}, column="emp", rho=1)


def test_steps_of_a_measure_are_whole_numbers_for_the_mechanism_and_units_in_the_policy() -> None:
    rows = pa.table({"id": [1, 2], "pay": pa.array(["0.25", "10.50"]).cast(pa.decimal128(9, 2))})
    seen: list[pa.Table] = []
    with employers(rows, measures={"pay": "0.25"}) as opened:
        release = opened.run_external(lambda table: seen.append(table) or 0, split={"pay": 5}, rho=1)
    assert sorted(seen[0]["pay"].to_pylist()) == [1, 2, 20, 20]
    assert release.policy == split(1, {Measure("pay", Fraction(1, 4)): 5})
    assert release.policy.loss({"pay": "10.5"}) == 9


@pytest.mark.parametrize("loss", [float("inf"), float("nan"), -1.0])
def test_a_map_that_promises_nothing_is_refused(loss: float) -> None:
    class Promising:
        output_measure = "ZeroConcentratedDivergence"

        def map(self, rows: int) -> float:
            return loss

    with pytest.raises(ExternalError, match="gives no guarantee"):
        per_row_loss(Promising(), "m")
