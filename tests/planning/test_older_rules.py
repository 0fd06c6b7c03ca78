"""The older rules as baselines of a plan: over all tables of a query together, with what they withhold."""

import numpy as np
import pytest

import recordwise as rw
from build import employers
from recordwise.disclosure.bounds import feasible_intervals
from recordwise.disclosure.rules import sensitive_cells
from recordwise.planning import Coarsening, PercentRule, Ranges, Rounding, Suppression, ThresholdRule, evaluate
from recordwise.planning.simulate.baselines import Case, sums
from recordwise.planning.simulate.older_rules import joint_cells, publication_of

RULES = (PercentRule(15), ThresholdRule(3))


def records(seed: int = 3, count: int = 90) -> dict[str, list[object]]:
    """Shops of four counties in two states by six industries in three sectors."""
    rng = np.random.default_rng(seed)
    county = rng.choice(["01001", "01003", "02001", "02005"], count, p=[0.4, 0.3, 0.2, 0.1])
    naics = rng.choice(["311", "312", "441", "442", "521", "522"], count)
    emp = (rng.pareto(1.0, count) * 4 + 1).astype(int)
    return {"id": list(range(count)), "county": list(county), "naics": list(naics), "emp": [int(each) for each in emp]}


def plan() -> rw.Query:
    """Counties by sectors and by industries."""
    cells = [
        (county, naics)
        for county in ("01001", "01003", "02001", "02005")
        for naics in ("311", "312", "441", "442", "521", "522")
    ]
    keys = {"county": [each[0] for each in cells], "naics": [each[1] for each in cells]}
    return rw.query().group_by("county", keys=keys).levels(rw.prefix("naics", [2, 3])).sum("emp", rw.Gaussian(sigma=5))


@pytest.fixture(scope="module")
def opened():
    with employers(records(), "county", "naics") as session:
        yield session


def test_all_tables_of_a_query_are_one_publication(opened) -> None:
    view = opened.owner.view(data="synthetic")
    simulation = view.simulation(plan())
    case = Case(
        view=view, queries=simulation.plan.queries, simulation=simulation, tables=tuple(simulation.tables()), seed=0
    )
    own = sums(case)
    made = publication_of(case, own)
    exact = np.concatenate([table.exact["sum_emp"] for table, _ in own])
    assert np.array_equal(made.found.total[: len(exact)], exact)
    equations = made.cells.equations(absent_is_zero=True)
    assert np.abs(equations @ made.found.total).max() == 0
    # The total of a county is no table, but it is in the list.
    assert made.found.hidden.sum() == len(made.cells) - len(exact) > 0
    assert len(joint_cells([table for table, _ in own], opened.schema)) == len(made.cells)
    marked, distance = sensitive_cells(RULES, made.found)
    published = Suppression(RULES).publish(made.cells, made.found)
    _, high = feasible_intervals(made.cells.system(published.low, published.high), np.flatnonzero(marked))
    held = ~np.isin(np.flatnonzero(marked), published.unprotected)
    assert held.sum() > 5
    assert np.all(high[held] >= (made.found.total + distance)[marked][held] - 1e-4)


def test_what_a_rule_withholds_is_counted_with_its_share_of_the_total(opened) -> None:
    found = evaluate(
        opened,
        plan(),
        metric="absolute_error",
        baselines={
            "primary": Suppression(RULES, complementary=False),
            "suppression": Suppression(RULES),
            "coarsening": Coarsening(RULES),
            "rounding": Rounding(10),
            "ranges": Ranges(RULES),
            "rule": PercentRule(15),
        },
        draws=1,
        data="synthetic",
    )
    shares = {name: [found.at(*place, name)["all cells"].withheld for place in found.places()] for name in found.names}
    assert sum(shares["primary"]) < sum(shares["suppression"])
    finest = found.places()[-1]
    at = {name: found.at(*finest, name)["all cells"] for name in found.names}
    assert 0 < at["suppression"].withheld_total < 1
    assert at["suppression"].value == 0
    assert at["rounding"].withheld == at["ranges"].withheld == 0
    assert 0 < at["rounding"].value <= 5
    assert at["coarsening"].withheld >= at["primary"].withheld
    assert at["rule"].withheld > 0
