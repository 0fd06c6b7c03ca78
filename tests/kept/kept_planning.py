"""What planning finds on one small table: costs, searches, shares, frontiers and evaluations."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import recordwise as rw
from kept.leaves import leaves, table_leaves
from plan.test_identity import loaded
from planning.small_table import CODES, COUNTIES, opened, shape
from planning.test_explain import PLAN
from recordwise.planning import (
    Coarsening,
    Goal,
    MultiplicativeNoise,
    PercentRule,
    Ranges,
    Rounding,
    Suppression,
    ThresholdRule,
    check,
    clamped,
    compare,
    evaluate,
    explain,
    frontier,
    recommend,
    recommend_within,
    rehearse,
)
from studio.small_plan import write_plan

MECHANISMS = {
    "splitting": rw.UnitSplit(at=50, rho="0.5"),
    "clamped": rw.Clamped(to=100, rho="0.5"),
    "root": rw.RootTransform(degree=4, offset=10, sigma="0.3"),
    "log": rw.LogTransform(offset=50, sigma="0.5"),
}
CANDIDATES = {
    "Gaussian": rw.Gaussian(sigma=1),
    "clamped": rw.Clamped(to=100, rho=1),
    "root": rw.RootTransform(degree=2, offset=1, sigma=1),
    "log": rw.LogTransform(offset=1, sigma=1),
}


def ladder() -> Any:
    """Two levels with shares, a count and a sum."""
    keys = rw.Keys.product(county=COUNTIES, naics=CODES)
    return (
        rw.query()
        .group_by("county")
        .levels(rw.prefix("naics", [1, 3]), share=["0.25", "0.75"], keys=keys)
        .count(rw.Gaussian(rho="0.0005"), alias="n")
        .sum("emp", rw.UnitSplit(at=50, rho="0.005"), alias="emp")
    )


def of_comparisons() -> Iterator[tuple[str, Any]]:
    """Mechanisms side by side, with firms, older rules and equal errors."""
    with opened() as session:
        rules: dict[str, Any] = {"rule": PercentRule(15), "noise": MultiplicativeNoise("0.1", "0.3")}
        found = compare(
            session, MECHANISMS, measure="emp", query=shape(), firms=True, realized=True, above=(0.02, 3), **rules
        )
        yield "side by side", leaves(found.to_json())
        yield "rows", leaves([found.rows()[1], found.table_rows()[1]])
        yield "curves", leaves({name: [end[::9] for end in each] for name, each in found.curves().items()})
        yield "errors", leaves({name: found.relative_errors(name) for name in MECHANISMS})
        equal: dict[str, Any] = {"relative_error": "0.1", "at_total": 900, "at_least": {"count": 40}, "confidence": 0.8}
        yield "equal errors", leaves(compare(session, MECHANISMS, measure="pay", query=shape(), **equal).to_json())
        for tight in (True, False):
            how: dict[str, Any] = {"measure": "emp", "query": shape(), "rhos": ["0.1", 1], "tight": tight}
            yield f"thresholds, {tight}", leaves(compare(session, thresholds=[5, 60], **how).to_json())
            yield f"clamps, {tight}", leaves(compare(session, clamps=[5, 60], **how).to_json())
        both = compare(session, query=ladder(), thresholds=[{"emp": 60}], rhos=[1], statistics=["emp"])
        yield "levels", leaves(both.to_json())


def of_recommendations() -> Iterator[tuple[str, Any]]:
    """What goals require, by family, by rank and with shares."""
    with opened() as session:
        goal = Goal("emp", shape(), within="0.05", share="0.8")
        for rank_by in ("median", "p99", "maximum", "balanced"):
            found = recommend(session, goal, candidates=CANDIDATES, rank_by=rank_by, data="synthetic")
            yield f"by {rank_by}", leaves(found.to_json())
            yield f"rows by {rank_by}", leaves(found.rows()[1])
        goals = [Goal("emp", ladder(), within="0.2", share="0.7", at_least=20), Goal("count", ladder(), within="0.1")]
        for fitted in (False, True):
            found = recommend(
                session, goals, plan=ladder(), candidates=CANDIDATES, fitted=fitted, complete=True, data="synthetic"
            )
            yield f"plan, {fitted}", leaves(found.to_json())
            yield f"changes, {fitted}", [f"{each.before} -> {each.after}" for each in found.changes()]
        kept = recommend(session, goals, plan=ladder(), keep_mechanisms=True, data="synthetic")
        yield "kept", leaves(kept.to_json())
        kept = recommend(session, goal, keep_mechanisms=rw.Gaussian(sigma=20), data="synthetic")
        yield "kept by table", leaves(kept.to_json())


def of_frontiers() -> Iterator[tuple[str, Any]]:
    """Losses against reliable cells, and the best within limits."""
    families = {"Gaussian": rw.Gaussian(sigma=1), "logarithm": rw.LogTransform(offset=100, sigma=1)}
    with opened() as session:
        found = frontier(session, ladder(), candidates=families, losses=[0.001, 0.02, 0.3], data="synthetic")
        yield "points", leaves(found.to_json())
        yield "rows", leaves(found.rows()[1])
        yield "read", leaves([found.at_loss(each) for each in (0.0005, 0.002, 0.05, 9)])
        yield "read back", leaves([found.at_share(each) for each in (0.1, 0.5, 0.9, 1)])
        limits: dict[str, Any] = {"candidates": families, "data": "synthetic"}
        for name, limit in {
            "median": {"median": 0.01},
            "both": {"median": 0.01, "p99": 0.5},
            "maximum": {"maximum": 30},
            "at": {"at": [({"emp": 40}, 0.02)]},
        }.items():
            best = recommend_within(session, ladder(), **limit, **limits)
            yield f"within {name}", leaves(best.to_json())


def of_evaluations() -> Iterator[tuple[str, Any]]:
    """Errors by place and by size, beside rules that withhold, round and coarsen."""
    query = shape().count(rw.Gaussian(rho=1)).sum("emp", rw.UnitSplit(at=50, rho=1)).ratio("emp", "count", alias="mean")
    rules = (PercentRule(15), ThresholdRule(120))
    baselines = {
        "clamped": clamped(query, to={"emp": 100}, rho=1),
        "multiplied": MultiplicativeNoise("0.1", "0.2"),
        "suppressed": Suppression(rules),
        "coarser": Coarsening(rules),
        "rounded": Rounding(50),
        "ranges": Ranges(rules),
    }
    with opened() as session:
        for metric in ("relative_error", "absolute_error", "squared_error", "bias", "off_by_a_tenth"):
            for by in ("county", "size"):
                found = evaluate(
                    session, query, metric=metric, by=by, baselines=baselines, draws=2, seed=4, data="synthetic"
                )
                yield f"{metric} by {by}", leaves(found.to_json())


def of_plan_files() -> Iterator[tuple[str, Any]]:
    """What is said about plan files before any record is read, and on records that are made up."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "plan.toml").write_text(PLAN)
        found = check(folder / "plan.toml", source=False)
        yield "check", leaves(found.to_json())
        yield "check rows", leaves([found.rows()[1], found.expected_rows()])
        page = explain(folder / "plan.toml", rows=500, seed=3)
        yield "explain", leaves(page.to_json())
        (folder / "every").mkdir()
        every = check(loaded(folder / "every"), source=False)
        yield "check, every field", leaves([every.to_json()["expected_error"], every.expected_rows()])
        (folder / "own").mkdir()
        whole = write_plan(folder / "own", rows=400)
        yield "check, whole", leaves(check(whole).to_json())
        done = rehearse(whole, out=folder / "out", rows=300, seed=8)
        columns = [(each.table, each.variable, each.cells, each.statuses) for each in done.columns]
        yield "rehearsed", leaves([columns, done.losses, done.coverage, done.source_rows])
        for part, held in table_leaves(done.release).items():
            yield f"rehearsed {part}", held[:12]


SUBJECTS = {
    "comparisons": of_comparisons,
    "recommendations": of_recommendations,
    "frontiers": of_frontiers,
    "evaluations": of_evaluations,
    "plan files": of_plan_files,
}
