"""recordwise: statistics about skewed data with a per-record privacy guarantee.

The guarantee is a public function of each record's value.

    >>> import recordwise as rw
    >>> policy = rw.UnitSplit(at=50, rho="0.1").policy("emp")
    >>> float(policy.loss({"emp": 20}))
    0.016

Every name is imported when it is first used. Rarer ones are in their rooms: ``rw.mechanisms.Additive``, ``rw.sources.Csv``.
"""

import gc
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from recordwise import audit, errors, mechanisms, noise, planning, policy, postprocess, progress, studio, synthetic
    from recordwise.mechanisms.fat_tailed import GeneralizedGaussian, Polylog
    from recordwise.mechanisms.gaussian import Clamped, Gaussian, UnitSplit
    from recordwise.mechanisms.quantile import TreeQuantile
    from recordwise.mechanisms.sized import ByGroup, Sized
    from recordwise.mechanisms.transforms import LogTransform, RootTransform
    from recordwise.plan import sources
    from recordwise.plan.expressions import isoyear, month, prefix, quarter, week, year
    from recordwise.plan.file.read import PlanFile, load_plan
    from recordwise.plan.keys.cells import Domain
    from recordwise.plan.keys.hierarchies import Hierarchy
    from recordwise.plan.keys.keys import FromRelease, Keys
    from recordwise.plan.publication import Labels, Publication
    from recordwise.plan.query import Query, query
    from recordwise.plan.schema import Column, Measure
    from recordwise.policy.constructors import by
    from recordwise.policy.policy import Policy
    from recordwise.policy.series import Series
    from recordwise.reader.reading import read
    from recordwise.release.release import Release
    from recordwise.session import Session

    __version__: str

MODULES = (
    "audit",
    "errors",
    "mechanisms",
    "noise",
    "planning",
    "policy",
    "postprocess",
    "progress",
    "studio",
    "synthetic",
)
HOMES = {
    "mechanisms.fat_tailed": ("GeneralizedGaussian", "Polylog"),
    "mechanisms.gaussian": ("Clamped", "Gaussian", "UnitSplit"),
    "mechanisms.quantile": ("TreeQuantile",),
    "mechanisms.sized": ("ByGroup", "Sized"),
    "mechanisms.transforms": ("LogTransform", "RootTransform"),
    "plan.expressions": ("isoyear", "month", "prefix", "quarter", "week", "year"),
    "plan.file.read": ("PlanFile", "load_plan"),
    "plan.keys.cells": ("Domain",),
    "plan.keys.hierarchies": ("Hierarchy",),
    "plan.keys.keys": ("FromRelease", "Keys"),
    "plan.publication": ("Publication", "Labels"),
    "plan.query": ("Query", "query"),
    "plan.schema": ("Column", "Measure"),
    "policy.constructors": ("by",),
    "policy.policy": ("Policy",),
    "policy.series": ("Series",),
    "reader.reading": ("read",),
    "release.release": ("Release",),
    "session": ("Session",),
}
"""Where each public name is defined. Importing at first use keeps ``import recordwise`` fast: queries load DuckDB, Arrow and
sqlglot, and mechanisms load scipy."""

_NAMES = {name: home for home, names in HOMES.items() for name in names}
__all__ = [
    "ByGroup",
    "Clamped",
    "Column",
    "Domain",
    "FromRelease",
    "Gaussian",
    "GeneralizedGaussian",
    "Hierarchy",
    "Keys",
    "LogTransform",
    "Measure",
    "PlanFile",
    "Policy",
    "Polylog",
    "Publication",
    "Query",
    "Release",
    "RootTransform",
    "Series",
    "Session",
    "Sized",
    "TreeQuantile",
    "UnitSplit",
    "Labels",
    "__version__",
    "audit",
    "by",
    "errors",
    "isoyear",
    "load_plan",
    "mechanisms",
    "month",
    "noise",
    "planning",
    "policy",
    "postprocess",
    "prefix",
    "progress",
    "quarter",
    "query",
    "read",
    "sources",
    "studio",
    "synthetic",
    "week",
    "year",
]


def __getattr__(name: str) -> Any:
    if name in MODULES:
        return _imported(name)
    if name == "sources":
        return _imported("plan.sources")
    if name == "__version__":
        from importlib.metadata import version

        return version("recordwise")
    if name == "load_release":
        raise AttributeError(
            "rw.load_release is now rw.read, which takes a folder or a zip and gives the same and more"
        )
    if name not in _NAMES:
        raise AttributeError(f"module 'recordwise' has no attribute {name!r}")
    return getattr(_imported(_NAMES[name]), name)


def _imported(module: str) -> Any:
    """Import a module, without looking for garbage among what stays."""
    full = f"recordwise.{module}"
    if full in sys.modules or not gc.isenabled() or gc.get_freeze_count():
        return import_module(full)
    gc.disable()
    try:
        return import_module(full)
    finally:
        # Both together move everything to the oldest generation, which is looked through last.
        gc.freeze()
        gc.unfreeze()
        gc.enable()


def __dir__() -> list[str]:
    return sorted(__all__)
