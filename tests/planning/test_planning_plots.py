"""Pictures of planning: labeled, every line in them, marked where confidential."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recordwise.errors import ParameterError
from recordwise.planning.plots import COLORS, MOST_LINES, plot_cell_errors, plot_fitness, plot_loss_shares, plot_sweep

pytest.importorskip("matplotlib", reason="the plots extra is not installed: no figure is drawn here")

LOSSES = np.geomspace(1e-3, 1e4, 50)
CURVES = {
    "steep": (LOSSES, 1 - 1 / (1 + LOSSES)),
    "flat": (LOSSES / 10, 1 - 1 / (1 + LOSSES)),
    "the same": (LOSSES, 1 - 1 / (1 + LOSSES)),
}
SWEEP = {f"ρ = {rho}": (np.array([5, 50]), np.array([0.4, 0.02]), np.array([0.1, 1.0]) / rho) for rho in (0.1, 1)}
CONFIDENTIAL = "CONFIDENTIAL: computed from the confidential records themselves"


def drawn() -> dict[str, Any]:
    totals = np.geomspace(1, 1e5, 300)
    return {
        "shares": plot_loss_shares(CURVES, privacy_label=CONFIDENTIAL),
        "errors": plot_cell_errors(
            totals, {"a": np.full(300, 20.0), "b": totals * 0.1}, measure="emp", privacy_label=CONFIDENTIAL
        ),
        "sweep": plot_sweep(SWEEP, measure="emp", privacy_label=CONFIDENTIAL),
        "fitness": plot_fitness(["a", "b"], {"median": [0.1, 0.2], "maximum": [10, 30]}, privacy_label=CONFIDENTIAL),
    }


@pytest.mark.parametrize("name", ["shares", "errors", "sweep", "fitness"])
@pytest.mark.costly
def test_every_picture_is_labelled_marked_and_not_blank(name: str, tmp_path: Path) -> None:
    from matplotlib.image import imread

    figure = drawn()[name]
    axes = figure.axes[0]
    assert axes.get_title(loc="left")
    assert axes.get_xlabel()
    assert axes.get_ylabel() or [label.get_text() for label in axes.get_yticklabels()]
    assert figure.get_supxlabel().startswith("CONFIDENTIAL")
    figure.savefig(tmp_path / "figure.png")
    image = imread(tmp_path / "figure.png")[..., :3]
    assert 0.8 < np.all(image > 0.98, axis=-1).mean() < 0.995
    for color in COLORS[:2]:
        wanted = np.array([int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)])
        assert np.all(np.abs(image - wanted) < 0.02, axis=-1).sum() > 100, color


def test_curves_that_coincide_share_a_line() -> None:
    figure = plot_loss_shares(CURVES)
    assert [line.get_label() for line in figure.axes[0].get_lines()] == ["steep\nthe same", "flat"]


def test_the_line_is_the_share_that_loses_more() -> None:
    figure = plot_loss_shares({"a": (np.array([1.0, 10.0]), np.array([0.25, 1.0]))})
    x, y = (np.asarray(part) for part in figure.axes[0].get_lines()[0].get_data())
    assert list(x[1:]) == [1, 10]
    assert list(y[:2]) == [1, 0.75]
    assert y[2] < 0.75, "beyond the largest loss nobody is left"


def test_thresholds_are_written_beside_the_lowest_curve() -> None:
    written = [text.get_text() for text in plot_sweep(SWEEP, measure="emp").axes[0].texts]
    assert written == ["5", "50"]


@pytest.mark.parametrize("count", [0, MOST_LINES + 1])
def test_more_lines_than_can_be_told_apart_are_refused(count: int) -> None:
    with pytest.raises(ParameterError, match="lines can be distinguished"):
        plot_loss_shares({str(i): (LOSSES, LOSSES) for i in range(count)})
