"""What mechanisms, policies and conversions tell, number by number, as it was kept.

``PYTHONPATH=tests python tests/mechanisms/kept_numbers.py`` writes them. They are checked against theory elsewhere, each within a
tolerance and many at whole steps only. Kept to ten digits, they also tell when a small change of the code moves one by less; what
changed is then read in the difference of the file.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from mechanism_catalogue import EVERY, TOTALS, Entry

from random_policies import random_policy, random_record
from recordwise.noise import Seeded
from recordwise.policy import meaning
from recordwise.policy.loss_law import PrivacyLoss, Shift
from recordwise.policy.meaning import (
    expected_log_odds,
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
RHOS = (1e-6, 0.01, 0.3, 1.0, 2.5, 40.0)
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
        for name in ("value", "standard_error", "low", "high"):
            yield f"{name} at {confidence}", numbers(getattr(found, name))
    sizes = np.array([float(step) * size for size in SIZES])
    yield "variance", numbers(made.variance(sizes, step=step))
    yield "bias", numbers(made.bias(sizes, step=step))
    yield "loss at a shift", [float(made.loss_at_shift(step * size, step=step)) for size in (1, 5, 60)]
    yield "realized loss", [float(made.realized_loss(step * 20, step * size, step=step)) for size in (1, 5, 60)]


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
        yield f"epsilon of {rho}", [meaning.epsilon(rho, delta) for delta in DELTAS]
        yield f"gdp epsilon of {rho}", [meaning.gdp_epsilon_of(rho, delta) for delta in DELTAS]
        yield f"delta of {rho}", [meaning.delta_at(rho, target) for target in (0.01, 1.0, 5.0)]
        yield f"meaning of {rho}", [expected_log_odds(rho), likely_log_odds(rho)]
        yield f"tail of {rho}", [log_odds_tail(rho, gain) for gain in (0.1, 1.0, 4.0)]
        powers = (power_gaussian, power_zcdp)
        yield f"power of {rho}", [power(rho, alarm) for power in powers for alarm in (0.01, 0.05, 0.3)]
        yield f"power beside a delta of {rho}", [power_beside_delta(rho, delta) for delta in DELTAS[1:]]
        yield f"pure {rho}", meaning.pure_to_zcdp(rho)
        yield f"rho for {rho}", [meaning.rho_for_epsilon(rho, delta) for delta in DELTAS]
    for scale in (1, 3, "0.4"):
        yield f"laplace {scale}", [meaning.discrete_laplace_zcdp(scale, shift) for shift in (1, 2, 9)]
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


def key_of(entry: Entry) -> str:
    """Its place and name: two may have one name."""
    return f"mechanism {EVERY.index(entry)} {entry.name}"


def everything() -> dict[str, dict[str, Any]]:
    """All of it, by what it is about."""
    mechanisms = {key_of(entry): dict(of_mechanism(entry)) for entry in EVERY}
    policies = {f"policy {seed}": dict(of_policy(seed)) for seed in SEEDS}
    return {**mechanisms, **policies, "conversions": dict(of_conversions())}


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
