"""Unit splitting: a large record is split into pieces and pays for each of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, TypeAlias

from recordwise.errors import ParameterError
from recordwise.exact.numbers import Number, positive, sqrt_upper
from recordwise.mechanisms.accuracy import short
from recordwise.mechanisms.calibration import loss_for, only_goal
from recordwise.mechanisms.described import GAUSSIAN_GOALS, Parameter
from recordwise.mechanisms.gaussian import GaussianNoise, near_gaussian, read_share
from recordwise.policy.constructors import By, gaussian_sum, split
from recordwise.policy.measure import Measure
from recordwise.policy.policy import Policy, composed

Thresholds: TypeAlias = Number | By | Mapping[Measure | str, Number | By]
"""One threshold, one for each group (``rw.by``), or one of either for each measure that is split jointly."""


@dataclass(frozen=True, slots=True, init=False, repr=False)
class UnitSplit(GaussianNoise):
    """A sum with Gaussian noise of sigma = at/sqrt(2 rho): loss ``rho`` at ``at``, growing with the square beyond that.

    Instead of rho, ``variance=`` or ``relative_error=, at_total=`` sets the noise if there is a single threshold.
    Theorem T-SPLIT (docs/theory/splitting.md): any rho-zCDP mechanism on split rows costs rho * pieces**2; for a plain sum
    splitting changes nothing in the answer, so the tight policy is rho * (x/at)**2.

    Args:
        at: Threshold, in the measure's units; may differ by group or measure.
        rho: Loss of a record of size at.
        variance: Variance of the noise, in squared units of the measure.
        relative_error: Relative error at the total at_total.
        at_total: Total at which the goal is stated, in the measure's units.
        confidence: Probability with which the error stays below relative_error.
        step: Step of the measure a relative_error is for.
    """

    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter(
            "at", "threshold, in the measure's units; may differ by group or measure", read="thresholds", needed=True
        ),
        Parameter("rho", "loss of a record of size at", "noise"),
        *GAUSSIAN_GOALS,
    )
    words: ClassVar[str] = "Gaussian noise, its size set by splitting large records"

    at: Fraction | By | Mapping[Measure | str, Fraction | By]
    """A threshold for the summed measure, or a mapping measure -> threshold for joint splitting; either may be ``rw.by(...)``."""
    rho: Fraction

    def __init__(
        self,
        *,
        at: Thresholds,
        rho: Number | None = None,
        variance: Number | None = None,
        relative_error: Number | None = None,
        at_total: Number | None = None,
        confidence: float | None = None,
        step: Number | None = None,
    ) -> None:
        thresholds = _thresholds(at)
        goals = {
            "variance": variance,
            "relative_error": relative_error,
            "at_total": at_total,
            "confidence": confidence,
            "step": step,
        }
        plain = thresholds if isinstance(thresholds, Fraction) else None
        if only_goal({"rho": rho, **goals}) != "rho" and plain is None:
            raise ParameterError(
                parameter="at",
                problem="differs by group or measure, so one variance does not fit all",
                advice="Give rho instead.",
            )
        object.__setattr__(self, "at", thresholds)
        object.__setattr__(self, "rho", loss_for(plain or Fraction(1), rho, goals))

    def threshold(self, measure: Measure | str) -> Fraction | By:
        """The threshold of one measure."""
        if not isinstance(self.at, Mapping):
            return self.at
        summed = Measure.of(measure)
        for key, value in self.at.items():
            if key in (summed, summed.name):
                return value
        raise ParameterError(parameter="at", problem=f"has no threshold for '{summed.name}', which is summed")

    def resolved(self, at: Number) -> "UnitSplit":
        """The same with one plain threshold, for cells whose group is known."""
        return UnitSplit(at=at, rho=self.rho)

    def with_sigma(self, sigma: Fraction) -> "UnitSplit":
        if not isinstance(self.at, Fraction):
            raise ParameterError(parameter="at", problem="differs by group or measure, so one noise does not fit all")
        return UnitSplit(at=self.at, rho=short(self.at**2 / (2 * sigma**2), up=True))

    @classmethod
    def audit_examples(cls) -> dict[str, "UnitSplit"]:
        return {"unit split": cls(at=50, rho="0.1")}

    def resized(self, size: Fraction) -> "UnitSplit":
        """The same with a threshold that is a share of a size."""
        if not isinstance(self.at, Fraction):
            raise ParameterError(parameter="at", problem="differs by group or measure, so it is no share of a size")
        return UnitSplit(at=self.at * size, rho=self.rho)

    def shared(self, share: Number) -> "UnitSplit":
        """The same thresholds at a share of the loss."""
        return UnitSplit(at=self.at, rho=read_share(share) * self.rho)

    @property
    def noise_sigma(self) -> Fraction:
        if isinstance(self.at, (By, Mapping)):
            raise ParameterError(
                parameter="at",
                problem="differs by group or measure, so there is no single sigma",
                advice="Use mechanism.resolved(threshold) for one cell's group.",
            )
        return self._sigma(self.at)

    def _sigma(self, at: Fraction) -> Fraction:
        return sqrt_upper(at**2 / (2 * self.rho))

    def policy(self, measure: Measure | str, *, tight: bool = True) -> Policy:
        """Tight: x**2/(2 sigma**2), by group if thresholds differ. ``tight=False``: the paper's rho * pieces**2."""
        summed = Measure.of(measure)
        threshold = self.threshold(summed)
        charged = _by_group(self, summed, threshold) if isinstance(threshold, By) else self._tight(summed, threshold)
        return charged if tight else split(self.rho, self._joint(summed, threshold))

    def _joint(self, summed: Measure, threshold: Fraction | By) -> dict[Measure | str, Number | By]:
        others = self.at.items() if isinstance(self.at, Mapping) else ()
        joint: dict[Measure | str, Number | By] = {summed: threshold}
        return joint | {m: value for key, value in others if (m := Measure.of(key)).name != summed.name}

    def _tight(self, measure: Measure, at: Fraction) -> Policy:
        sigma = self._sigma(measure.on_lattice(at, parameter="at"))
        return gaussian_sum(measure, sigma=sigma, near_gaussian=near_gaussian(sigma, measure.step))


def _by_group(mechanism: UnitSplit, measure: Measure, threshold: By) -> Policy:
    """Each group at its own sigma; a group without a threshold keeps the "no guarantee" of the split policy."""
    undefined = split(mechanism.rho, {measure: threshold})
    return composed(
        [
            (undefined if at is None else mechanism._tight(measure, at)).where(condition)
            for condition, at in threshold.cases()
        ]
    )


def _thresholds(at: Thresholds) -> Fraction | By | Mapping[Measure | str, Fraction | By]:
    if not isinstance(at, Mapping):
        return _threshold(at, "at")
    if not at:
        raise ParameterError(parameter="at", problem="must name at least one measure")
    return {name: _threshold(value, f"at['{name}']") for name, value in at.items()}


def _threshold(value: Number | By, parameter: str) -> Fraction | By:
    return value if isinstance(value, By) else positive(value, parameter=parameter)
