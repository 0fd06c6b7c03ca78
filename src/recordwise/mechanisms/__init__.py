"""The mechanisms, one per file with its policy: parameters, policy, release and estimate."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from recordwise.mechanisms.additive import Additive
    from recordwise.mechanisms.base import Estimates, Mechanism
    from recordwise.mechanisms.clamped import Clamped
    from recordwise.mechanisms.gaussian import Gaussian
    from recordwise.mechanisms.generalized_gaussian import GeneralizedGaussian
    from recordwise.mechanisms.log_transform import LogTransform
    from recordwise.mechanisms.noisy import Noisy
    from recordwise.mechanisms.polylog import Polylog
    from recordwise.mechanisms.root_transform import RootTransform
    from recordwise.mechanisms.sized import Sized
    from recordwise.mechanisms.transform import Transform
    from recordwise.mechanisms.unit_split import UnitSplit

__all__ = [
    "Additive",
    "Clamped",
    "Estimates",
    "Gaussian",
    "GeneralizedGaussian",
    "LogTransform",
    "Mechanism",
    "Noisy",
    "Polylog",
    "RootTransform",
    "Sized",
    "Transform",
    "UnitSplit",
]
_HOMES = {
    "Additive": "additive",
    "Clamped": "clamped",
    "Estimates": "base",
    "Gaussian": "gaussian",
    "GeneralizedGaussian": "generalized_gaussian",
    "LogTransform": "log_transform",
    "Mechanism": "base",
    "Noisy": "noisy",
    "Polylog": "polylog",
    "RootTransform": "root_transform",
    "Sized": "sized",
    "Transform": "transform",
    "UnitSplit": "unit_split",
}


def __getattr__(name: str) -> Any:
    """Each of them, imported when it is first used: most processes use one or two."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
