"""A sweep is what Python works out for each threshold and each rho."""

from fractions import Fraction

import numpy as np
import pytest

import recordwise as rw
from planning.small_table import cell_sums, rows, shape
from recordwise.errors import ParameterError
from recordwise.noise import DiscreteGaussian
from recordwise.planning import compare


@pytest.mark.parametrize("tight", [True, False])
def test_every_point_has_the_expected_error_and_the_share_above_the_threshold(session, tight):
    found = compare(session, measure="emp", query=shape(), thresholds=[5, 60], rhos=["0.1", 1], tight=tight)
    totals = np.array([sum(values) for values in cell_sums(rows(), "emp").values() if values])
    assert [(point.at, point.rho) for point in found.points] == [(5, 0.1), (5, 1), (60, 0.1), (60, 1)]
    for point in found.points:
        assert point.share_above == np.mean(rows()["emp"] > point.at)
        sigma = rw.UnitSplit(at=int(point.at), rho=str(point.rho)).noise_sigma
        relative = DiscreteGaussian(sigma).mean_abs / totals
        assert point.median_error == pytest.approx(np.median(relative))
        assert point.mean_error == pytest.approx(relative.mean())


def test_points_are_about_the_cells_that_reach_any_statistic(session):
    cells = [values for values in cell_sums(rows(), "emp").values() if values]
    least = sorted(map(len, cells))[len(cells) // 2]
    (point,) = compare(
        session, measure="emp", query=shape(), thresholds=[60], rhos=[1], at_least={"count": least}
    ).points
    totals = np.array([sum(values) for values in cells if len(values) >= least])
    sigma = rw.UnitSplit(at=60, rho=1).noise_sigma
    assert point.mean_error == pytest.approx((DiscreteGaussian(sigma).mean_abs / totals).mean())


def test_joint_thresholds_count_the_pieces_of_every_measure(session):
    joint = [{"emp": 60, "pay": 300}]
    found = compare(session, measure="emp", query=shape(), thresholds=joint, rhos=[1], tight=False)
    table = rows()
    assert found.points[0].share_above == np.mean((table["emp"] > 60) | (table["pay"] > 300))


def test_levels_get_their_shares_of_rho(session):
    keys = rw.Keys.product(county=["01", "02", "03"], naics=["111", "112", "221"])
    by = rw.query().levels("county", "naics", share=["0.25", "0.75"], keys=keys)
    (point,) = compare(session, measure="emp", query=by, thresholds=[60], rhos=[1]).points
    table, split = rows(), rw.UnitSplit(at=60, rho=1)
    relative = []
    for column, share in (("county", "0.25"), ("naics", "0.75")):
        totals = np.array([table["emp"][table[column] == value].sum() for value in np.unique(table[column])])
        relative.append(DiscreteGaussian(split.shared(share).noise_sigma).mean_abs / totals)
    assert point.mean_error == pytest.approx(np.concatenate(relative).mean())


def mean_error(sigma, bias):
    """E |Z - bias| of discrete Gaussian noise, summed."""
    reach = np.arange(-int(12 * sigma) - 2, int(12 * sigma) + 3)
    weights = np.exp(-(reach**2) / (2 * sigma**2))
    return float(weights @ np.abs(reach - bias) / weights.sum())


@pytest.mark.parametrize("sigma", ["0.4", 3, 40, 1500])
def test_the_mean_error_of_a_clamped_sum_has_noise_and_what_was_cut(sigma):
    clamped = rw.Clamped(to=10, variance=Fraction(sigma) ** 2)
    cut = np.array([0, 1, 2, 5, 30, 200, 100_000])
    found = clamped.mean_errors(np.full(7, 100_000.0), kept=100_000.0 - cut)
    exact = [mean_error(float(clamped.noise_sigma), each) for each in cut]
    np.testing.assert_allclose(found, exact, rtol=1e-6)
    halves = clamped.mean_errors(np.full(7, 50_000.0), kept=50_000.0 - cut / 2, step="0.5")
    twice = rw.Clamped(to=20, variance=4 * Fraction(sigma) ** 2)
    assert halves[2] == pytest.approx(mean_error(float(twice.noise_sigma), 2) / 2, rel=1e-6)


def test_the_best_clamp_is_the_bound_with_the_least_error_and_rises_with_the_loss(session):
    """What Python works out over the records ([S] 6.2, figure 1)."""
    bounds, cells = [5, 50, 500, 5000], [np.array(each) for each in cell_sums(rows(), "emp").values() if each]
    found = compare(
        session, measure="emp", query=shape(), thresholds=[60], clamps=bounds, rhos=["0.01", 1, 100], data="synthetic"
    )
    assert [each.mechanism for each in found.points] == ["split"] * 3 + ["clamp"] * 12
    best = {}
    for point in found.points[3:]:
        sigma = float(rw.Clamped(to=int(point.at), rho=str(point.rho)).noise_sigma)
        cut = [int((each - np.minimum(each, point.at)).sum()) for each in cells]
        relative = [mean_error(sigma, bias) / each.sum() for bias, each in zip(cut, cells)]
        assert point.mean_error == pytest.approx(np.mean(relative), rel=1e-4)
        assert point.share_above == 0
        best.setdefault(point.rho, []).append((np.mean(relative), point.at))
    assert [(each.rho, each.at) for each in found.best_clamps()] == [(rho, min(own)[1]) for rho, own in best.items()]
    assert len({each.at for each in found.best_clamps()}) > 1
    assert list(found.curves()) == ["ρ = 0.01", "ρ = 1", "ρ = 100"]
    assert found.words() == "Unit splitting and clamping of emp"
    headers, body = found.rows()
    assert headers[:2] == ["mechanism", "at"]
    assert all(len(row) == len(headers) for row in body)
    with pytest.raises(ParameterError, match="must be one of mean_error"):
        found.best_clamps("error")


def test_results_can_be_read_in_several_ways(session):
    found = compare(session, measure="emp", query=shape(), thresholds=[5, 60], rhos=["0.1", 1], data="past")
    at, share, error = found.curves()["ρ = 0.1"]
    assert list(at) == [5, 60]
    assert share[0] > share[1]
    assert error[0] < error[1]
    headers, body = found.rows()
    assert len(body) == 4
    assert all(len(row) == len(headers) for row in body)
    assert "past" in found._repr_html_()
    assert "past" in repr(found)
    assert len(found.to_json()["points"]) == 4


def test_bad_arguments_are_refused(session):
    with pytest.raises(ParameterError, match="at least one number"):
        compare(session, measure="emp", query=shape(), thresholds=[], rhos=[1])
    with pytest.raises(ParameterError, match="for 'emp', which is summed"):
        compare(session, measure="emp", query=shape(), thresholds=[{"pay": 5}], rhos=[1])
    empty = rw.query().where("emp < 0").group_by("county", "naics", keys=shape().key_lists[0])
    with pytest.raises(ParameterError, match="no cell"):
        compare(session, measure="emp", query=empty, thresholds=[5], rhos=[1])
