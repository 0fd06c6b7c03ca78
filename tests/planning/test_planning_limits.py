"""Small parts of planning, each at the last value on one side and the first on the other."""

from typing import Any

import numpy as np
import pytest

import recordwise as rw
from planning.small_table import opened, shape
from recordwise.errors import ParameterError
from recordwise.planning import evaluate
from recordwise.planning.check import LEAST_SHARE, error_text
from recordwise.planning.explain import and_list, class_ends, size_name
from recordwise.planning.plots import COLORS, plot_losses, plot_sweep
from recordwise.planning.result import loss_figure, mark_of, record_text
from recordwise.planning.simulate.evaluate import METRICS, MOST_DRAWS


@pytest.mark.parametrize("draws", [0, -1, True, 1.0, "2", MOST_DRAWS + 1])
def test_draws_are_a_whole_number_within_limits(draws: Any) -> None:
    query = shape().count(rw.Gaussian(rho=1))
    with opened() as session, pytest.raises(ParameterError, match="must be a whole number from 1 to"):
        evaluate(session, query, draws=draws, data="synthetic")


def test_metrics_are_what_they_are_called() -> None:
    exact, published = np.array([100.0, 100, 100, -100, 0, 4]), np.array([110.0, 110.5, 89.9, -110, 3, 4])
    wanted = {
        "relative_error": [0.1, 0.105, 0.101, 0.1, np.nan, 0.0],
        "absolute_error": [10, 10.5, 10.1, 10, 3, 0],
        "squared_error": [100, 110.25, 102.01, 100, 9, 0],
        "bias": [10, 10.5, -10.1, -10, 3, 0],
        "off_by_a_tenth": [0, 1, 1, 0, np.nan, 0],
    }
    for name, values in wanted.items():
        np.testing.assert_allclose(METRICS[name](exact, published), values, rtol=1e-9, equal_nan=True, err_msg=name)


def test_errors_are_told_with_their_share_where_there_is_one() -> None:
    assert error_text(100, 5, 5) == "100 ± 5 (5.0%)"
    assert error_text(-100, 5, 20) == "-100 ± 5 to 20 (20%)"
    assert error_text(0, 5, 5) == "0 ± 5"
    assert error_text(10_000, 10_000 * LEAST_SHARE, 10_000 * LEAST_SHARE) == "10,000 ± 5 (0.1%)"
    assert error_text(100_000, 49, 49) == "100,000 ± 49 (< 0.1%)"


def test_classes_of_sizes_end_at_powers_of_ten() -> None:
    assert class_ends(np.array([0.0, -3])) == []
    assert class_ends(np.array([1.0, 5, 9])) == []
    assert class_ends(np.array([1.0, 5, 10]), top=0.0) == [10]
    assert class_ends(np.array([3.0, 40, 5000]), top=0.0) == [10, 100, 1000]
    assert class_ends(np.array([0.02, 3.0]), top=0.0) == [0.1, 1]
    assert len(class_ends(10.0 ** np.arange(9), top=0.0)) == 4
    assert [size_name([10.0, 100.0], at) for at in range(3)] == ["below 10", "10 to 99", "100 or more"]
    assert [size_name([0.1, 1.0], at) for at in range(3)] == ["below 0.1", "0.1 to below 1", "1 or more"]
    assert size_name([], 0) == "all"
    assert [and_list(["a", "b", "c"][:at]) for at in (1, 2, 3)] == ["a", "a and b", "a, b and c"]


@pytest.mark.costly
def test_as_many_lines_are_drawn_as_there_are_colors() -> None:
    pytest.importorskip("matplotlib", reason="the plots extra is not installed: no figure is drawn here")
    many = {str(at): rw.Gaussian(sigma=2**at) for at in range(1, len(COLORS) + 2)}
    few = dict(list(many.items())[: len(COLORS)])
    assert len(plot_losses(few, "emp").axes[0].get_lines()) == len(COLORS)
    ends = (np.array([5, 50]), np.array([0.4, 0.02]), np.array([0.1, 1.0]))
    assert plot_sweep(dict.fromkeys(list(few), ends), measure="emp").axes
    for wrong in (many, {}):
        with pytest.raises(ParameterError, match="distinguished"):
            plot_losses(wrong, "emp")
        with pytest.raises(ParameterError, match="distinguished"):
            plot_sweep(dict.fromkeys(wrong, ends), measure="emp")


def test_words_of_results() -> None:
    assert mark_of("confidential").startswith("CONFIDENTIAL")
    assert mark_of("synthetic") == "computed from synthetic records"
    assert [loss_figure(each) for each in (0.0, 0.000123456, 0.5, 12.3456, 123456.0)] == [
        "0",
        "0.000123",
        "0.5",
        "12.35",
        "123,456",
    ]
    assert record_text({"emp": 4, "county": "01"}) == "emp 4, county 01"
