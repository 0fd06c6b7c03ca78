"""Everything the page shows, all of it in the other files too."""

import math
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from recordwise.exact.numbers import fraction_text
from recordwise.exact.text import digits_text
from recordwise.mechanisms.base import Mechanism
from recordwise.plan.statistics.base import SUM
from recordwise.policy.loss_law import RATIO, SMALLEST_MU, MeaningTable
from recordwise.policy.policy import Policy, compose, policy_json_in_order
from recordwise.policy.render.html import LogAxis
from recordwise.release.content import Content
from recordwise.release.page.cells import PageTable, page_cells, page_content, with_titles
from recordwise.release.page.charts import (
    LEFT,
    LOSSES,
    NOISES,
    RIGHT,
    Figure,
    extremes,
    figure_of,
    sizes_up_to,
    variances,
)
from recordwise.release.page.questions import (
    DELTA,
    SENTENCES,
    FirmColumns,
    Question,
    questions_of,
    reach_of,
    start_record,
)
from recordwise.release.page.results import Results, results_json, results_of
from recordwise.release.page.value_change import BAND_LOSS, has_band, reaches_json
from recordwise.release.published import Period, Published
from recordwise.release.tables import PRIVATE, PagePart

if TYPE_CHECKING:
    from recordwise.release.release import Release


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """Everything the page shows."""

    release: "Release"
    published: Published
    """With what is in its file alone."""
    questions: tuple[Question, ...]
    firm_columns: FirmColumns
    start: dict[str, Any]
    figures: tuple[Figure, ...]
    tables: tuple[PageTable, ...]
    packed: str
    """Their cells, compressed."""
    files: Mapping[str, str]
    budget: Policy | None
    labels: Mapping[str, str]
    content: Content
    meaning: MeaningTable | None
    """Epsilon and power where all noise is discrete Gaussian on a lattice."""
    results: Results
    reaches: Mapping[str, Any]
    """How far each measure is hidden, where the laws of its noise are known."""
    periods: tuple[Period, ...] = ()
    """The periods of the series so far, with this one; empty outside a series."""


def as_read(release: "Release") -> "Release":
    """Return a release with the losses of what its tables tell: those of all stages where it refines another (T-STAGES)."""
    if release.published.refinement is None:
        return release
    total = release.published.refinement.total
    # In the order of the plan, where the parts are known.
    policy = compose([part.policy for part in release.parts]) if release.parts else total.policy()
    return replace(release, policy=policy, firms=total.firms, lattice=None, stated_values=None)


def view_of(release: "Release", files: Mapping[str, str], content: Content | None = None) -> View:
    """Return what the page shows of a release, whose content may be known."""
    content = page_content(release.content() if content is None else content)
    release = as_read(release)
    labels = content.words.labels
    results = results_of(release, content)
    with ThreadPoolExecutor(1) as pool:
        # Sorting, packing and compressing cells takes longest, and leaves the interpreter free for the rest.
        cells = pool.submit(page_cells, content, release.history, results)
        published = release.as_saved()
        questions = questions_of(release.policy, labels, published.categories)
        start = start_record(release.policy, questions)
        figures, meaning = _figures(release, start, content), _meaning(release)
        reaches = reaches_json(release.values)
        tables, packed = cells.result()
    return View(
        release=release,
        published=published,
        questions=questions,
        firm_columns=FirmColumns.of(release.firms, questions, published.lists.tables().values()),
        start=start,
        figures=figures,
        tables=tables,
        packed=packed,
        files=files,
        budget=published.budget(release.policy.bands()),
        labels=labels,
        content=content,
        meaning=meaning,
        results=results,
        reaches=reaches,
        periods=published.series.periods,
    )


def _figures(release: "Release", start: dict[str, Any], content: Content) -> tuple[Figure, ...]:
    found, labels = [], content.words.labels
    parts, sizes = with_titles(release.parts, content), _sizes(release, start)
    for measure in release.policy.inputs():
        label = labels.get(measure.name, measure.name)
        found.append(figure_of(release.policy, parts, measure, label, start, sizes[measure.name]))
    return tuple(found)


def sizes_of(release: "Release") -> dict[str, tuple[float, ...]]:
    """Return the chart sizes of each measure, whatever its label."""
    return _sizes(release, start_record(release.policy, questions_of(release.policy, {})))


def _sizes(release: "Release", start: dict[str, Any]) -> dict[str, tuple[float, ...]]:
    policy, published = release.policy, release.published
    bounds = {measure: float(published.measure(measure.name).bound) for measure in policy.inputs()}
    return {each.name: sizes_up_to(each, reach_of(policy, each, start, bound)) for each, bound in bounds.items()}


def payload(view: View) -> dict[str, Any]:
    """The data the script needs in addition to the formulas."""
    release = view.release
    names = [figure.measure.name for figure in view.figures]
    bounds = {name: {"bound": float(view.published.measure(name).bound)} for name in names}
    return {
        "fields": [each.to_json() | bounds.get(each.name, {}) for each in view.questions],
        "start": view.start,
        "figures": [figure.to_json() for figure in view.figures],
        "axes": {"left": LEFT, "right": RIGHT, "loss": _ends(LOSSES), "noise": _ends(NOISES)},
        "statuses": list(view.content.rules.names()),
        "tables": [table.to_json(table.first_rows()) for table in view.tables],
        "results": results_json(view.results, view.content, [table.described.name for table in view.tables]),
        "level": view.published.confidence,
        "period": view.published.series.period or view.content.words.publication.period,
        "sentences": SENTENCES,
        "delta": DELTA,
        "bandLoss": BAND_LOSS,
        "whyNoBand": why_no_band(release.parts),
        "reaches": view.reaches,
        "units": {name: view.content.words.unit(name) for name in names if view.content.words.unit(name)},
        **view.firm_columns.to_json(view.labels),
        "meaning": None if view.meaning is None else _meaning_json(view.meaning),
        "hasDelta": bool(release.policy.delta_terms),
        **({"pureBudget": True} if view.budget is not None and view.budget.is_pure else {}),
        "mark": None if release.privacy_label == PRIVATE else release.privacy_label,
    }


def _meaning(release: "Release") -> MeaningTable | None:
    """Return the release's meaning table, if its noise matches its parts."""
    if release.lattice is None or len(release.lattice.parts) != len(release.parts):
        return None
    pairs = zip(release.lattice.parts, release.parts)
    return release.lattice.table() if all(one.policy * one.times == other.policy for one, other in pairs) else None


def _meaning_json(table: MeaningTable) -> dict[str, Any]:
    """The table in five digits, rounded up."""
    columns = {"epsilon": table.epsilon, "power": np.minimum(table.power, 1.0)}
    found = {name: [float(digits_text(value * (1 + 5e-5), 5)) for value in column] for name, column in columns.items()}
    return found | {"start": SMALLEST_MU, "ratio": RATIO, "weights": list(table.weights)}


def _ends(axis: LogAxis) -> list[float]:
    return [axis.low, axis.high, axis.start, axis.end]


def why_no_band(parts: Sequence[PagePart]) -> str | None:
    """Return why the page cannot name indistinguishable sizes, or None."""
    if has_band(parts):
        return None
    if not parts:
        return "this release was saved without its parts"
    if any(part.policy.delta_terms for part in parts):
        return "which cells are listed was itself decided from the data"
    if not all(part.stays for part in parts):
        return "the tables group records by size, so another size may mean another cell"
    return "a part of the loss is known for whole records only"


# The part of release.json that exists for the page, so that a reloaded release makes the same page. It contains
# public facts of the plan: the policy of each statistic of each table, a description of its noise, and the variance
# of its noise at the sizes at which the charts are drawn.


def page_json(release: "Release", labels: Mapping[str, str]) -> dict[str, Any]:
    """Return labels and parts, with shared policies and curves written once."""
    sizes, policies, curves = sizes_of(as_read(release)), list[Any](), list[Any]()
    parts = []
    for part in release.parts:
        noises = []
        # A measure that no loss depends on has no charts.
        for _, mechanism in extremes(part) if part.kind == SUM and part.measure in sizes else ():
            found = [_finite(value) for value in variances(mechanism, part, sizes[str(part.measure)])]
            noises.append({"sigma": _sigma(mechanism), "variances": _index_of(curves, found)})
        parts.append(
            {
                "table": part.table,
                "statistic": part.statistic,
                "kind": part.kind,
                "noise": part.noise,
                "policy": _index_of(policies, policy_json_in_order(part.policy)),
                "measure": part.measure,
                "step": fraction_text(part.step),
                "stays": part.stays,
                "cut_down": part.cut_down,
                "noises": noises,
            }
        )
    shown = {name: list(points) for name, points in sizes.items()}
    saved = {"labels": dict(labels), "parts": parts, "policies": policies, "sizes": shown, "variances": curves}
    return saved if release.history is None else saved | {"history": release.history.to_json()}


def _index_of(listed: list[Any], value: Any) -> int:
    """Return a value's index in a list, adding it if new."""
    if value not in listed:
        listed.append(value)
    return listed.index(value)


def _sigma(mechanism: Mechanism) -> float | None:
    sigma = mechanism.noise_sigma
    return None if sigma is None else float(sigma)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
