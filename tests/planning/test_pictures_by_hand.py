"""The values that pictures of planning are drawn from, by hand."""

import math
import re
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import recordwise as rw
from recordwise.errors import ParameterError
from recordwise.planning.frontier import Frontier
from recordwise.planning.plots import (
    LEAST_PLOTTED,
    _different,
    _distinct,
    _end,
    _spread,
    _spread_out,
    _tail,
    _thinned,
    plot_cell_errors,
    plot_evaluation,
    plot_fitness,
    plot_frontier,
    plot_losses,
    plot_sweep,
)
from recordwise.planning.scope import TODAY
from recordwise.planning.simulate.evaluate import EvaluatedGroup, Evaluation

pytest.importorskip("matplotlib", reason="the plots extra is not installed: no figure is drawn here")


def first_axes(figure: Any) -> Any:
    return figure.axes[0]


def lines(axes: Any) -> dict[str, tuple[list[float], list[float]]]:
    found = {}
    for each in axes.get_lines():
        x, y = each.get_data()
        found[str(each.get_label())] = (np.asarray(x).tolist(), np.asarray(y).tolist())
    return found


def test_points_are_on_the_lattice_from_a_step_to_the_largest() -> None:
    found = _spread(0.5, 100.0)
    assert (found[0], found[-1]) == (0.5, 100.0)
    assert set((found * 2 % 1).tolist()) == {0.0}
    assert np.all(np.diff(found) > 0)
    for largest in (0.5, 0.4):
        with pytest.raises(ParameterError, match="must be above the measure's step"):
            _spread(0.5, largest)
    assert len(_spread(0.5, 0.76)) == 2


def test_losses_are_shown_from_a_millionth_to_the_ceiling() -> None:
    axes = first_axes(plot_losses({"g": rw.Gaussian(sigma=1000)}, "emp", largest=100_000, most=50.0))
    ((x, y),) = lines(axes).values()
    for size, loss in zip(x, y):
        exact = size**2 / 2e6
        assert math.isnan(loss) == (exact < 1e-6 * (1 - 1e-9) or exact > 50 * (1 + 1e-9))


def test_curves_within_a_hundredth_share_a_line() -> None:
    base = np.array([1.0, 2.0, math.nan])
    found = _distinct({"a": base, "b": base * 1.009, "c": base * 1.02, "d": np.array([1.0, 2.0, 3.0])})
    assert [names for names, _ in found] == [["a", "b"], ["c"], ["d"]]
    pairs = {
        "a": (base[:2], [0.5, 1.0]),
        "b": (base[:2] * 1.009, [0.5, 1.0]),
        "c": (base[:2] * 1.02, [0.5, 1.0]),
        "d": (base[:2], [0.6, 1.0]),
        "e": (base[:1], [1.0]),
    }
    assert [names for names, _, _ in _different(pairs)] == [["a", "b"], ["c"], ["d"], ["e"]]


def test_a_legend_is_ordered_by_where_lines_end() -> None:
    assert _end(np.array([1.0, 5.0, math.nan])) == (-1, 5.0)
    assert _end(np.array([1.0, 5.0, 2.0])) == (-2, 2.0)
    assert _end(np.array([math.nan] * 3)) == (-3, -math.inf)


def test_a_tail_starts_with_everybody_and_ends_at_a_third_of_the_last_share() -> None:
    above, at = _tail(np.array([1.0, 10.0, 20.0]), np.array([0.25, 0.7, 1.0]))
    assert above == pytest.approx([1.0, 0.75, 0.3, 0.1])
    assert at.tolist() == [LEAST_PLOTTED, 1.0, 10.0, 20.0]
    above, at = _tail(np.array([1e-9, 1.0]), np.array([0.5, 1.0]))
    assert at.tolist() == [LEAST_PLOTTED, LEAST_PLOTTED, 1.0]
    above, at = _tail(np.zeros(0), np.zeros(0))
    assert (above.tolist(), at.tolist()) == ([1.0], [LEAST_PLOTTED])


def test_many_cells_are_thinned_to_medians_of_eighty_ranges() -> None:
    x = np.geomspace(1.0, 1e6, 2000)
    at, middle = _thinned(x, x * 3)
    assert len(at) == 79
    assert middle == pytest.approx(at * 3)
    assert x[0] <= at[0] < 1.2
    assert 0.8e6 < at[-1] <= x[-1]
    alone, one = _thinned(np.array([5.0]), np.array([2.0]))
    assert (alone.tolist(), one.tolist()) == ([5.0], [2.0])
    few, values = _thinned(np.array([1.0, 1.0, 1.0, 100.0]), np.array([3.0, 9.0, 4.0, 7.0]))
    assert (few.tolist(), values.tolist()) == ([1.0, 100.0], [4.0, 7.0])


def test_errors_of_cells_are_shares_of_their_totals_and_empty_cells_are_left_out() -> None:
    totals, errors = np.array([100.0, 0.0, 10.0, 1000.0]), np.array([20.0, 5.0, 4.0, 50.0])
    axes = first_axes(plot_cell_errors(totals, {"a": errors}, measure="emp", confidence=0.9))
    assert lines(axes)["a"] == ([10.0, 100.0, 1000.0], pytest.approx([0.4, 0.2, 0.05]))
    assert axes.get_title(loc="left").startswith("90% error")
    assert axes.texts[0].xy == (1000.0, 1.0)


def test_thresholds_are_written_at_the_lowest_curve_and_families_in_rows_from_the_top() -> None:
    curves = {
        "low rho": (np.array([5, 50]), np.array([0.4, 0.02]), np.array([3.0, 8.0])),
        "high rho": (np.array([5, 60]), np.array([0.4, 0.02]), np.array([1.0, 2.0])),
    }
    axes = first_axes(plot_sweep(curves, measure="emp"))
    assert [(each.get_text(), each.xy) for each in axes.texts] == [("5", (0.4, 1.0)), ("60", (0.02, 2.0))]
    assert lines(axes)["low rho"] == ([0.4, 0.02], [3.0, 8.0])
    axes = first_axes(plot_fitness(["a", "b", "c"], {"median": [1.0, 2.0, 3.0], "maximum": [10.0, 5.0, 30.0]}))
    assert lines(axes)["maximum"] == ([10.0, 5.0, 30.0], [2, 1, 0])
    assert [each.get_text() for each in axes.get_yticklabels()] == ["a", "b", "c"]
    assert axes.get_yticks().tolist() == [2, 1, 0]
    assert axes.get_ylim() == pytest.approx((-0.6, 2.6))
    segments = [each.tolist() for each in axes.collections[0].get_segments()]
    assert segments == [[[1.0, 2], [10.0, 2]], [[2.0, 1], [5.0, 1]], [[3.0, 0], [30.0, 0]]]


def group(name: str, label: str, value: float, cells: int = 5, **sources: float) -> EvaluatedGroup:
    return EvaluatedGroup(
        table="t",
        variable="n",
        group=label,
        name=name,
        cells=cells,
        value=value,
        withheld=0.0,
        withheld_total=0.0,
        sources={each.replace("_", "-") if each == "post_processing" else each: part for each, part in sources.items()},
    )


def evaluation(*groups: EvaluatedGroup) -> Evaluation:
    return Evaluation(metric="absolute_error", by="county", data="synthetic", draws=7, groups=groups)


def test_an_evaluation_has_a_dot_for_each_rival_and_bars_that_add_up() -> None:
    found = evaluation(
        group(TODAY, "a", 6.0, clamping=-1.0, noise=9.0, post_processing=-2.0),
        group(TODAY, "b", 3.0, clamping=1.0, noise=2.0, post_processing=0.0),
        group("other", "a", 5.0),
    )
    figure: Any = plot_evaluation(found, "t", "n")
    left, right = figure.axes
    own, other = lines(left)[TODAY], lines(left)["other"]
    assert own == ([6.0, 3.0], pytest.approx([1.24, 0.24]))
    assert other[0][0] == 5.0
    assert math.isnan(other[0][1])
    assert other[1] == pytest.approx([0.76, -0.24])
    bars = [(each.get_x(), each.get_width(), each.get_y() + each.get_height() / 2) for each in right.patches]
    expected = [(0.0, -1.0, 1), (0.0, 1.0, 0), (0.0, 9.0, 1), (1.0, 2.0, 0), (-1.0, -2.0, 1), (3.0, 0.0, 0)]
    np.testing.assert_allclose(bars, expected, atol=1e-12)
    assert lines(right)["together"] == ([6.0, 3.0], [1, 0])
    assert left.get_xlabel() == "mean absolute error"
    assert left.get_ylabel() == "county"
    (alone,) = plot_evaluation(evaluation(group(TODAY, "a", 6.0)), "t", "n").axes[0].get_lines()
    assert np.asarray(alone.get_ydata()).tolist() == [0.0]


def test_the_forty_groups_with_the_most_cells_are_shown_in_their_order_and_none_without_a_number() -> None:
    many = [group(TODAY, f"g{at:02d}", 1.0 + at, cells=100 - at) for at in range(45)]
    left, _ = plot_evaluation(evaluation(*many, group(TODAY, "gone", math.nan, cells=1000)), "t", "n").axes
    names = [each.get_text() for each in left.get_yticklabels()]
    assert names == [f"g{at:02d}" for at in range(40)]
    both = evaluation(group(TODAY, "a", math.nan), group("other", "a", 2.0))
    assert [each.get_text() for each in plot_evaluation(both, "t", "n").axes[0].get_yticklabels()] == ["a"]


def test_a_rival_without_a_number_has_no_entry_in_the_legend_and_an_axis_says_what_it_shows() -> None:
    found = evaluation(group(TODAY, "a", 6.0), group("other", "a", math.nan))
    left, _ = plot_evaluation(found, "t", "n").axes
    assert [each.get_text() for each in left.get_legend().get_texts()] == [TODAY]
    figure: Any = plot_evaluation(replace(found, metric="off_by_a_tenth"), "t", "n")
    left, right = figure.axes
    assert left.get_xlabel() == "share off by more than a tenth"
    assert right.get_xlabel() == "what each stage adds to the plan's share off by more than a tenth"
    assert figure.get_suptitle() == "n in t: share off by more than a tenth over 7 draws"


def test_labels_between_the_powers_of_ten_are_written_like_the_others() -> None:
    axes = plot_sweep({"rho 1": ([1.0, 2.0], [0.04, 0.3], [0.02, 0.06])}, measure="emp").axes[0]
    axes.figure.canvas.draw()
    for axis in (axes.xaxis, axes.yaxis):
        told = [each.get_text() for each in axis.get_ticklabels(which="both") if each.get_text()]
        assert len(told) > 1
        assert all(re.fullmatch(r"[\d.]+%", each) for each in told), told


class Axes:
    """Notes what it is told."""

    def __init__(self) -> None:
        self.scale: Any = None
        self.limits: Any = None
        self.xaxis = SimpleNamespace(set_major_formatter=lambda _: None)

    def set_xscale(self, kind: str, linthresh: float) -> None:
        self.scale = (kind, linthresh)

    def set_xlim(self, low: float, high: float) -> None:
        self.limits = (low, high)


@pytest.mark.parametrize(
    "values, scale, limits",
    [
        ([1.0, 10.0], None, None),
        ([1.0, 10.1], 1.0, (-0.2, 16.16)),
        ([3.0, 50.0, 0.0], 1.0, (-0.2, 80.0)),
        ([0.03, -50.0, math.nan], 0.01, (-80.0, 80.0)),
        ([0.0, 0.0], None, None),
        ([], None, None),
    ],
)
def test_values_that_differ_by_more_than_ten_times_are_on_a_logarithmic_scale_with_a_0(
    values: list[float], scale: Any, limits: Any
) -> None:
    axes = Axes()
    _spread_out(axes, np.array(values))
    assert axes.scale == (None if scale is None else ("symlog", pytest.approx(scale)))
    assert axes.limits == (None if limits is None else pytest.approx(limits))


def point(loss: float, share: float, by_class: list[float]) -> Any:
    return SimpleNamespace(
        name="p",
        loss=lambda rank: loss * {"median": 1, "p99": 4, "maximum": 9}[rank],
        reliable=SimpleNamespace(share=share, by_class=by_class),
    )


def frontier(today: Any = None, **more: Any) -> Frontier:
    points = (
        point(0.1, 0.2, [math.nan, 0.1, 0.5, 0.98, 1.0, math.nan, math.nan, math.nan]),
        point(1.0, 0.6, [math.nan, 0.2, 0.9, 0.99, 1.0, math.nan, math.nan, math.nan]),
        point(10.0, 0.5, [math.nan, 0.9, 0.9, 0.995, 1.0, math.nan, math.nan, math.nan]),
    )
    given: dict[str, Any] = {"data": "synthetic", "rank_by": "median", "status": "reliable", "limit": 0.165}
    return Frontier(points=points, today=today, **(given | more))


def test_a_frontier_shows_all_cells_the_classes_that_move_and_today_s_plan() -> None:
    today = point(2.0, 0.4, [])
    axes = first_axes(plot_frontier(frontier(today)))
    found = lines(axes)
    assert list(found) == ["all cells", "cells of 1 to 9", "cells of 10 to 99", "today's plan, all cells"]
    assert found["all cells"] == ([0.1, 1.0, 10.0], [0.2, 0.6, 0.5])
    assert found["cells of 1 to 9"][1] == [0.1, 0.2, 0.9]
    assert found["today's plan, all cells"] == ([2.0], [0.4])
    assert axes.get_ylim() == pytest.approx((-0.02, 1.02))
    assert "today's plan, all cells" not in lines(plot_frontier(frontier()).axes[0])


def test_a_frontier_is_read_between_its_points() -> None:
    found = frontier()
    assert [name for _, name in found.classes()] == ["1 to 9", "10 to 99", "100 to 999", "1,000 to 9,999"]
    assert found.at_loss(0.1 * math.sqrt(10)) == pytest.approx(0.4)
    assert (found.at_loss(0.01), found.at_loss(100.0)) == (0.2, 0.5)
    # Shares never fall along it: from the second point on it stays at .6.
    assert found.at_share(0.4) == pytest.approx(0.1 * math.sqrt(10))
    assert found.at_share(0.2) == pytest.approx(0.1)
    assert found.at_share(0.61) == math.inf
    assert frontier(rank_by="p99").at_loss(0.4) == pytest.approx(0.2)
    assert frontier().summary() == ""
    told = frontier(point(1.0, 0.4, [])).summary()
    assert told == (
        "Today 40.0% of the cells are reliable at a median loss of 1. At the same loss the frontier has 60.0%; the same share "
        "of cells costs 0.3162 on it."
    )
    other = SimpleNamespace(
        name="p",
        loss=lambda rank: {"median": 1.0, "p99": 8.0, "maximum": 9.5}[rank],
        reliable=SimpleNamespace(share=0.7),
    )
    assert frontier(other, others=("n",)).summary() == (
        "Today 70.0% of the cells are reliable at a median loss of 1. At the same loss the frontier has 70.0%; the same share "
        "of cells costs 1 on it. At the same median loss its 99th-percentile loss is 4 instead of 8. The losses are those of "
        "what is examined; n cost more, whatever is chosen."
    )
