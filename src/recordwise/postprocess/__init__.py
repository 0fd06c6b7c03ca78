"""Make noisy answers nonnegative, additive and whole. This costs no privacy budget.

Takes answers with the law of their noise, returns fits. Imports exact and noise; knows no records.

In reading order:

- ``workload``: groups of counting queries over the cells of a table
- ``measured``: answers, weights and noise laws, and the fit that comes back
- ``linear``: the best linear unbiased fit, its exact variances, any linear question
- ``least_squares``: with and without the sign, and reweighted
- ``sequential``: groups in order of priority
- ``maxfit``: the smallest worst deviation
- ``top_down``: unbiased totals handed down to nonnegative cells
- ``rounding``: records with weights or whole counts, and controlled rounding
- ``uncertainty``: what no private microdata can do
- ``solvers``: the solvers behind the fits
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from recordwise.postprocess.least_squares import nnls, ols, reweighted_fit
    from recordwise.postprocess.linear import LinearModel
    from recordwise.postprocess.maxfit import max_fit
    from recordwise.postprocess.measured import ContinuousGaussian, ContinuousLaplace, Fit, NoiseLaw
    from recordwise.postprocess.rounding import (
        controlled_rounding,
        save_records,
        to_integer_records,
        to_weighted_records,
    )
    from recordwise.postprocess.sequential import sequential_fit
    from recordwise.postprocess.uncertainty import (
        Errors,
        Tradeoff,
        bounded_laplace,
        bounded_reach,
        bounded_variance,
        cell_error_bound_approximate,
        cell_error_bound_pure,
        cell_error_bound_zcdp,
        easy_table,
        hard_table,
        plot_tradeoffs,
        point_first,
        point_first_errors,
        sum_error_bound_approximate,
        sum_error_bound_policy,
        sum_error_bound_pure,
        sum_error_bound_zcdp,
        sum_first,
        sum_first_errors_bounded,
        sum_first_errors_gaussian,
        sum_first_errors_laplace,
        tradeoffs,
    )
    from recordwise.postprocess.workload import Group, Workload

__all__ = [
    "ContinuousGaussian",
    "ContinuousLaplace",
    "Errors",
    "Fit",
    "Group",
    "LinearModel",
    "NoiseLaw",
    "Tradeoff",
    "Workload",
    "bounded_laplace",
    "bounded_reach",
    "bounded_variance",
    "cell_error_bound_approximate",
    "cell_error_bound_pure",
    "cell_error_bound_zcdp",
    "controlled_rounding",
    "easy_table",
    "hard_table",
    "max_fit",
    "nnls",
    "ols",
    "plot_tradeoffs",
    "point_first",
    "point_first_errors",
    "reweighted_fit",
    "save_records",
    "sequential_fit",
    "sum_error_bound_approximate",
    "sum_error_bound_policy",
    "sum_error_bound_pure",
    "sum_error_bound_zcdp",
    "sum_first",
    "sum_first_errors_bounded",
    "sum_first_errors_gaussian",
    "sum_first_errors_laplace",
    "to_integer_records",
    "to_weighted_records",
    "tradeoffs",
]

_NAMES = {
    "least_squares": (
        "nnls",
        "ols",
        "reweighted_fit",
    ),
    "linear": ("LinearModel",),
    "maxfit": ("max_fit",),
    "measured": (
        "ContinuousGaussian",
        "ContinuousLaplace",
        "Fit",
        "NoiseLaw",
    ),
    "rounding": (
        "controlled_rounding",
        "save_records",
        "to_integer_records",
        "to_weighted_records",
    ),
    "sequential": ("sequential_fit",),
    "uncertainty": (
        "Errors",
        "Tradeoff",
        "bounded_laplace",
        "bounded_reach",
        "bounded_variance",
        "cell_error_bound_approximate",
        "cell_error_bound_pure",
        "cell_error_bound_zcdp",
        "easy_table",
        "hard_table",
        "plot_tradeoffs",
        "point_first",
        "point_first_errors",
        "sum_error_bound_approximate",
        "sum_error_bound_policy",
        "sum_error_bound_pure",
        "sum_error_bound_zcdp",
        "sum_first",
        "sum_first_errors_bounded",
        "sum_first_errors_gaussian",
        "sum_first_errors_laplace",
        "tradeoffs",
    ),
    "workload": (
        "Group",
        "Workload",
    ),
}
"""Each module and what is called by it here; a module is loaded when something of it is first used."""
_HOMES = {name: home for home, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'recordwise.postprocess' has no attribute {name!r}")
    return getattr(import_module(f"recordwise.postprocess.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
