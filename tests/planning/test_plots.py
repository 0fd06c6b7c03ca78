"""The two pictures: every mechanism is in them, on logarithmic axes with labels, and they are not blank."""

import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recordwise as rw
from recordwise.errors import ParameterError
from recordwise.planning.plots import COLORS, DASHES, plot_errors, plot_losses
from recordwise.policy import Measure

pytest.importorskip("matplotlib", reason="the plots extra is not installed: no figure is drawn here")

EQUAL_VARIANCE: dict[str, Any] = {
    "Gaussian": rw.Gaussian(variance=2),
    "Generalized Gaussian": rw.GeneralizedGaussian(shape=0.5, variance=2),
    "Polylog": rw.Polylog(power=2, rate=1, offset=math.e, variance=2),
    "Fourth root": rw.RootTransform(degree=4, offset=1, variance=2, at_total=2),
    "Logarithm": rw.LogTransform(offset=1, variance=2, at_total=2),
    "Logarithm, Laplace": rw.LogTransform(offset=1, variance=2, at_total=2, noise="laplace"),
}


def labels(figure: Any) -> list[str]:
    legend = figure.axes[0].get_legend()
    return [name for text in legend.get_texts() for name in text.get_text().split("\n")]


def pixels(figure: Any, path: Path) -> np.ndarray:
    from matplotlib.image import imread

    figure.savefig(path)
    return imread(path)


@pytest.mark.parametrize("draw", [plot_losses, plot_errors])
def test_a_figure_names_every_mechanism_and_both_axes(draw: Any) -> None:
    figure = draw(EQUAL_VARIANCE, "emp")
    axes = figure.axes[0]
    assert sorted(labels(figure)) == sorted(EQUAL_VARIANCE)
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert "emp" in axes.get_xlabel()
    assert axes.get_ylabel()
    assert axes.get_title(loc="left")


@pytest.mark.costly
def test_a_saved_figure_shows_every_line(tmp_path: Path) -> None:
    """Each line's color covers some hundred pixels, and most of the paper stays white."""
    image = pixels(plot_losses(EQUAL_VARIANCE, "emp"), tmp_path / "losses.png")
    assert image.shape[0] > 500
    assert image.shape[1] > 900
    white = np.all(image[..., :3] > 0.98, axis=-1)
    assert 0.8 < white.mean() < 0.99
    for color in COLORS[: len(EQUAL_VARIANCE)]:
        wanted = np.array([int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)])
        close = np.all(np.abs(image[..., :3] - wanted) < 0.02, axis=-1)
        assert close.sum() > 300, color


def test_the_lines_are_the_losses() -> None:
    figure = plot_losses(EQUAL_VARIANCE, "emp", largest=1000, most=50)
    lines = {line.get_label(): line for line in figure.axes[0].get_lines()}
    x, y = (np.asarray(part) for part in lines["Gaussian"].get_data())
    inside = np.isfinite(y)
    assert y[inside] == pytest.approx(x[inside] ** 2 / 4, rel=1e-12)
    assert np.all(x[~inside] ** 2 / 4 > 50), "losses above the ceiling are left out"


def test_the_lines_are_the_standard_deviations() -> None:
    figure = plot_errors({"Logarithm": EQUAL_VARIANCE["Logarithm"]}, "emp", relative=True)
    x, y = (np.asarray(part) for part in figure.axes[0].get_lines()[0].get_data())
    assert y == pytest.approx((x + 1) / x * math.sqrt(2) / 3, rel=1e-9)


def test_curves_that_coincide_share_a_line_and_keep_their_names() -> None:
    figure = plot_errors(EQUAL_VARIANCE, "emp")
    assert [text.get_text() for text in figure.axes[0].get_legend().get_texts()].count(
        "Gaussian\nGeneralized Gaussian\nPolylog"
    ) == 1
    assert len(figure.axes[0].get_lines()) == 3


def test_a_mechanism_keeps_its_color_from_figure_to_figure() -> None:
    colors = []
    for figure in (plot_losses(EQUAL_VARIANCE, "emp"), plot_errors(EQUAL_VARIANCE, "emp")):
        lines = {str(line.get_label()).split("\n")[0]: line.get_color() for line in figure.axes[0].get_lines()}
        colors.append(lines["Fourth root"])
    assert colors[0] == colors[1]


def test_noise_without_a_variance_is_named_as_such() -> None:
    figure = plot_errors({"Pareto": rw.Polylog(power=1, rate="2.95", offset=1, scale=1)}, "emp")
    assert labels(figure) == ["Pareto (no variance)"]


def test_signed_measures_and_steps_are_drawn() -> None:
    signed = {"signed": rw.LogTransform(offset=10, sigma="0.2", signed=True)}
    plot_errors(signed, Measure(name="profit", step="0.01", signed=True), largest=1000)
    figure = plot_losses(signed, Measure(name="profit", step="0.01", signed=True), largest=1000)
    assert figure.axes[0].get_lines()[0].get_xdata()[0] == pytest.approx(0.01)


def test_styles_are_as_many_as_colors_and_all_different() -> None:
    assert len(set(COLORS)) == len(COLORS) == len(DASHES)


@pytest.mark.parametrize("count", [0, len(COLORS) + 1])
def test_more_lines_than_can_be_told_apart_are_refused(count: int) -> None:
    mechanisms = {str(i): rw.Gaussian(sigma=i + 1) for i in range(count)}
    with pytest.raises(ParameterError, match="lines can be distinguished"):
        plot_errors(mechanisms, "emp")


def test_a_range_without_records_is_refused() -> None:
    with pytest.raises(ParameterError, match="largest must be above"):
        plot_losses(EQUAL_VARIANCE, "emp", largest=1)


@pytest.mark.process
def test_importing_the_plots_does_not_load_matplotlib() -> None:
    code = "import sys, recordwise.planning.plots; sys.exit('matplotlib' in sys.modules)"
    path = os.pathsep.join(sys.path)
    assert (
        subprocess.run([sys.executable, "-c", code], check=False, env=os.environ | {"PYTHONPATH": path}).returncode == 0
    )
