"""Five years of generated establishments: every claim holds, losses grow over the years, and a wrong interval is noticed."""

from itertools import pairwise

import numpy as np
import pytest

from experiments.years import run


@pytest.mark.slow
def test_five_small_years_agree_with_every_claim() -> None:
    """Noise is secure: each claim about intervals is wrong by chance with probability below 1e-6."""
    done = run.reproduce(runs=3_000, seed=1, tell=lambda _: None)
    assert [claim.statement for claim in done.claims if claim.agrees is not True] == []
    losses = done.tables["losses"]
    assert [row["year"] for row in losses] == list(run.YEARS)
    assert all(later["p99_so_far"] > earlier["p99_so_far"] for earlier, later in pairwise(losses))
    assert losses[0]["median"] == losses[0]["median_so_far"]
    assert len(done.tables["errors"]) == 2 * len(run.YEARS)
    sized = done.tables["sized"]
    assert [row["variable"] for row in sized] == ["emp", "emp_sized"] * (len(run.YEARS) - 1)


def test_intervals_that_are_too_narrow_do_not_agree() -> None:
    held = {"change": [400, 480]}
    series = run.Series(tables={}, releases={}, policies={})
    found = run.claims(series, {2022: np.ones(1)}, held)
    assert found[-1].agrees is False
    assert run.claims(series, {2022: np.ones(1)}, {"change": [455, 480]})[-1].agrees is True
