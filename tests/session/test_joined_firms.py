"""What firms lose is counted where the rows of a unit become one record, too, by a rule that holds the firm."""

import numpy as np
import pyarrow as pa

import recordwise as rw
from build import employers
from recordwise.engines.owner import EDGES
from recordwise.plan import Plan
from recordwise.plan.cost import firm_policy

ROWS = pa.table(
    {
        "id": [1, 1, 2, 3, 4, 4],
        "firm": ["a", "a", "a", "b", "c", "c"],
        "county": ["01", "01", "01", "02", "02", "02"],
        "emp": [10, 20, 300, 4, 7, 0],
    }
)
UNITS = {"id": [1, 2, 3, 4], "firm": ["a", "a", "b", "c"], "county": ["01", "01", "02", "02"], "emp": [30, 300, 4, 7]}
RULES = {"emp": "sum", "county": "same", "firm": "same"}


def test_firms_of_joined_rows_lose_what_their_units_lose() -> None:
    asked = rw.query().group_by("county", keys={"county": ["01", "02"]}).sum("emp", rw.UnitSplit(at=50, rho="0.3"))
    with employers(ROWS, "county", firm="firm", collapse=RULES, dataset="small") as session:
        found = session.owner.firm_loss_summary(asked, data="synthetic")
        realized = session.owner.realized_loss_summary(asked, firms=True, data="synthetic")
        firms = firm_policy(Plan(schema=session.schema, queries=(asked,)))
    losses = []
    for name in ("a", "b", "c"):
        rows = np.array(UNITS["firm"]) == name
        losses.append(firms.loss({column: np.array(values)[rows] for column, values in UNITS.items()}).rho)
    expected = np.bincount(np.searchsorted(EDGES, losses), minlength=len(EDGES) + 1)
    assert found.counts.tolist() == expected.tolist()
    assert realized.counts.sum() == 3
