"""Conversions between zCDP, (epsilon, delta), Gaussian DP and pure DP. Each docstring says which way the result is rounded."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from flint import arb

from recordwise.errors import ParameterError
from recordwise.exact.numbers import Number, arb_float_upper, ball, float_upper, positive, working_precision
from recordwise.policy.atoms import Atom, PurePieces, from_pure
from recordwise.policy.concave_atoms import (
    Additive,
    AdditiveTable,
    CertifiedSum,
    LaplaceSum,
    LaplaceTransform,
    laplace_zcdp,
)
from recordwise.policy.evaluate.evaluator import BALLS, Evaluator
from recordwise.policy.evaluate.tables import Record
from recordwise.policy.measure import Measure
from recordwise.policy.policy import Policy

if TYPE_CHECKING:
    from recordwise.policy.policy import Policy, Terms


PRECISION = 192


def check_loss(rho: float, parameter: str = "rho") -> float:
    """A loss as a float, which may be infinite; refused if it is not a loss."""
    if isinstance(rho, bool) or not isinstance(rho, (int, float)) or not rho >= 0:
        raise ParameterError(parameter=parameter, problem="must be a nonnegative number")
    return float_upper(Fraction(rho)) if isinstance(rho, int) else float(rho)


def check_share(value: float, parameter: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 1:
        raise ParameterError(parameter=parameter, problem="must lie between 0 and 1")
    return float(value)


def epsilon(rho: float, delta: float) -> float:
    """The epsilon of a zCDP loss at ``delta``, rounded up (T-EPSILON). Every Renyi order is valid; the best is taken.

    Args:
        rho: The zCDP loss, 0 or more.
        delta: Between 0 and 1.

    Returns:
        An epsilon for which (epsilon, delta)-DP holds.

    Raises:
        ParameterError: If ``rho`` is negative or ``delta`` is not between 0 and 1.

    Example:
        >>> round(epsilon(0.1, 1e-5), 4)
        1.9142
    """
    rho, delta = check_loss(rho), check_share(delta, "delta")
    if rho == 0:
        return 0.0
    if math.isinf(rho):
        return math.inf
    best = _least(lambda t: _epsilon_float(rho, delta, math.exp(t)))
    with working_precision(PRECISION):
        return max(0.0, arb_float_upper(_epsilon_at(arb(rho), arb(delta), arb(math.exp(best)))))


def _least(function: Callable[[float], float]) -> float:
    """Approximately where a function of log(order - 1) is smallest; any point gives a valid bound."""
    from scipy.optimize import minimize_scalar

    return float(minimize_scalar(function, bounds=(-25, 60), method="bounded").x)


def _epsilon_float(rho: float, delta: float, less_one: float) -> float:
    order = 1 + less_one
    slack = -math.log(delta) - math.log(less_one) + order * (math.log(less_one) - math.log1p(less_one))
    return order * rho + slack / less_one


def _epsilon_at(rho: arb, delta: arb, less_one: arb) -> arb:
    order = 1 + less_one
    return order * rho + (-delta.log() - less_one.log() + order * (less_one / order).log()) / less_one


def rho_for_epsilon(target: float, delta: float) -> float:
    """The largest zCDP loss whose epsilon at ``delta`` is at most ``target``, rounded down.

    Args:
        target: The epsilon.
        delta: The delta at which epsilon is stated.

    Returns:
        The zCDP loss.

    Example:
        >>> epsilon(rho_for_epsilon(2.0, 1e-5), 1e-5) <= 2.0
        True
    """
    target, delta = check_loss(target, "target"), check_share(delta, "delta")
    return _largest(lambda rho: epsilon(rho, delta) <= target)


def _largest(fits: Callable[[float], bool]) -> float:
    """The largest float for which ``fits`` holds; it holds for 0 and fails for some number."""
    low, high = 0.0, 1.0
    while fits(high) and high < 1e300:
        low, high = high, 2 * high
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def gdp_delta(mu: float, target: float) -> float:
    """The delta of mu-Gaussian DP at an epsilon, rounded up."""
    with working_precision(PRECISION):
        m, e = arb(mu), arb(target)
        return arb_float_upper(_phi(m / 2 - e / m) - e.exp() * _phi(-m / 2 - e / m))


def _phi(z: arb) -> arb:
    return (-z / arb(2).sqrt()).erfc() / 2


def gdp_epsilon(policy: Policy, record: Record, delta: float) -> float:
    """The epsilon of Gaussian DP with mu = sqrt(2 rho), smaller than ``epsilon``, rounded up; refused unless every query allows
    it.

    Lattice Gaussian noise of few steps is NOT Gaussian DP, so every query must have sigma of at least 1000 lattice steps.

    Args:
        policy: The policy, all of whose noise must be Gaussian on a fine lattice.
        record: One record.
        delta: The delta at which epsilon is stated.

    Returns:
        The epsilon.
    """
    if not policy.near_gaussian:
        raise ParameterError(
            parameter="policy",
            problem="has queries that are not Gaussian noise of at least 1000 lattice steps, so the GDP number would be too small",
            advice="Use epsilon(rho, delta).",
        )
    return gdp_epsilon_of(policy.loss(record), delta)


def gdp_epsilon_of(rho: float, delta: float) -> float:
    """Epsilon at ``delta`` for continuous Gaussian noise of this loss, rounded up.

    Args:
        rho: The zCDP loss.
        delta: The delta at which epsilon is stated.

    Returns:
        The epsilon.
    """
    rho, delta = check_loss(rho), check_share(delta, "delta")
    if rho == 0 or math.isinf(rho):
        return rho
    mu = math.sqrt(2 * rho) * (1 + 2**-52)
    below = _largest(lambda target: gdp_delta(mu, target) > delta)
    return math.nextafter(below, math.inf)


def pure_to_zcdp(pure: float) -> float:
    """The best zCDP loss implied by a pure epsilon alone, eps*tanh(eps/2), rounded up (T-PURE).

    Args:
        pure: The pure epsilon.

    Returns:
        The zCDP loss.

    Example:
        >>> round(pure_to_zcdp(1.0), 6)
        0.462117
    """
    with working_precision(PRECISION):
        return arb_float_upper(from_pure(BALLS, arb(check_loss(pure, "pure"))))


def discrete_laplace_zcdp(scale: Number, shift: int) -> float:
    """The exact zCDP loss of lattice Laplace noise of ``scale`` steps at a shift of whole steps, rounded up (T-LAPLACE).

    Args:
        scale: The scale, in lattice steps.
        shift: The shift, in lattice steps.

    Returns:
        The loss.
    """
    if isinstance(shift, bool) or not isinstance(shift, int) or shift < 0:
        raise ParameterError(parameter="shift", problem="must be a nonnegative integer")
    one_step = 1 / positive(scale, parameter="scale")
    with working_precision(PRECISION):
        return arb_float_upper(laplace_zcdp(BALLS, ball(one_step * shift), one_step))


def delta_at(rho: float, target: float) -> float:
    """The delta at which a zCDP loss gives an epsilon, rounded up; at most 1.

    Args:
        rho: The zCDP loss.
        target: The epsilon.

    Returns:
        The delta.
    """
    rho, target = check_loss(rho), check_loss(target, "target")
    if rho == 0 or math.isinf(rho):
        return 0.0 if rho == 0 else 1.0

    def log_delta(t: float) -> float:
        less = math.exp(t)
        order = 1 + less
        return less * (order * rho - target) - t + order * (t - math.log1p(less))

    best = _least(log_delta)
    with working_precision(PRECISION):
        less = arb(math.exp(best))
        order = 1 + less
        value = (less * (order * arb(rho) - arb(target))).exp() / less * ((less / order).log() * order).exp()
        return min(1.0, arb_float_upper(value))


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Epsilon(Atom):
    """The pure-DP loss of another atom."""

    kind: ClassVar[str] = "epsilon"
    of: Additive | AdditiveTable | CertifiedSum | LaplaceSum | LaplaceTransform | PurePieces

    def measures(self) -> tuple[Measure, ...]:
        return self.of.measures()

    def value(self, evaluator: Evaluator[T], columns: dict[str, T]) -> T:
        return self.of.epsilon(evaluator, columns)

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "of": self.of.to_json()}


def pure_terms(policy: "Policy") -> "Terms":
    """The policy's terms with each atom replaced by its epsilon; refused if an atom has none."""
    from recordwise.policy.policy import Key

    if policy.delta_terms:
        raise ParameterError(parameter="policy", problem="has a delta, so it has no pure epsilon")
    terms: dict[Key, Fraction] = {}
    for (condition, atom), coefficient in policy.rho.items():
        if not isinstance(atom, (Additive, AdditiveTable, CertifiedSum, LaplaceSum, LaplaceTransform, PurePieces)):
            raise ParameterError(
                parameter="policy",
                problem=f"has no pure epsilon: its part '{atom.kind}' is Gaussian or a budget",
                advice="Use epsilon(rho, delta) instead.",
            )
        if coefficient.denominator != 1:
            raise ParameterError(parameter="policy", problem="was scaled by a fraction, so it has no pure epsilon")
        key = (condition, Epsilon(atom))
        terms[key] = terms.get(key, Fraction(0)) + coefficient
    return terms
