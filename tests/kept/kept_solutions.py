"""What fits, bounds, generated tables, audits and pages give for small inputs."""

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from kept.kept_publications import released
from kept.leaves import leaves
from postprocess.test_post_other_fits import CUBE, NO_CELLS, TABLE, TREE
from postprocess.test_post_questions import release as random_tables
from recordwise.audit.audit import LOG_ALARMS, bound_on_loss
from recordwise.audit.bound import mean_lower, sequences_repeat, signs, tolerance
from recordwise.noise import DiscreteGaussian
from recordwise.postprocess import (
    LinearModel,
    bounded_laplace,
    bounded_reach,
    bounded_variance,
    cell_error_bound_approximate,
    cell_error_bound_pure,
    cell_error_bound_zcdp,
    controlled_rounding,
    easy_table,
    hard_table,
    max_fit,
    nnls,
    ols,
    point_first,
    point_first_errors,
    reweighted_fit,
    sequential_fit,
    sum_error_bound_approximate,
    sum_error_bound_policy,
    sum_error_bound_pure,
    sum_error_bound_zcdp,
    sum_first,
    sum_first_errors_bounded,
    sum_first_errors_gaussian,
    sum_first_errors_laplace,
    to_integer_records,
    tradeoffs,
)
from recordwise.release.page.results import headlines, results_json, results_of
from recordwise.release.page.view import page_json, payload, view_of
from recordwise.synthetic import establishments
from recordwise.synthetic.states import public_sizes, state_establishments

WORKLOADS = {"table": TABLE, "cube": CUBE, "without cells": NO_CELLS, "tree": TREE}


def of_fits() -> Iterator[tuple[str, Any]]:
    """Every fit on small tables, of one draw and of three, with equal and with different errors."""
    for name, workload in WORKLOADS.items():
        rng = np.random.default_rng(8)
        exact = workload.answer(rng.integers(0, 3, workload.cells) * 20.0)
        for draws in (1, 3):
            answers = exact + rng.laplace(scale=8, size=(draws, len(exact)))
            variances = 128.0 if draws == 1 else rng.uniform(20, 300, len(exact))
            for fit in (ols, nnls, max_fit, sequential_fit, reweighted_fit):
                for law in ("laplace", "gaussian"):
                    if fit is reweighted_fit and draws == 3:
                        continue
                    found = fit(workload, answers[0] if draws == 1 else answers, variances, law)
                    held = [f"{each:.5f}" for each in np.ravel(found.fitted)]
                    yield f"{name}, {fit.__name__}, {draws}, {law}", [*held, *leaves(found.converged)]
        if name in ("table", "tree"):
            fitted = nnls(workload, exact + rng.laplace(scale=8, size=len(exact)), 128.0).x
            yield f"{name}, whole", leaves(controlled_rounding(workload, fitted))
    given = DiscreteGaussian(4)
    noisy = TABLE.answer(np.arange(12) * 3.0) + np.random.default_rng(2).integers(-8, 9, TABLE.queries)
    yield "given law", [f"{each:.5f}" for each in reweighted_fit(TABLE, noisy, 16.0, given, units="noise").fitted]
    domain = {"region": ["n", "e", "w"], "sector": [1, 2, 3, 4]}
    yield "records", leaves(to_integer_records(TABLE, np.arange(12) / 3, domain))


def of_linear_models() -> Iterator[tuple[str, Any]]:
    """Estimates, variances and questions of random crossed tables."""
    for seed in range(8):
        rng = np.random.default_rng([61, seed])
        rows, tables, axes = random_tables(rng, 1 + seed % 3)
        variances = (
            10.0 ** rng.uniform(-1, 2, len(rows)) if seed % 2 else rng.uniform(0.5, 3, len(tables)).repeat(tables)
        )
        answers = rng.normal(size=len(rows)) * np.sqrt(variances)
        model = LinearModel.of(sparse.csr_array(rows), answers, variances, tables=tables, axes=axes)
        asked = sparse.random_array((3, len(rows)), density=0.4, rng=rng, data_sampler=rng.normal)
        found = model.answer(asked)
        yield f"{seed}, estimates", leaves(model.estimate()[:20])
        yield f"{seed}, variances", leaves(model.variances()[:20])
        yield f"{seed}, questions", leaves([found.estimates, found.covariance, found.largest])


def of_uncertainty() -> Iterator[tuple[str, Any]]:
    """Bounds and constructions of the uncertainty principle."""
    for cells in (1, 216, 10**5):
        for error in (0.0, 0.3, 4.5):
            for loss in (0.05, 1.0):
                yield (
                    f"sums of {cells}, {error}, {loss}",
                    [
                        sum_error_bound_pure(cells=cells, cell_error=error, epsilon=loss),
                        sum_error_bound_approximate(cells=cells, cell_error=error, epsilon=loss, delta=1e-6),
                        sum_error_bound_zcdp(cells=cells, cell_error=error, rho=loss),
                    ],
                )
                yield (
                    f"cells of {cells}, {error}, {loss}",
                    [
                        cell_error_bound_pure(cells=cells, sum_error=10 * error + 1, epsilon=loss),
                        cell_error_bound_approximate(cells=cells, sum_error=10 * error + 1, epsilon=loss, delta=1e-6),
                        cell_error_bound_zcdp(cells=cells, sum_error=10 * error + 1, rho=loss),
                    ],
                )
    yield "policy", sum_error_bound_policy(cells=500, cell_error=1.5, sizes=[1, 4, 9, 30], losses=[0.01, 0.1, 0.4, 3])
    errors = [
        point_first_errors(cells=50, variance=9),
        sum_first_errors_laplace(cells=50, total_scale=2, cell_scale=3),
        sum_first_errors_gaussian(cells=50, total_variance=4, cell_variance=9),
        sum_first_errors_bounded(total_epsilon=0.5, cell_epsilon=0.25, delta=1e-3),
    ]
    yield "errors", [[each.cell, each.sum] for each in errors]
    yield "bounded", [bounded_reach(epsilon=0.5, delta=1e-3), bounded_variance(epsilon=0.5, delta=1e-3)]
    yield "drawn", leaves(bounded_laplace(np.linspace(0.01, 0.99, 9), epsilon=0.5, delta=1e-3))
    yield "tables", leaves([hard_table(cells=12, epsilon=0.5), easy_table(cells=12, epsilon=0.5)])
    noisy = np.random.default_rng(4).normal(2, 5, (3, 6))
    yield "first", leaves([point_first(noisy), sum_first([11.0, -2, 30], noisy, total_variance=4, cell_variance=25)])
    found = tradeoffs(cells=20, epsilon=0.5, draws=30, rng=np.random.default_rng(6))
    yield "trade", [[each.method, each.table, f"{each.cell:.6g}", f"{each.sum:.6g}"] for each in found]


def of_generated_tables() -> Iterator[tuple[str, Any]]:
    """A few rows of generated establishments, and all of them added up."""
    for name, table in {
        "establishments": establishments(400, seed=3),
        "states": state_establishments(400, seed=3),
        "a year later": state_establishments(400, year=2, seed=3),
        "sizes": public_sizes(4000),
    }.items():
        yield f"{name}, first", leaves(table.slice(0, 12))
        for column in table.column_names:
            held = table[column].to_pylist()
            numbers = [float(each) for each in held if isinstance(each, int | float)]
            yield f"{name}, {column}", [len(held), len(set(held)), math.fsum(numbers)]


def of_audits() -> Iterator[tuple[str, Any]]:
    """Bounds on losses behind two samples."""
    rng = np.random.default_rng(31)
    for name, moved in {"none": 0.0, "one": 1.0, "two": 2.0}.items():
        noise = rng.normal(size=(4, 6000))
        present = {"a": moved + noise[0], "b": moved / 2 + noise[1]}
        absent = {"a": noise[2], "b": noise[3]}
        yield f"moved by {name}", leaves(bound_on_loss(present, absent))
        yield f"back by {name}", leaves(bound_on_loss(absent, present))
    values = rng.random(600)
    yield (
        "means",
        [mean_lower(values, bet=bet, log_alarms=alarms) for bet in (0.1, 0.4) for alarms in (3.0, LOG_ALARMS)],
    )
    yield "signs", leaves([signs(noise[0])[:20], [tolerance(count, LOG_ALARMS) for count in (50, 5000)]])
    again = np.where(rng.random(6000) < 0.5, noise[0], noise[1])
    yield (
        "repeats",
        leaves([sequences_repeat(noise[0], each, log_alarms=LOG_ALARMS) for each in (noise[1], again, noise[0])]),
    )


def of_pages() -> Iterator[tuple[str, Any]]:
    """What the pages of releases hold as numbers."""
    for name, release in {
        "tree": released(1, "tree").consistent(draws=12),
        "basic": released(1, "tree").basic(),
        # Only private releases have a history; noise from a seed serves as well here.
        "crossed": replace(released(2, "crossed"), private=True).with_history(
            replace(released(1, "crossed"), private=True)
        ),
        "heavy": released(1, "crossed", True),
    }.items():
        view = view_of(release, {})
        for part, value in payload(view).items():
            held = leaves(value)
            yield f"{name}, {part}", [len(held), *held[:: 1 + len(held) // 150]]
        yield f"{name}, figures", [leaves(each.to_json())[::3] for each in view.figures]
        yield f"{name}, questions", [leaves(each.to_json()) for each in view.questions]
        yield f"{name}, start", leaves(view.start)
        content = release.content()
        results = results_of(release, content)
        told = results_json(results, content, [table.name for table in content.tables])
        yield f"{name}, results", leaves([told, results.queries, results.complete])[:300]
        yield f"{name}, headlines", leaves(headlines(content, results))
        yield f"{name}, json", leaves(page_json(release, {}))[:300]


SUBJECTS = {
    "fits": of_fits,
    "linear models": of_linear_models,
    "uncertainty": of_uncertainty,
    "generated tables": of_generated_tables,
    "audits": of_audits,
    "pages": of_pages,
}
