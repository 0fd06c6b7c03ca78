"""recordwise: statistics about skewed data, with a privacy guarantee that is a public function of each record's value.

import recordwise as rw
rw.UnitSplit(at=50, rho=0.1).policy("emp").loss({"emp": 1000})
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from recordwise import functions, mechanisms, noise, policy
from recordwise.mechanisms import (
    Additive,
    Clamped,
    Gaussian,
    GeneralizedGaussian,
    LogTransform,
    Polylog,
    RootTransform,
    Transform,
    UnitSplit,
)
from recordwise.policy import Policy, by

if TYPE_CHECKING:
    from recordwise import postprocess
    from recordwise.plan import Column, Domain, Keys, Measure, SumAndCount, prefix, query
    from recordwise.quantiles import Grid, TreeQuantile
    from recordwise.release import Release
    from recordwise.session import Session

__version__ = "0.1.0"

__all__ = [
    "Additive",
    "Clamped",
    "Column",
    "Domain",
    "Gaussian",
    "GeneralizedGaussian",
    "Grid",
    "Keys",
    "LogTransform",
    "Measure",
    "Policy",
    "Polylog",
    "Release",
    "RootTransform",
    "Session",
    "SumAndCount",
    "Transform",
    "TreeQuantile",
    "UnitSplit",
    "by",
    "functions",
    "mechanisms",
    "noise",
    "policy",
    "postprocess",
    "prefix",
    "query",
]

# Queries bring DuckDB, Arrow and sqlglot, half a second of imports that policies and mechanisms do without.
_AT_FIRST_USE = {
    "Column": "recordwise.plan",
    "Domain": "recordwise.plan",
    "Grid": "recordwise.quantiles",
    "Keys": "recordwise.plan",
    "Measure": "recordwise.plan",
    "Release": "recordwise.release",
    "Session": "recordwise.session",
    "SumAndCount": "recordwise.plan",
    "TreeQuantile": "recordwise.quantiles",
    "prefix": "recordwise.plan",
    "query": "recordwise.plan",
}


def __getattr__(name: str) -> Any:
    if name == "postprocess":
        return import_module("recordwise.postprocess")
    if name not in _AT_FIRST_USE:
        raise AttributeError(f"module 'recordwise' has no attribute {name!r}")
    return getattr(import_module(_AT_FIRST_USE[name]), name)
