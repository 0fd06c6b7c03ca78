"""The mechanisms: parameters, policy, noise and estimate in one place each.

Takes exact totals and a source of bits, returns estimates with intervals. Imports policy and noise; knows no query.
A new one subclasses a base in ``gaussian``, ``fat_tailed`` or ``transformed``; docs/architecture.md lists what else it needs.

In reading order:

- ``base``: what every mechanism answers, and how it is described
- ``registry``: every mechanism by name, with those of other packages
- ``gaussian``: Gaussian noise, clamped sums and unit splitting
- ``fat_tailed``: additive noise with concave exponents
- ``transformed``: noise on the scale of a concave function
- ``transforms``: roots, logarithms and functions of your own
- ``inverses``: unbiased estimates from transformed answers
- ``sized``: noise by the public size of a cell, or by its public group
- ``combined``: answers made of several draws, refined or carried over from an earlier release
- ``quantile``: noisy trees of counts on a public grid
- ``key_selection``: which keys are published
- ``external``: mechanisms from elsewhere
- ``certified_loss``: the tight loss of the noise that is drawn
- ``calibration``: the noise that meets a goal
- ``accuracy``: the size of a cell's error, from the noise laws
- ``inference``: what an attacker learns about a value
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from recordwise.mechanisms.base import Estimates, Mechanism, Noisy
    from recordwise.mechanisms.fat_tailed import Additive, GeneralizedGaussian, Polylog
    from recordwise.mechanisms.gaussian import Clamped, Gaussian, UnitSplit
    from recordwise.mechanisms.quantile import Grid
    from recordwise.mechanisms.sized import ByGroup, Sized
    from recordwise.mechanisms.transforms import LogTransform, RootTransform, Transform

__all__ = [
    "Additive",
    "ByGroup",
    "Clamped",
    "Estimates",
    "Gaussian",
    "GeneralizedGaussian",
    "Grid",
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
    "ByGroup": "sized",
    "Clamped": "gaussian",
    "Estimates": "base",
    "Gaussian": "gaussian",
    "GeneralizedGaussian": "fat_tailed",
    "Grid": "quantile",
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
    """Import a mechanism on first use, because most processes use few."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
