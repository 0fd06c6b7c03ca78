"""Calls with arguments that mean nothing: each is refused by name, before anything is computed or charged."""

import pytest

import recordwise as rw
from build import keys, records, session
from recordwise.errors import ParameterError, RecordwiseError

ODD = [None, "", "abc", True, [], {}, object(), float("nan"), -1, 10**400]
QUERY = rw.query().group_by("county", "naics", keys=keys())
COUNTS = QUERY.count(rw.Gaussian(rho=1))


@pytest.fixture(scope="module")
def opened():
    with session(records(60)) as one:
        yield one


@pytest.fixture(scope="module")
def release(opened):
    return opened.run(COUNTS.sum("emp", rw.Gaussian(sigma=9)))


CALLS = {
    "slack": lambda s, r, odd: r.records(weighted=True, of="count", method="max_fit", slack=odd),
    "gamma": lambda s, r, odd: r.records(weighted=True, of="count", method="reweighted", gamma=odd),
    "records": lambda s, r, odd: r.records(weighted=odd, of="count"),
    "cells": lambda s, r, odd: rw.postprocess.cell_error_bound_pure(cells=odd, sum_error=1.0, epsilon=1.0),
    "sum_error": lambda s, r, odd: rw.postprocess.cell_error_bound_zcdp(cells=9, sum_error=odd, rho=1.0),
    "cell_error": lambda s, r, odd: rw.postprocess.sum_error_bound_zcdp(cells=9, cell_error=odd, rho=1.0),
    "rho": lambda s, r, odd: rw.postprocess.sum_error_bound_zcdp(cells=9, cell_error=1.0, rho=odd),
    "delta": lambda s, r, odd: rw.postprocess.sum_error_bound_approximate(
        cells=9, cell_error=1.0, epsilon=1.0, delta=odd
    ),
    "p": lambda s, r, odd: s.owner.realized_loss_summary(COUNTS, data="synthetic").quantile(odd),
    "name": lambda s, r, odd: r.values.window({"emp": 3, "county": "01", "naics": "111"}, odd),
    "default": lambda s, r, odd: rw.ByGroup("naics", {"111": rw.Gaussian(sigma=1)}, default=odd),
}


@pytest.mark.parametrize("name", CALLS)
def test_what_means_nothing_is_refused_by_name(name, opened, release):
    for odd in (each for each in ODD if (name, each) not in [("records", True), ("default", None)]):
        with pytest.raises(RecordwiseError) as error:
            CALLS[name](opened, release, odd)
        assert isinstance(error.value, ParameterError), odd
        assert len(str(error.value)) < 300


@pytest.mark.parametrize("odd", [-1, True, "10", object(), 10**400])
def test_grids_and_goals_need_numbers(odd, opened):
    with pytest.raises(ParameterError):
        rw.planning.compare(opened, query=QUERY, measure="emp", clamps=odd, rhos=[1], data="synthetic")
    if odd != "10":
        with pytest.raises(ParameterError):
            rw.planning.Goal("emp", QUERY, within="0.5", at_least={"emp": odd})
