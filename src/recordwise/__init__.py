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
    from recordwise.plan import Column, Keys, Measure, prefix, query
    from recordwise.release import Release
    from recordwise.session import Session

__version__ = "0.1.0"

__all__ = [
    "Additive",
    "Clamped",
    "Column",
    "Gaussian",
    "GeneralizedGaussian",
    "Keys",
    "LogTransform",
    "Measure",
    "Policy",
    "Polylog",
    "Release",
    "RootTransform",
    "Session",
    "Transform",
    "UnitSplit",
    "by",
    "functions",
    "mechanisms",
    "noise",
    "policy",
    "prefix",
    "query",
]

# Queries bring DuckDB, Arrow and sqlglot, half a second of imports that policies and mechanisms do without.
_AT_FIRST_USE = {
    "Column": "recordwise.plan",
    "Keys": "recordwise.plan",
    "Measure": "recordwise.plan",
    "Release": "recordwise.release",
    "Session": "recordwise.session",
    "postprocess": "recordwise",
    "prefix": "recordwise.plan",
    "query": "recordwise.plan",
}


def __getattr__(name: str) -> Any:
    if name not in _AT_FIRST_USE:
        raise AttributeError(f"module 'recordwise' has no attribute {name!r}")
    home = _AT_FIRST_USE[name]
    return import_module(f"recordwise.{name}") if home == "recordwise" else getattr(import_module(home), name)
