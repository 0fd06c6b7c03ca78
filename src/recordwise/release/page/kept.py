"""The part of release.json that exists for the page, so that a reloaded release makes the same page.

It contains public facts of the plan: the policy of each statistic of each table, a description of its noise, and the variance of
its noise at the sizes at which the charts are drawn.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from recordwise.exact.arithmetic import FloatArray
from recordwise.exact.numbers import fraction_text
from recordwise.mechanisms.base import gaussian_sigma
from recordwise.plan.statistics.base import SUM
from recordwise.policy.json import Bands, policy_json_in_order
from recordwise.policy.policy import Policy
from recordwise.release.page.charts import extremes, variances
from recordwise.release.page.parts import Part
from recordwise.release.page.view import Published, sizes_of


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptNoise:
    """The noise of a mechanism read back from a file: its variance at the saved totals, interpolated between them."""

    noise_sigma: float | None
    sizes: tuple[float, ...]
    variances: tuple[float, ...]

    def variance(self, total: Any, *, step: Fraction = Fraction(1)) -> FloatArray:
        if np.array_equal(total, self.sizes):
            return np.asarray(self.variances)
        with np.errstate(all="ignore"):
            return np.asarray(np.exp(np.interp(np.log(total), np.log(self.sizes), np.log(self.variances))))


def page_json(release: Published, labels: Mapping[str, str]) -> dict[str, Any]:
    """Labels and parts; policies, charts and curves that parts share are written once."""
    sizes, policies, curves = sizes_of(release), list[Any](), list[Any]()
    parts = []
    for part in release.parts:
        noises = []
        # A measure that no loss depends on has no charts.
        for _, mechanism in extremes(part) if part.kind == SUM and part.measure in sizes else ():
            found = [_finite(value) for value in variances(mechanism, part, sizes[str(part.measure)])]
            noises.append({"sigma": _sigma(mechanism), "variances": _place(curves, found)})
        parts.append(
            {
                "table": part.table,
                "statistic": part.statistic,
                "kind": part.kind,
                "noise": part.noise,
                "policy": _place(policies, policy_json_in_order(part.policy)),
                "measure": part.measure,
                "step": fraction_text(part.step),
                "stays": part.stays,
                "cut_down": part.cut_down,
                "noises": noises,
            }
        )
    shown = {name: list(points) for name, points in sizes.items()}
    kept = {"labels": dict(labels), "parts": parts, "policies": policies, "sizes": shown, "variances": curves}
    return kept if release.history is None else kept | {"history": release.history.to_json()}


def parts_of(kept: Mapping[str, Any], bands: Bands | None = None) -> tuple[Part, ...]:
    """The parts written by ``page_json``; raises KeyError, TypeError or ValueError for anything else."""
    policies = [Policy.from_json(form, bands) for form in kept["policies"]]
    curves = [tuple(math.inf if value is None else float(value) for value in curve) for curve in kept["variances"]]
    return tuple(_part(each, policies, curves, kept["sizes"]) for each in kept["parts"])


def _part(form: Mapping[str, Any], policies: Sequence[Policy], curves: Sequence[Any], sizes: Mapping[str, Any]) -> Part:
    noises = tuple(
        KeptNoise(
            noise_sigma=noise["sigma"],
            sizes=tuple(map(float, sizes[form["measure"]])),
            variances=curves[noise["variances"]],
        )
        for noise in form["noises"]
    )
    return Part(
        table=str(form["table"]),
        statistic=str(form["statistic"]),
        kind=str(form["kind"]),
        noise=str(form["noise"]),
        policy=policies[form["policy"]],
        measure=form["measure"],
        step=Fraction(form["step"]),
        mechanisms=noises,
        stays=bool(form["stays"]),
        cut_down=bool(form["cut_down"]),
    )


def _place(listed: list[Any], value: Any) -> int:
    """The index of a value in a list, to which it is added if it is new."""
    if value not in listed:
        listed.append(value)
    return listed.index(value)


def _sigma(mechanism: Any) -> float | None:
    sigma = gaussian_sigma(mechanism)
    return None if sigma is None else float(sigma)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
