"""The mechanisms, one per file with its policy: parameters, policy, release and estimate."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from recordwise.mechanisms.base import Estimates, Mechanism, Noisy
    from recordwise.mechanisms.fat_tailed import Additive, GeneralizedGaussian, Polylog
    from recordwise.mechanisms.gaussian import Clamped, Gaussian, UnitSplit
    from recordwise.mechanisms.sized import Sized
    from recordwise.mechanisms.transforms import LogTransform, RootTransform, Transform

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
    "Additive": "fat_tailed",
    "Clamped": "gaussian",
    "Estimates": "base",
    "Gaussian": "gaussian",
    "GeneralizedGaussian": "fat_tailed",
    "LogTransform": "transforms",
    "Mechanism": "base",
    "Noisy": "base",
    "Polylog": "fat_tailed",
    "RootTransform": "transforms",
    "Sized": "sized",
    "Transform": "transforms",
    "UnitSplit": "gaussian",
}


def __getattr__(name: str) -> Any:
    """Each of them, imported when it is first used: most processes use one or two."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
