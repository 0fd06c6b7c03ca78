"""Median-unbiased estimates, published on request."""

import numpy as np
import pytest

import recordwise as rw
from build import employers
from recordwise.errors import PlanError
from recordwise.noise import Seeded
from recordwise.plan.file.write import plan_text

LOG = rw.LogTransform(offset=10, sigma=1)
KEYS = rw.Keys.of({"cell": list(range(4000))})


def opened():
    cells = np.arange(4000)
    return employers({"id": cells, "emp": np.full(4000, 50), "cell": cells}, columns={"cell": "integer"})


def asked(*names):
    return rw.query().group_by("cell", keys=KEYS).sum("emp", LOG).count(rw.Gaussian(sigma=3)).with_median(*names)


def test_half_of_the_median_unbiased_estimates_are_too_small_and_the_mean_unbiased_ones_are_not():
    """False alarm below 1e-6: the share of 4,000 is within 5 standard errors, 0.04, of a half."""
    with opened() as session:
        found = session.run(asked("sum_emp", "count"), rng=Seeded(3)).table
    below = np.mean(found["sum_emp_median"].to_numpy() < 50)
    assert abs(below - 0.5) < 0.04
    # The mean-unbiased estimate is exp(-1/2) times as large: below 50 where noise is below 1/2, in 69 of 100 cells.
    assert np.mean(found["sum_emp"].to_numpy() < 50) > 0.6
    np.testing.assert_allclose(found["sum_emp_median"], np.exp(found["sum_emp_noisy"].to_numpy()) - 10, rtol=1e-9)
    np.testing.assert_array_equal(found["count_median"], found["count"])


def test_nothing_changes_without_the_request():
    with opened() as session:
        plain, more = (session.run(asked(*names), rng=Seeded(3)) for names in ((), ("sum_emp",)))
        assert session.policy_of(asked()) == session.policy_of(asked("sum_emp"))
    assert [name for name in more.table.column_names if name.endswith("_median")] == ["sum_emp_median"]
    assert more.table.drop_columns(["sum_emp_median"]).equals(plain.table)
    meaning = {each.name: each.meaning for each in more.content().tables[0].columns}
    assert meaning["sum_emp_median"].startswith("median-unbiased estimate")


def test_names_without_such_an_estimate_are_refused():
    with opened() as session, pytest.raises(PlanError, match="median names 'pay'"):
        session.policy_of(asked("pay"))
    signed = rw.query().sum("gain", rw.LogTransform(offset=10, sigma=1, signed=True)).with_median("sum_gain")
    measures = {"gain": rw.Measure.of("gain", signed=True)}
    with (
        employers({"id": [1], "gain": [2]}, measures=measures, columns={}) as session,
        pytest.raises(PlanError, match="positive and negative part"),
    ):
        session.policy_of(signed)


def test_a_plan_file_holds_the_request(tmp_path):
    with opened() as session:
        asking = rw.query().sum("emp", LOG).with_median("sum_emp")
        made = plan_text([asking], session.schema, dataset="d", source="t.csv", ledger="l", tuned_on="synthetic")
    (tmp_path / "plan.toml").write_text(made.text)
    assert rw.load_plan(tmp_path / "plan.toml").plan.queries[0].median == ("sum_emp",)
