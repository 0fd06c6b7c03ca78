"""Recommended plans with sized noise and fits reach their goals in 200 releases, at losses near those of plans made by hand."""

import pytest

from planning import recommended_releases as run
from planning.recommended_goals import GOALS

pytestmark = [pytest.mark.slow, pytest.mark.parametrize("wanted", GOALS, ids=[each.name for each in GOALS])]


@pytest.mark.parametrize("rank", ["median", "p99"])
def test_no_plan_made_by_hand_is_better_by_more_than_a_tenth(wanted, rank):
    found = run.compared(wanted)
    assert len(found.by_hand) == 6
    for made, losses in found.by_hand.items():
        assert found.losses[rank] <= run.MOST_ABOVE * losses[rank], made


def test_goals_are_reached(wanted):
    """False alarm: each table is a seeded test at five standard errors, below 1e-6. Power: 5 % more noise than stated is seen in at
    least one table of each goal."""
    tables = run.measured(wanted)
    assert all(each["cells that meet the goal"] >= float(wanted.share) for each in tables)
    assert all(abs(each["standard errors apart"]) < run.FALSE_ALARM_SDS for each in tables)
    assert any(each["with 5 % more noise"] > run.FALSE_ALARM_SDS for each in tables)
