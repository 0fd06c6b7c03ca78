"""What mechanisms, policies and conversions tell, number by number, as it was kept.

``PYTHONPATH=tests python tests/mechanisms/kept_numbers.py`` writes them. They are checked against theory elsewhere, each within a
tolerance and many at whole steps only. Kept to ten digits, they also tell when a small change of the code moves one by less; what
changed is then read in the difference of the file.
"""

import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

import recordwise as rw
from mechanisms import kept_parts
from mechanisms.mechanism_catalogue import EVERY, TOTALS, Entry
from random_policies import random_policy, random_record
from recordwise.errors import ParameterError
from recordwise.mechanisms.base import parameter_json
from recordwise.mechanisms.key_selection import SelectionLaw
from recordwise.noise import (
    DiscreteGaussian,
    DiscreteLaplace,
    GeneralizedGaussian,
    LatticeLaw,
    Polylog,
    Seeded,
    binomial_exact,
)
from recordwise.policy import Measure
from recordwise.policy.groups import group_loss, group_pair
from recordwise.policy.loss_law import PrivacyLoss, Shift
from recordwise.policy.meaning import (
    expected_log_odds,
    gdp_epsilon_of,
    likely_log_odds,
    log_odds_tail,
    power_beside_delta,
    power_gaussian,
    power_zcdp,
)
from recordwise.policy.render.html import policy_html

KEPT = Path(__file__).with_suffix(".json")
SIZES = (1, 2, 3, 7, 50, 1000, 10**6)
SEEDS = range(24)
RHOS = (0.0, 1e-6, 0.01, 0.3, 1.0, 2.5, 40.0, math.inf)
DELTAS = (1e-12, 1e-6, 0.01, 0.4)


def numbers(values: Any) -> list[float]:
    return [float(value) for value in np.asarray(values, np.float64).ravel()]


def of_mechanism(entry: Entry) -> Iterator[tuple[str, Any]]:
    """Losses, what is drawn, what is estimated from it, and its errors."""
    made, step, measure = entry.mechanism, entry.step, entry.measure
    policy = made.policy(measure)
    yield "losses", [float(policy.loss({measure.name: step * size})) for size in SIZES]
    yield (
        "losses, simple",
        [float(made.policy(measure, tight=False).loss({measure.name: step * size})) for size in SIZES],
    )
    yield "words", policy.in_words()
    yield "latex", policy.to_latex()
    positive = np.array(TOTALS[:5], np.int64)
    totals = np.array([positive, positive[::-1]]) if measure.signed else positive
    noisy = made.release(totals, step=step, rng=Seeded(7))
    for confidence in (0.6, 0.95):
        found = made.estimate(noisy, confidence=confidence)
        for name in ("value", "standard_error", "variance_unbiased", "low", "high"):
            yield f"{name} at {confidence}", numbers(getattr(found, name))
    sizes = np.array([float(step) * size for size in SIZES])
    yield "variance", numbers(made.variance(sizes, step=step))
    yield "bias", numbers(made.bias(sizes, step=step))
    kept = np.array([sizes, sizes[::-1]]) if measure.signed else None
    for confidence in (0.6, 0.95):
        reach = made.error_quantiles(sizes, confidence=confidence, step=step, kept=kept)
        yield f"error at {confidence}", numbers(reach)
        yield (
            f"meets at {confidence}",
            [
                str(made.meets(sizes, reach * factor, confidence=confidence, step=step, kept=kept).tolist())
                for factor in (0.9, 1.1)
            ],
        )
    if not entry.transforms:
        yield "mean error", numbers(made.mean_errors(sizes, step=step))
    yield "code", repr(made)
    yield "parameters", json.dumps(parameter_json(made), sort_keys=True)
    yield "loss at a shift", [float(made.loss_at_shift(step * size, step=step)) for size in (1, 5, 60)]
    yield "realized loss", [float(made.realized_loss(step * 20, step * size, step=step)) for size in (1, 5, 60)]
    yield "by default", by_default(entry, positive)
    traits = ("answers", "is_sized", "logarithmic", "loss_of_sum", "signed", "to", "variance_varies")
    yield "traits", str([getattr(made, name) for name in traits])


def by_default(entry: Entry, positive: Any) -> list[float]:
    """The same without a word about steps, confidence or tightness."""
    made, signed = entry.mechanism, entry.measure.signed
    measure = Measure(entry.measure.name, signed=signed)
    totals = np.array([positive, positive[::-1]]) if signed else positive
    noisy = made.release(totals, rng=Seeded(9))
    found = made.estimate(noisy)
    kept = np.array([positive, positive]) * 1.0 if signed else None
    return [
        *numbers(found.low),
        *numbers(found.high),
        *numbers(made.variance(positive * 1.0)),
        *numbers(made.bias(positive * 1.0)),
        *numbers(made.error_quantiles(positive * 1.0, confidence=0.8, kept=kept)),
        made.loss_at_shift(7),
        made.realized_loss(20, 7),
        float(made.policy(measure).loss({measure.name: 7})),
    ]


def of_policy(seed: int) -> Iterator[tuple[str, Any]]:
    """Losses of records, and how the policy is written."""
    rng = Random(seed)
    policy = random_policy(rng)
    records = [random_record(rng) for _ in range(12)]
    yield "losses", [float(policy.loss(record)) for record in records]
    yield "deltas", [float(policy.delta(record)) for record in records]
    yield "words", policy.in_words()
    yield "latex", policy.to_latex()
    yield "text", str(policy)
    yield "page", policy_html(policy)


def of_conversions() -> Iterator[tuple[str, Any]]:
    """From one way to state a loss to another."""
    for rho in RHOS:
        yield f"epsilon of {rho}", [told(rw.policy.epsilon, rho, delta) for delta in DELTAS]
        yield f"gdp epsilon of {rho}", [told(gdp_epsilon_of, rho, delta) for delta in DELTAS]
        yield f"delta of {rho}", [told(rw.policy.delta_at, rho, target) for target in (0.01, 1.0, 5.0)]
        yield f"meaning of {rho}", [told(expected_log_odds, rho), told(likely_log_odds, rho)]
        yield f"tail of {rho}", [told(log_odds_tail, rho, gain) for gain in (0.1, 1.0, 4.0)]
        powers = (power_gaussian, power_zcdp)
        yield f"power of {rho}", [told(power, rho, alarm) for power in powers for alarm in (0.01, 0.05, 0.3)]
        yield f"power beside a delta of {rho}", [told(power_beside_delta, rho, delta) for delta in DELTAS[1:]]
        yield f"pure {rho}", told(rw.policy.pure_to_zcdp, rho)
        if math.isfinite(rho):
            yield f"rho for {rho}", [told(rw.policy.rho_for_epsilon, rho, delta) for delta in DELTAS]
    for scale in (1, 3, "0.4"):
        yield f"laplace {scale}", [rw.policy.discrete_laplace_zcdp(scale, shift) for shift in (1, 2, 9)]
    shifts = [Shift(sigma, steps, times) for sigma, steps, times in ((0.7, 1, 1), (3.0, 2, 2), (50.0, 40, 3))]
    for chosen in (shifts[:1], shifts[1:], shifts):
        for smooth in (0.0, 0.2):
            loss = PrivacyLoss.of(chosen, smooth=smooth, smooth_numbers=2)
            found = [
                *numbers(loss.delta_at([0.0, 0.5, 2.0])),
                *(loss.epsilon(delta) for delta in DELTAS[1:]),
                loss.power(),
            ]
            yield f"privacy loss of {len(chosen)} and {smooth}", found


LAWS = {
    "gaussian": DiscreteGaussian("2.5"),
    "narrow gaussian": DiscreteGaussian("0.3"),
    "laplace": DiscreteLaplace(3),
    "generalized gaussian": GeneralizedGaussian(shape="1/2", scale=2),
    "polylog": Polylog(power=2, rate=1, offset=3, scale=2),
}
PLACES = [-40, -3, -1, 0, 1, 2, 9, 120]


def of_law(law: LatticeLaw) -> Iterator[tuple[str, Any]]:
    """Its probabilities, and what it draws."""
    for name in ("pmf", "log_pmf", "cdf", "log_cdf", "sf", "log_sf", "sf_upper", "sf_lower"):
        yield name, numbers(getattr(law, name)(PLACES))
    yield "quantiles", [float(law.quantile(p)) for p in ("0.001", "0.3", "0.5", "0.975", "0.999999")]
    yield "moments", [law.variance, law.mean_abs]
    yield "draws", numbers(law.sample(60, Seeded(3)))
    yield "draws above", numbers(law.sample_above(4, 30, Seeded(4)))
    yield "empty cells", [float(binomial_exact(count, law, 5, Seeded(count))) for count in (3, 1000, 10**7)]


def of_groups() -> Iterator[tuple[str, Any]]:
    """Losses of several records together."""
    losses = [[0.1], [0.1, 0.4], [0.0, 0.3, 2.0], [1.0] * 9, [0.2, math.inf]]
    for bound in ("tight", "simple", "advanced"):
        yield bound, [told(group_loss, each, bound=bound) for each in losses]
    for pairs in (
        [(0.1, 0.0)],
        [(0.1, 1e-6), (0.4, 0.0)],
        [(0.0, 1e-3), (2.0, 1e-9), (0.3, 0.0)],
        [(math.inf, 0.1), (1.0, 0.0)],
    ):
        pair = group_pair(pairs)
        found = [pair.rho, pair.delta, *(told(pair.delta_at, each) for each in (0.0, 1.0, 6.0))]
        yield f"pair {pairs}", [*found, *(told(pair.power, each) for each in (0.01, 0.3))]


def of_goals() -> Iterator[tuple[str, Any]]:
    """The noise that reaches a goal."""
    for name, make in {
        "gaussian": lambda **goal: rw.Gaussian(**goal),
        "root": lambda **goal: rw.RootTransform(degree=2, offset=3, **goal),
        "log, laplace": lambda **goal: rw.LogTransform(offset=30, noise="laplace", **goal),
        "generalized gaussian": lambda **goal: rw.GeneralizedGaussian(shape="0.5", **goal),
        "polylog": lambda **goal: rw.Polylog(power=2, rate=1, offset=3, **goal),
    }.items():
        for goal in (
            {"rho": "0.3", "at": 40},
            {"variance": 7},
            {"relative_error": "0.1", "at_total": 900},
            {"relative_error": "0.2", "at_total": 500, "confidence": 0.6},
        ):
            yield f"{name} {goal}", told(lambda make=make, goal=goal: repr(make(**goal)))
    for rho in ("0.01", 1):
        for delta in ("1e-9", "0.01"):
            law = SelectionLaw.for_delta(rho=rho, delta=delta)
            yield f"selection {rho} {delta}", [float(law.sigma), float(law.threshold)]
            yield f"kept {rho} {delta}", [law.keep_probability(pieces) for pieces in (1, 2, 30)]
            yield f"deltas {rho} {delta}", [float(part) for step in law.deltas()[:40:5] for part in step]


def told(ask: Callable[..., Any], *given: Any, **named: Any) -> Any:
    """The answer, or the refusal."""
    try:
        return ask(*given, **named)
    except ParameterError as error:
        return str(error)


def key_of(entry: Entry) -> str:
    """Its place and name: two may have one name."""
    return f"mechanism {EVERY.index(entry)} {entry.name}"


def everything() -> dict[str, dict[str, Any]]:
    """All of it, by what it is about."""
    mechanisms = {key_of(entry): dict(of_mechanism(entry)) for entry in EVERY}
    policies = {f"policy {seed}": dict(of_policy(seed)) for seed in SEEDS}
    laws = {f"law {name}": dict(of_law(law)) for name, law in LAWS.items()}
    others = {name: dict(ask()) for name, ask in OTHERS.items()}
    return {**mechanisms, **policies, **laws, **others}


OTHERS = {"conversions": of_conversions, "groups": of_groups, "goals": of_goals, **kept_parts.OTHERS}


def rounded(value: Any) -> Any:
    """To ten digits."""
    if isinstance(value, dict):
        return {name: rounded(each) for name, each in value.items()}
    if isinstance(value, list):
        return [rounded(each) for each in value]
    return float(f"{value:.10g}") if isinstance(value, float) else value


def written(found: dict[str, dict[str, Any]]) -> str:
    return json.dumps(rounded(found), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    KEPT.write_text(written(everything()), encoding="utf-8")
