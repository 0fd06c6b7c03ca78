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
from recordwise.version import __version__

if TYPE_CHECKING:
    from recordwise import planning, postprocess
    from recordwise.engines.sources import Postgres
    from recordwise.engines.spark import SparkMaster
    from recordwise.plan import Column, Domain, Keys, Measure, SumAndCount, prefix, query
    from recordwise.quantiles import Grid, TreeQuantile
    from recordwise.release import Release
    from recordwise.session import Session

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
    "Postgres",
    "Release",
    "RootTransform",
    "Session",
    "SparkMaster",
    "SumAndCount",
    "Transform",
    "TreeQuantile",
    "UnitSplit",
    "__version__",
    "by",
    "functions",
    "mechanisms",
    "noise",
    "planning",
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
    "Postgres": "recordwise.engines.sources",
    "Release": "recordwise.release",
    "Session": "recordwise.session",
    "SparkMaster": "recordwise.engines.spark",
    "SumAndCount": "recordwise.plan",
    "TreeQuantile": "recordwise.quantiles",
    "prefix": "recordwise.plan",
    "query": "recordwise.plan",
}


def __getattr__(name: str) -> Any:
    if name in ("planning", "postprocess"):
        return import_module(f"recordwise.{name}")
    if name not in _AT_FIRST_USE:
        raise AttributeError(f"module 'recordwise' has no attribute {name!r}")
    return getattr(import_module(_AT_FIRST_USE[name]), name)
