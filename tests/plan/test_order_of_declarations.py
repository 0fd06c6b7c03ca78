"""In which order measures and columns are declared is no part of what is charged."""

import recordwise as rw
from plan.test_identity import identity
from recordwise.plan import Plan
from recordwise.plan.schema import Schema


def test_a_schema_in_another_order_is_the_same_release() -> None:
    keys = rw.Keys.product(county=["1", "2"], naics=["3"])
    asked = (
        rw.query()
        .group_by("county", "naics", keys=keys)
        .sum("emp", rw.Gaussian(sigma=5))
        .sum("pay", rw.Gaussian(sigma=5))
    )
    measures, columns = {"emp": 1, "pay": 2}, {"county": "text", "naics": "text"}

    def of(order: int, step: int = 2) -> str:
        schema = Schema.of(
            unit="id",
            measures=dict([*(measures | {"pay": step}).items()][::order]),
            columns=dict([*columns.items()][::order]),  # type: ignore[arg-type]
        )
        return identity(Plan(schema=schema, queries=(asked,)))

    assert of(1) == of(-1)
    assert of(1) != of(1, step=1)
