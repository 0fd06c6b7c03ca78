"""The figures' own short formulas against ``recordwise.planning`` on the same records."""

import numpy as np
import pyarrow as pa
import pytest

import recordwise as rw
from build import employers
from experiments.establishments_tables import DIGITS
from experiments.split_fig2 import simulated
from experiments.split_fig4 import fitness
from recordwise import planning
from small_establishments import LEAST, small_records, small_session, small_table, small_tables


def workload():
    """County x industry at every level, cells with enough establishments, as a query."""
    data = small_table().to_pandas()
    county, naics = data["county"].astype(str), data["naics"].astype(str)
    keys = []
    for digits in DIGITS:
        sizes = data.groupby([county, naics.str[:digits].rename(f"naics{digits}")]).size()
        keys.append(rw.Keys.of(sizes[sizes >= LEAST].reset_index()[["county", f"naics{digits}"]]))
    return rw.query().group_by("county").levels(rw.prefix("naics", list(DIGITS)), keys=keys)


@pytest.mark.parametrize(("measure", "attribute"), [("emp", "emp"), ("payann", "payann"), ("count", "estab")])
@pytest.mark.costly
def test_planning_finds_the_noise_of_figure_4(measure, attribute):
    """Two searches of their own, each to about six digits."""
    goal = planning.Goal(measure, workload(), within="0.10", share="0.95")
    family = rw.Gaussian(rho=1) if measure == "count" else rw.Gaussian(sigma=1)
    with small_session() as session:
        found = planning.recommend(session, goal, candidates={"gaussian": family}, keep_offsets=True, data="synthetic")[
            "gaussian"
        ]
    for fitted, level in zip(found.calibrated, small_tables().levels):
        ours = fitness.calibrated_table(level, attribute, "0.10")
        assert fitted.deciding == ours.at_total
        assert float(fitted.mechanism.noise_sigma) == pytest.approx(ours.sigma, rel=1e-5)


@pytest.mark.costly
def test_planning_finds_the_losses_of_figure_4():
    tables = [fitness.calibrated_table(level, "payann", "0.20") for level in small_tables().levels]
    ours = np.asarray(fitness.policy(tables, fitness.FULL).loss(small_records().measures))
    goal = planning.Goal("payann", workload(), within="0.20", share="0.95")
    with small_session() as session:
        found = planning.recommend(
            session, goal, candidates={"gaussian": rw.Gaussian(sigma=1)}, keep_offsets=True, data="synthetic"
        )["gaussian"]
    for share in (0.5, 0.9, 0.99):
        assert found.losses.rho.quantile(share) == pytest.approx(
            np.quantile(ours, share, method="inverted_cdf"), rel=1e-4
        )


@pytest.mark.costly
def test_planning_sweeps_to_the_shares_above_rho_of_figure_2():
    data = simulated.simulate("uniform", 20_000, np.random.default_rng(1))
    table = pa.table({"id": np.arange(20_000), "cat": data.group, "ht1": data.values["HT1"] / 100})
    by = rw.query().group_by("cat", keys=rw.Keys.product(cat=list(range(simulated.GROUPS))))
    with employers(table, measures={"ht1": "0.01"}, columns={"cat": "integer"}) as session:
        swept = planning.compare(
            session, measure="ht1", query=by, thresholds=[10, 50], rhos=[1], tight=False, data="synthetic"
        )
    rows = {
        row["at"]: row
        for row in simulated.error_rows(data, 1, rw.noise.Seeded(1))
        if row["value"] == "HT1" and row["rho"] == 1
    }
    for point in swept.points:
        assert point.share_above == pytest.approx(rows[point.at]["share_above_rho"], abs=1e-12)
