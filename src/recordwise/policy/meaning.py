"""What a loss means: conversions, an attacker's odds, and power of tests.

It is written for the person who looks up a loss (T-MEANING).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist

import numpy as np
from flint import arb

from recordwise.errors import ParameterError, own_argument_errors, own_errors_of
from recordwise.exact.numbers import Number, arb_float_upper, ball, float_upper, positive, working_precision
from recordwise.exact.text import digits_text, formula_text, share_text
from recordwise.policy.atoms import from_pure, laplace_zcdp
from recordwise.policy.evaluate.evaluator import BALLS
from recordwise.policy.evaluate.tables import Record
from recordwise.policy.policy import Policy

# Conversions between zCDP, (epsilon, delta), Gaussian DP and pure DP. Each docstring says which way the result is
# rounded.


PRECISION = 192


def check_loss(rho: float, parameter: str = "rho") -> float:
    """Return a loss as a float, maybe infinite, or refuse it."""
    if isinstance(rho, bool) or not isinstance(rho, (int, float)) or not rho >= 0:
        raise ParameterError(parameter=parameter, problem="must be a nonnegative number")
    return float_upper(Fraction(rho)) if isinstance(rho, int) else float(rho)


def check_share(value: float, parameter: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 1:
        raise ParameterError(parameter=parameter, problem="must lie between 0 and 1")
    return float(value)


@own_argument_errors
def epsilon(rho: float, delta: float) -> float:
    """Return the epsilon of a zCDP loss at ``delta`` (T-EPSILON).

    Rounded up. Every Renyi order is valid; the best is taken.

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
    """Return approximately where a function of log(order - 1) is smallest."""
    from scipy.optimize import minimize_scalar

    return float(minimize_scalar(function, bounds=(-25, 60), method="bounded").x)


def _epsilon_float(rho: float, delta: float, less_one: float) -> float:
    order = 1 + less_one
    slack = -math.log(delta) - math.log(less_one) + order * (math.log(less_one) - math.log1p(less_one))
    return order * rho + slack / less_one


def _epsilon_at(rho: arb, delta: arb, less_one: arb) -> arb:
    order = 1 + less_one
    return order * rho + (-delta.log() - less_one.log() + order * (less_one / order).log()) / less_one


@own_argument_errors
def rho_for_epsilon(target: float, delta: float) -> float:
    """Return the largest zCDP loss of an epsilon at ``delta``.

    Rounded down.

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
    """Return the largest float for which ``fits`` holds."""
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


@own_argument_errors
def gdp_epsilon(policy: Policy, record: Record, delta: float) -> float:
    """Return the epsilon of Gaussian DP with mu = sqrt(2 rho).

    Rounded up, and smaller than ``epsilon``; refused unless every query allows it. Lattice Gaussian noise of
    few steps is NOT Gaussian DP, so every query must have sigma of at least 1000 lattice steps.

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


@own_argument_errors
def pure_to_zcdp(pure: float) -> float:
    """Return the best zCDP loss implied by a pure epsilon (T-PURE).

    It is eps*tanh(eps/2), rounded up.

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


@own_argument_errors
def discrete_laplace_zcdp(scale: Number, shift: int) -> float:
    """Return the exact lattice Laplace zCDP loss, rounded up (T-LAPLACE).

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


@own_argument_errors
def delta_at(rho: float, target: float) -> float:
    """Return the delta of a zCDP loss at an epsilon.

    Rounded up; at most 1.

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


# An attacker's odds, and the power of the best membership test.


ORDERS = 1 + np.geomspace(1e-4, 1e4, 400)
"""Renyi orders at which an attacker's power is limited; any set is valid, a finer one is tighter."""
OUTWARD = 1e-9


@own_argument_errors
def expected_log_odds(rho: float) -> float:
    """Return the largest mean growth of log-odds: the loss itself.

    Args:
        rho: The zCDP loss.

    Returns:
        The growth of the log-odds.
    """
    return check_loss(rho)


@own_argument_errors
def log_odds_tail(rho: float, gain: float) -> float:
    """Bound the probability that log-odds grow by more than ``gain``.

    exp(-(gain-rho)**2/(4 rho)), or 1 where vacuous.

    Args:
        rho: The zCDP loss.
        gain: The growth of the log-odds.

    Returns:
        The probability.
    """
    rho, gain = check_loss(rho), check_loss(gain, "gain")
    if gain <= rho:
        return 1.0
    return 0.0 if rho == 0 else min(1.0, math.exp(-((gain - rho) ** 2) / (4 * rho)) * (1 + OUTWARD))


def likely_log_odds(rho: float, pure: float | None = None) -> float:
    """Return the log-odds growth exceeded with probability at most 1/20 (T-MEANING).

    Args:
        rho: The zCDP loss.
        pure: The pure epsilon, where there is one: it is never exceeded.

    Returns:
        rho + 2 sqrt(rho ln 20), where the bound of ``log_odds_tail`` is 1/20, or the pure epsilon if that is smaller.
    """
    likely = check_loss(rho) + 2 * math.sqrt(rho * math.log(20))
    return likely if pure is None else min(likely, check_loss(pure, "pure"))


def power_beside_delta(rho: float, delta: float, *, false_alarm: float = 0.05) -> float:
    """Bound the best test's power when key selection may fail.

    With probability ``delta`` nothing is guaranteed; otherwise the zCDP bound holds.

    Args:
        rho: The zCDP loss.
        delta: The probability of key selection failing the record.
        false_alarm: The false-positive rate of the test; outside of that event it can be larger by 1/(1 - delta).

    Returns:
        A bound on the power.
    """
    inside = false_alarm / (1 - delta) if delta < 1 else 1.0
    return 1.0 if inside >= 1 else min(1.0, delta + (1 - delta) * power_zcdp(rho, inside))


@own_argument_errors
def power_gaussian(rho: float, false_alarm: float = 0.05) -> float:
    """Return the power of the best membership test for Gaussian noise.

    Args:
        rho: The zCDP loss.
        false_alarm: The false-positive rate of the test.

    Returns:
        The power, rounded up.
    """
    normal = NormalDist()
    power = normal.cdf(normal.inv_cdf(check_share(false_alarm, "false_alarm")) + math.sqrt(2 * check_loss(rho)))
    return min(1.0, power + OUTWARD)


@own_argument_errors
def power_pure(pure: float, false_alarm: float = 0.05) -> float:
    """Bound the power of the best test against a pure epsilon (T-MEANING).

    The smaller of e^eps times the false-positive rate and 1 - e^-eps times the rest of it.

    Args:
        pure: The pure epsilon.
        false_alarm: The false-positive rate of the test.

    Returns:
        The power, rounded up; no smaller bound follows from epsilon alone.
    """
    pure, false_alarm = check_loss(pure, "pure"), check_share(false_alarm, "false_alarm")
    if pure > -math.log(false_alarm) + 1:
        return min(1.0, -math.expm1(-pure + math.log1p(-false_alarm)) + OUTWARD)
    return min(1.0, false_alarm * math.exp(pure) + OUTWARD, 1 - math.exp(-pure) * (1 - false_alarm) + OUTWARD)


@own_argument_errors
def power_zcdp(rho: float, false_alarm: float = 0.05) -> float:
    """Bound the power of the best test against any mechanism.

    The mechanism has this zCDP loss; the bound is what the Renyi divergences allow, rounded up.

    Args:
        rho: The zCDP loss.
        false_alarm: The false-positive rate of the test.

    Returns:
        The power.
    """
    rho, false_alarm = check_loss(rho), check_share(false_alarm, "false_alarm")
    low, high = false_alarm, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _is_allowed(middle, false_alarm, rho) else (low, middle)
    return min(1.0, high + OUTWARD)


def _is_allowed(power: float, false_alarm: float, rho: float) -> bool:
    """Return whether the loss allows a test of this power."""
    return _within(power, false_alarm, rho) and _within(false_alarm, power, rho)


def _within(p: float, q: float, rho: float) -> bool:
    order = ORDERS
    hit = order * math.log(p) + (1 - order) * math.log(q)
    if q == 1:
        return math.isinf(rho)
    miss = order * math.log1p(-p) + (1 - order) * math.log1p(-q) if p < 1 else np.full_like(order, -np.inf)
    divergence = np.logaddexp(hit, miss) / (order - 1)
    return bool(np.all(divergence <= order * rho * (1 + 1e-12)))


PRESENCE = (
    (0.10, "presence is hidden"),
    (0.25, "presence is mostly hidden"),
    (0.60, "presence can be suspected"),
    (0.95, "presence can often be told"),
    (math.inf, "presence can be told"),
)
"""What the power of the best test with a 5% false-positive rate means, in words."""


def presence_words(power: float) -> str:
    """Return in words how well presence is hidden at this power."""
    return next(words for limit, words in PRESENCE if power < limit)


@own_errors_of
@dataclass(frozen=True, slots=True, kw_only=True)
class Meaning:
    """A loss expressed in several ways. Every number is an upper bound."""

    rho: float
    delta: float
    epsilon: float
    power: float
    false_alarm: float
    pure: float | None = None
    """The pure epsilon, which holds at delta 0; None where there is none."""

    def sentence(self) -> str:
        """One sentence for a person."""
        false_alarm = share_text(self.false_alarm)
        return (
            f"A membership test with a {false_alarm} false-positive rate detects your record with probability at most "
            f"{share_text(self.power, 1)} (without the publication: {false_alarm})."
        )

    def _repr_html_(self) -> str:
        epsilon = f"epsilon {digits_text(self.epsilon, 4)} at delta {formula_text(self.delta)}"
        return f"<p>loss {digits_text(self.rho, 4)}; {epsilon}. {self.sentence()}</p>"


@own_argument_errors
def meaning(rho: float, *, delta: float = 1e-5, false_alarm: float = 0.05, pure: float | None = None) -> Meaning:
    """Return a loss as epsilon and as membership test power.

    Args:
        rho: The zCDP loss.
        delta: Where epsilon is stated.
        false_alarm: The false-positive rate of the test.
        pure: The pure epsilon, where there is one: epsilon and power are then the smaller of what both say.

    Returns:
        The same loss in several forms, each an upper bound.

    Example:
        >>> meaning(0.1).sentence()[:97]
        'A membership test with a 5% false-positive rate detects your record with probability at most 13.4'
    """
    found, power = epsilon(rho, delta), power_zcdp(rho, false_alarm)
    if pure is not None:
        found, power = min(found, check_loss(pure, "pure")), min(power, power_pure(pure, false_alarm))
    return Meaning(rho=rho, delta=delta, epsilon=found, power=power, false_alarm=false_alarm, pure=pure)
