"""What pictures of planning hold, line by line, and the sentences of plans that are explained and checked."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import recordwise as rw
from planning.test_explain import PLAN
from recordwise.errors import RecordwiseError
from recordwise.planning import check, explain
from recordwise.planning.explain import class_ends, size_name
from recordwise.planning.plots import (
    plot_cell_errors,
    plot_errors,
    plot_fitness,
    plot_loss_shares,
    plot_losses,
    plot_sweep,
)
from recordwise.policy.columns import Measure
from studio.small_plan import write_plan

Told = Iterator[tuple[str, Any]]
MECHANISMS = {
    "Gaussian": rw.Gaussian(sigma=20),
    "splitting": rw.UnitSplit(at=50, rho="0.1"),
    "log": rw.LogTransform(offset=500, sigma="0.3"),
    "root": rw.RootTransform(degree=2, offset=4, sigma=2),
    "the same": rw.Gaussian(sigma=20),
}
HEAVY = {"Pareto": rw.Polylog(power=1, rate="2.95", offset=1, scale=1), **MECHANISMS}
LABEL = "CONFIDENTIAL: computed from the confidential records themselves"


def drawn(figure: Any) -> list[Any]:
    """Lines, bars, words and scales of a figure."""
    found = []
    for axes in figure.axes:
        lines = [
            [each.get_label(), each.get_color(), each.get_linewidth(), *each.get_data()] for each in axes.get_lines()
        ]
        bars = [[each.get_x(), each.get_y(), each.get_width(), each.get_height()] for each in axes.patches]
        points = [np.asarray(each.get_offsets()).tolist() for each in axes.collections if hasattr(each, "get_offsets")]
        words = [[each.get_text(), *each.get_position()] for each in axes.texts]
        scales = [axes.get_xscale(), axes.get_yscale(), *axes.get_xlim(), *axes.get_ylim()]
        said = [axes.get_title(loc="left"), axes.get_xlabel(), axes.get_ylabel()]
        box = axes.get_legend()
        named = [each.get_text() for each in box.get_texts()] if box else []
        ticks = [each.get_text() for each in (*axes.get_xticklabels(), *axes.get_yticklabels())]
        found.append([lines, bars, points, words, scales, said, named, ticks])
    return [found, figure.get_supxlabel(), figure.get_size_inches().tolist()]


def shown(draw: Any, *given: Any, **named: Any) -> Any:
    try:
        return drawn(draw(*given, **named))
    except RecordwiseError as refused:
        return f"{type(refused).__name__}: {refused}"


def of_pictures() -> Told:
    money = Measure(name="pay", step="0.5")
    profit = Measure(name="profit", step="0.01", signed=True)
    for name, how in {"plain": {}, "small": {"largest": 1000.0}, "below a step": {"largest": 0.5}}.items():
        for measure in (Measure.of("emp"), money):
            yield f"losses, {name}, {measure.name}", shown(plot_losses, MECHANISMS, measure, **how)
            yield f"errors, {name}, {measure.name}", shown(plot_errors, HEAVY, measure, **how)
        yield f"relative errors, {name}", shown(plot_errors, MECHANISMS, "emp", relative=True, title="T", **how)
    yield "losses up to 5", shown(plot_losses, MECHANISMS, money, most=5.0, title="T")
    yield "signed", shown(plot_losses, {"Gaussian": rw.Gaussian(sigma=20)}, profit, largest=1000.0)
    totals = np.geomspace(1, 1e5, 40)
    losses = np.geomspace(1e-3, 1e4, 30)
    curves = {"steep": (losses, 1 - 1 / (1 + losses)), "flat": (losses / 10, 1 - 1 / (1 + losses))}
    both = {**curves, "the same": curves["steep"], "all at once": (np.array([2.0]), np.array([1.0]))}
    for label in ("", LABEL):
        yield f"shares, {label[:4]}", shown(plot_loss_shares, both, privacy_label=label)
        errors = {"a": np.full(40, 20.0), "b": totals * 0.1}
        yield f"cell errors, {label[:4]}", shown(plot_cell_errors, totals, errors, measure="emp", privacy_label=label)
        sweep = {
            f"rho {rho}": (np.array([5, 50, 500]), np.array([0.4, 0.02, 0.001]), np.array([0.1, 1.0, 3.0]) / rho)
            for rho in (0.1, 1)
        }
        yield f"sweep, {label[:4]}", shown(plot_sweep, sweep, measure="emp", privacy_label=label)
        bars = {"median": [0.1, 0.2, 3.0], "maximum": [10, 30, 4e3]}
        yield f"fitness, {label[:4]}", shown(plot_fitness, ["a", "b", "c"], bars, privacy_label=label)


def of_explanations() -> Told:
    with TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "plan.toml").write_text(PLAN)
        (folder / "own").mkdir()
        for name, path in {"plan": folder / "plan.toml", "own": write_plan(folder / "own", rows=200)}.items():
            page = explain(path, rows=200, seed=3)
            yield f"{name}, json", page.to_json()
            yield f"{name}, markdown", page.markdown().splitlines()
            yield f"{name}, html", page.html()
            yield f"{name}, rows", [page.rows(), page.notes, page.summary, page.sections]
            found = check(path, source=False)
            for part, value in found.to_json().items():
                yield f"{name}, check, {part}", value
            yield f"{name}, check, rows", [found.rows(), found.expected_rows(), list(found.expected_notes())]
            said = [found.summary, found.notes, found.protects, found.budget, found.privacy_label, found.data]
            yield f"{name}, check, words", [*said, list(found.example_notes()), found.known_examples()]
    values = np.array([0.0, 3, 9, 10, 99, 100, 5000, 1e6])
    for top in (0.005, 0.2):
        edges = class_ends(values, top)
        yield f"classes, {top}", [edges, [size_name(edges, at) for at in range(len(edges) + 1)]]


SUBJECTS = {"pictures": of_pictures, "explanations": of_explanations}
