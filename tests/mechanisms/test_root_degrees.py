"""Roots of any degree: in every number system, in dominance, saved forms and calibration, through release and fit."""

import json
from fractions import Fraction

import duckdb
import numpy as np
import pyarrow as pa
import pytest
import quickjs

import recordwise as rw
import reference_loss
from build import employers
from recordwise.mechanisms import RootTransform
from recordwise.mechanisms.base import parameter_json
from recordwise.noise import Seeded
from recordwise.policy import Policy
from recordwise.policy.render.text import policy_lines
from recordwise.release.tables import FITTED

ROOTS = {
    "5": RootTransform(degree=5, offset=1, sigma="0.1"),
    "7 without an offset": RootTransform(degree=7, sigma="0.3"),
    "16": RootTransform(degree=16, offset=1000, sigma="0.01"),
    "6 with Laplace noise": RootTransform(degree=6, offset=3, laplace_scale="0.05"),
    "5/2": RootTransform(degree="5/2", offset=10, laplace_scale="0.2"),
    "7/3": RootTransform(degree=Fraction(7, 3), offset=10, laplace_scale="0.2"),
}
SIZES = [0, 1, 2, 17, 1000, 10**6, 10**9]
EVERY = pytest.mark.parametrize("mechanism", ROOTS.values(), ids=list(ROOTS))


@EVERY
@pytest.mark.theorem("T-OUTWARD")
def test_every_number_system_computes_the_loss_of_an_independent_reading(mechanism: RootTransform) -> None:
    """numpy and exact values are never below mpmath's at 60 digits; SQL and JavaScript agree with numpy."""
    policy = mechanism.policy("emp")
    table = pa.table({"emp": SIZES})
    many = policy.loss({"emp": np.array(SIZES)})
    form = json.loads(json.dumps(policy.to_json()))["rho"]
    exact = [reference_loss.loss(form, {"emp": size}) for size in SIZES]
    for value, single, true in zip(many, [policy.loss({"emp": size}) for size in SIZES], exact):
        assert true <= value <= true * (1 + reference_loss.number("1e-12"))
        assert true <= single <= true * (1 + reference_loss.number("1e-15"))
    connection = duckdb.connect()
    connection.register("records", table)
    rows = connection.execute(f"SELECT {policy.to_sql('duckdb')} FROM records").fetchall()
    assert [loss for (loss,) in rows] == pytest.approx(many, rel=1e-12)
    context = quickjs.Context()
    context.eval(f"var loss = {policy.to_javascript()}")
    found = [context.eval(f"loss({{emp: {size}}}).rho") for size in SIZES]
    assert found == pytest.approx(many, rel=1e-9)


@EVERY
def test_a_policy_of_a_root_is_printed_saved_and_compared(mechanism: RootTransform) -> None:
    policy = mechanism.policy("emp")
    assert Policy.from_json(json.loads(json.dumps(policy.to_json()))) == policy
    assert policy.dominates(policy)
    assert policy.dominates(policy * "0.999")
    assert not (policy * "0.999").dominates(policy)
    assert "emp" in policy.to_latex()
    (line,) = policy_lines(policy)
    assert "emp" in line


@EVERY
def test_a_described_root_is_rebuilt_as_itself(mechanism: RootTransform) -> None:
    described = json.loads(json.dumps(parameter_json(mechanism)))
    assert described.pop("kind") == "RootTransform"
    assert RootTransform(**described) == mechanism
    assert f"degree={mechanism.degree}" in mechanism.text() or isinstance(mechanism.degree, Fraction)


def test_a_whole_degree_is_kept_as_a_whole_number_however_it_is_written() -> None:
    assert RootTransform(degree="4", sigma=1) == RootTransform(degree=4, sigma=1) == RootTransform(degree=4.0, sigma=1)
    assert type(RootTransform(degree="4", sigma=1).degree) is int


@EVERY
def test_a_root_is_calibrated_by_a_loss_a_variance_and_an_error(mechanism: RootTransform) -> None:
    noise = "gaussian" if mechanism.sigma is not None else "laplace"
    shape = {"degree": mechanism.degree, "offset": mechanism.offset, "noise": noise}
    by_loss = RootTransform(**shape, rho=1, at=5000)
    assert 0.999 < by_loss.policy("emp").loss({"emp": 5000}) <= 1
    by_variance = RootTransform(**shape, variance=900, at_total=1000)
    assert float(by_variance.variance(1000.0)) == pytest.approx(900, rel=1e-6)
    by_error = RootTransform(**shape, relative_error="0.1", at_total=1000, confidence=0.9)
    assert float(by_error.chances(np.array([1000.0]), np.array([100.0]))[0]) == pytest.approx(0.9, abs=2e-3)
    assert float(by_error.error_quantiles(np.array([1000.0]), confidence=0.9)[0]) == pytest.approx(100, rel=2e-2)


@EVERY
@pytest.mark.costly
def test_a_root_is_released_read_back_and_fitted(mechanism: RootTransform, tmp_path) -> None:
    records = pa.table({"id": [str(i) for i in range(40)], "county": ["1", "2"] * 20, "emp": list(range(40))})
    keys = rw.Keys.of({"county": ["1", "2"]})
    with employers(records, "county", tuned_on="public") as session:
        query = rw.query().levels("county", keys=keys).sum("emp", mechanism)
        release = session.run(query, rng=Seeded(3))
    data = release.tables[0].data.to_pandas()
    assert np.all(data["sum_emp_low"] <= data["sum_emp_high"])
    assert np.all(data["sum_emp_sd"] > 0)
    release.save(tmp_path / "out")
    again = rw.read(tmp_path / "out")
    assert again.policy.loss({"emp": 17, "county": "1"}) == mechanism.policy("emp").loss({"emp": 17})
    assert np.all(np.isfinite(again.consistent().tables[0].data.column(f"sum_emp{FITTED}").to_numpy()))
