"""What the parts behind mechanisms tell, with steps other than 1, offsets, both signs and two draws (``kept_numbers``)."""

import time
from collections.abc import Iterator
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa

import recordwise as rw
from build import employers, keys
from policy.several_measures import FOUR
from policy.test_comparisons import random_comparison
from recordwise.exact.functions import log, x
from recordwise.exact.numbers import ball, working_precision
from recordwise.mechanisms.accuracy import lattice_cdf
from recordwise.mechanisms.base import Noisy
from recordwise.mechanisms.certified_loss import Nodes, certified_losses, less_beyond
from recordwise.mechanisms.combined import Refined, averaged_reach
from recordwise.mechanisms.inference import ValueNumber, ValuePolicy, joint_loss, joint_reach
from recordwise.mechanisms.inverses import (
    ExponentialInverse,
    FunctionInverse,
    PolynomialInverse,
    laplace_mean,
    laplace_unbiased,
)
from recordwise.mechanisms.key_selection import SelectionLaw, truncated_deviations, truncated_intervals
from recordwise.mechanisms.quantile import Grid, TreeQuantile, excess_variance, reaches
from recordwise.noise import GeneralizedGaussian, Seeded
from recordwise.policy import Measure, Policy, additive, gaussian_sum, gaussian_transform, pieces, split
from recordwise.policy.dominance import shares
from recordwise.policy.dominance.boxes import exact_bound
from recordwise.policy.dominance.curves import atom_growth, curve, openings, supremum
from recordwise.policy.evaluate.numpy import PRECISION

INVERSES: dict[str, Any] = {
    "square": PolynomialInverse((0.0, 0.0, 1.0)),
    "cubic": PolynomialInverse((0.0, 2.0, 0.5, 1.5)),
    "sixth": PolynomialInverse((0.0,) * 6 + (1.0,)),
    "exponential": ExponentialInverse(),
    "function": FunctionInverse((x + 2) ** "5/2"),
}
QUARTERS = Measure("pay", Fraction(1, 4), signed=True)


def numbers(values: Any) -> list[float]:
    return [float(value) for value in np.asarray(values, np.float64).ravel()]


def of_inverses() -> Iterator[tuple[str, Any]]:
    """Estimates and their variances, near total 0 and far from it."""
    points = np.array([0.75, 0.9, 1.4, 2.6, 3.7])
    for name, inverse in INVERSES.items():
        yield f"{name}, monotone", numbers(inverse.monotone(np.append(points, -points)))
        yield f"{name}, stencil", [value for part in inverse.stencil(points, 0.02) for value in numbers(part)]
        yield f"{name}, rise", inverse.rise(0.7, 0.3)
        if name != "function":
            for part in ("mean", "variance", "variance_unbiased", "deviation"):
                yield f"{name}, {part}", numbers(getattr(inverse, f"gaussian_{part}")(points, 0.4))
        many = np.concatenate([np.linspace(0.7, 3.0, 300), [9.0]])
        for held in (points, many):
            variance = inverse.laplace_variance(held.copy(), 0.7, 0.2)
            yield f"{name}, variance of {len(held)}", numbers(variance[:: 1 + len(held) // 10])
        mean, spread = laplace_mean(inverse, np.append(points, [0.7, 0.1]), zero=0.7, h=0.05, scale=0.2)
        yield f"{name}, laplace mean", [*numbers(mean), *numbers(spread)]
        found = laplace_unbiased(inverse.monotone, np.append(points, [0.7, 0.1]), zero=0.7, scale=0.2)
        yield f"{name}, laplace unbiased", numbers(found)
    yield "infinite", numbers(ExponentialInverse().laplace_variance(points, 0.7, 0.5))
    yield "lattice", numbers(lattice_cdf(np.array([-30.0, -2.0, 0.0, 1.0, 40.0]), 1.7))


def of_two_draws() -> Iterator[tuple[str, Any]]:
    """Answers that were refined, and mechanisms by group."""
    sizes = np.array([0.5, 3.0, 40.25, 1000.0])
    for name, first, second in (
        ("coarse", rw.Gaussian(sigma="0.6"), rw.Gaussian(sigma="0.9")),
        ("fine", rw.Gaussian(sigma=3000), rw.Gaussian(sigma=1000)),
        ("split", rw.UnitSplit(at=5, rho="0.1"), rw.UnitSplit(at=5, rho="0.3")),
        ("log", rw.LogTransform(offset=3, sigma="0.2"), rw.LogTransform(offset=3, sigma="0.3")),
    ):
        made = Refined(before=first, more=second)
        again = Refined(before=made, more=second)
        noisy = again.release(np.array([0, 4, 900]), step="1/4", rng=Seeded(5))
        yield f"{name}, values", numbers(noisy.values())
        for confidence in (0.6, 0.95):
            found = again.estimate(noisy, confidence=confidence)
            for part in ("value", "standard_error", "variance_unbiased", "low", "high"):
                yield f"{name}, {part} at {confidence}", numbers(getattr(found, part))
        below = Noisy(
            points=-noisy.points, grid=noisy.grid, step=noisy.step, private=noisy.private, combined=-noisy.values()
        )
        if name != "log":
            found = again.estimate(below, confidence=0.9)
            yield f"{name}, below 0", [*numbers(found.low), *numbers(found.high)]
            law, lattice = again.drawn_law("1/4")
            yield f"{name}, law", [law.variance, float(lattice), *numbers(law.draw(5, Seeded(6)).values)]
        yield f"{name}, variance", [*numbers(again.variance(sizes, step="1/4")), *numbers(made.variance(sizes))]
        yield f"{name}, bias", [*numbers(again.bias(sizes, step="1/4")), *numbers(made.bias(sizes))]
        yield f"{name}, shift", [again.loss_at_shift(3, step="1/4"), made.loss_at_shift(3)]
        yield f"{name}, realized", [again.realized_loss(7, 3, step="1/4"), made.realized_loss(7, 3)]
        yield f"{name}, sigma", [float(each or 0) for each in (again.sigma, again.noise_sigma, again.noise_scale)]
        yield f"{name}, weight", [float(made.weight), float(again.weight), float(again.shared(Fraction(1, 3)).sigma)]
        yield f"{name}, losses", numbers([again.policy("emp").loss({"emp": size}) for size in (1, 5, 60)])
        yield f"{name}, count", float(again.policy_of_count().loss({}))
        traits = (again.loss_of_sum, again.variance_varies, again.logarithmic, again.signed, again.to, again.at)
        yield f"{name}, traits", str(traits)
    for draws in (((0.4, 0.5), (0.9, 0.5)), ((3.0, 0.2), (1.5, 0.8)), ((5000.0, 0.3), (2.0, 0.7))):
        yield f"reach of {draws}", [averaged_reach(draws, confidence) for confidence in (0.5, 0.9, 0.999)]
    values = {"11": rw.Gaussian(sigma=5), "22": rw.Gaussian(sigma=9)}
    records = [{"emp": size, "naics": code} for size in (1, 30) for code in ("111", "221", "331")]
    for default in (None, rw.Gaussian(sigma=2)):
        grouped = rw.ByGroup("naics", values, default=default, length=2)
        for told in (grouped, grouped.shared(Fraction(1, 2)), grouped.with_amount(Fraction(7))):
            known = [each for each in records if default is not None or each["naics"] != "331"]
            yield f"{told!r}", numbers([told.policy("emp").loss(record) for record in known])
            yield f"{told!r}, count", numbers([told.policy_of_count().loss(record) for record in known])
            yield f"{told!r}, groups", str(told.group_numbers)


def of_windows() -> Iterator[tuple[str, Any]]:
    """How closely a value can be told."""
    plain, quarter = Measure("emp"), Fraction(1, 4)
    made = {
        "gaussian": {"measure": plain, "lattice": Fraction(1), "sigma": Fraction(4)},
        "narrow": {"measure": plain, "lattice": Fraction(1), "sigma": Fraction(1, 3)},
        "quarters": {"measure": QUARTERS, "lattice": quarter, "sigma": Fraction(5)},
        "clamped": {"measure": plain, "lattice": Fraction(1), "sigma": Fraction(4), "clamp": Fraction(20)},
        "heavy": {"measure": plain, "lattice": Fraction(1), "exponent": (x / 2 + 1) ** "1/2"},
        "log": {"measure": plain, "lattice": Fraction(1, 100), "sigma": Fraction(1, 5), "transform": log(x + 3)},
    }
    for name, how in made.items():
        number = ValueNumber(part=0, **how)  # type: ignore[arg-type]
        column = number.measure.name
        own = ValuePolicy(numbers=(number,), bounds={column: Fraction(10**5)})
        for value in (3, 24):
            for confidence in (0.7, 0.95):
                found = own.window({column: value}, column, confidence=confidence)
                ends = [found.low, found.high or -1, found.reach or -1, found.step, found.least]
                yield f"{name} at {value} and {confidence}", numbers(ends)
            found = own.window({column: value}, column, prior=(value - 2, value + 1))
            yield f"{name} at {value} within", numbers([found.low, found.high or -1])
            told = own.loss({column: value}, {column: value + 5})
            yield f"{name} from {value}", [told.epsilon(1e-3), told.power(), *numbers(told.delta_at([0.0, 1.0]))]
        yield f"{name}, reach", [number.reach(0.9), float(number.weight()), float(number.is_fine())]
        yield f"{name}, joint reach", [joint_reach((number, number), confidence) for confidence in (0.7, 0.95)]
        yield f"{name}, joint", joint_loss([(number, 3.0), (number, 2.0)]).epsilon(1e-3)
        again = ValuePolicy.from_json(own.to_json())
        yield f"{name}, saved", [float(again.window({column: 24}, column).high or -1), *own.reaches(column).single]


def of_quantiles() -> Iterator[tuple[str, Any]]:
    """Grids, their bins, and quantiles from noisy trees."""
    grids = [Grid.linear(3, 40, bits=3), Grid.log("0.5", 900, bits=4), Grid.log(1, 1000), Grid.linear(0, 7, bits=2)]
    for grid in grids:
        for step in (Fraction(1), Fraction(1, 4), Fraction(5, 2)):
            try:
                points = grid.steps(step)
            except rw.RecordwiseError as error:
                yield f"{grid!r} in {step}", str(error)
                continue
            values = np.array([0, points[0], points[0] + 1, points[1] - 1, points[1], points[-1], points[-1] + 9])
            yield f"{grid!r} in {step}", numbers(points[:: 1 + len(points) // 16])
            yield f"{grid!r} bins in {step}", numbers(grid.bins(values, step))
    made = TreeQuantile(grid=grids[0], rho=Fraction(1, 5))
    leaves = np.random.default_rng(4).integers(0, 60, (5, made.grid.size))
    leaves[0] = 0
    noisy = made.release(leaves, rng=Seeded(8))
    yield "leaves", numbers(noisy.leaves)
    for p in (0.1, 0.5, 0.8):
        for confidence in (0.6, 0.95):
            found = made.estimate(noisy, p=p, confidence=confidence)
            for part in ("value", "low", "high", "spread_low", "spread_high"):
                yield f"{part} of {p} at {confidence}", numbers(getattr(found, part))
        yield f"variance of {p}", numbers(excess_variance(3, p))
        yield f"reaches of {p}", numbers(reaches(3, p, Fraction(3, 2), 0.9))


PARTS: tuple[Policy, ...] = (
    gaussian_sum(FOUR[1], sigma=3),
    split(1, {FOUR[1]: 5}),
    split(1, {FOUR[1]: Fraction(1, 10)}),
    pieces(1, {FOUR[1]: 5}),
    additive(FOUR[1], log(x + 1), bound="pure"),
    additive(FOUR[1], (x + 2) ** "1/2", bound="tanh"),
    gaussian_transform(FOUR[1], log(x + 3), sigma=2, grid="0.01"),
)


def of_curves() -> Iterator[tuple[str, Any]]:
    """Bounds behind a comparison of policies."""
    with working_precision(PRECISION):
        for number, part in enumerate(PARTS):
            ((_, atom),) = part.rho
            drawn = curve(FOUR[1], atom)
            for first, last in ((0, 0), (0, 7), (1, 2), (3, 400), (49, 52), (50, 51), (10**6, 10**9)):
                yield f"{number}, lines from {first} to {last}", numbers(drawn.lines(first, last))
                yield f"{number}, at {first}", numbers(drawn.bounds(first))
            for start in (1, 50, 10**4):
                found = atom_growth(atom, ball(Fraction(start)))
                told = [] if found is None else [found.power, found.log, found.lower.lower(), found.upper.upper()]
                yield f"{number}, growth from {start}", [float(each) for each in told]
            for other in PARTS[:number]:
                ((_, against),) = other.rho
                net = {atom: Fraction(1), against: Fraction(-1, 3)}
                for span in ((0, None), (7, 3000)):
                    most = supremum(net, FOUR[1], span, enough=None, deadline=time.thread_time() + 60)
                    upper = "none" if most.upper is None else float(most.upper)
                    yield f"{number} less {PARTS.index(other)} in {span}", [upper, float(most.steps)]
        rng = Random(17)
        for number in range(6):
            problem = random_comparison(rng)
            ends = {measure: (span[0] + 2, span[0] + 40) for measure, span in problem.spans.items()}
            yield f"comparison {number}, bound", float(exact_bound(problem, ends))
            for place, gains in enumerate(openings(problem.gains, problem.spans)):
                bound = shares.bound_by_shares(problem, gains, time.thread_time() + 60)
                reach = {measure.name: end for measure, end in (bound.reach or {}).items()}
                yield f"comparison {number}, opening {place}", f"{bound.certain} {sorted(reach.items())}"


def of_certificates() -> Iterator[tuple[str, Any]]:
    """Losses of fat-tailed noise, node by node, and counts above a threshold."""
    law = GeneralizedGaussian(shape="1/2", scale=8)
    for ratio in (1.02, 1.3):
        nodes = Nodes.of(law, law.exponent, ratio=ratio)
        yield f"losses at {ratio}", numbers(certified_losses(nodes, law.exponent, [1, 2, 5, 40, 3000]))
        yield f"beyond at {ratio}", [float(less_beyond(nodes, law.exponent, shift) or -1) for shift in (40, 3000)]
        yield f"nodes at {ratio}", [*numbers(nodes.mass[:8]), *numbers(nodes.later[:8])]
    for sigma in (Fraction(1, 2), Fraction(5)):
        chosen = SelectionLaw(sigma=sigma, threshold=20)
        noisy = np.array([20, 21, 25, 40, 90])
        for least in (0, 1):
            for confidence in (0.6, 0.95):
                found = truncated_intervals(chosen, noisy, confidence=confidence, least=least)
                yield f"interval of {sigma}, {least}, {confidence}", [v for end in found for v in numbers(end)]
            yield f"deviations of {sigma}, {least}", numbers(truncated_deviations(chosen, noisy, least=least))
        told = chosen.group_loss([1, 3, 30])
        yield f"group of {sigma}", [told.rho, told.delta]


def of_releases() -> Iterator[tuple[str, Any]]:
    """Every column of releases in quarters, signed, by level and by condition."""
    chance = np.random.default_rng(12)
    rows = 90
    table = pa.table(
        {
            "id": np.arange(rows),
            "firm": chance.integers(0, 30, rows),
            "county": chance.choice(["01", "02", "03"], rows),
            "naics": chance.choice(["111", "112", "221"], rows),
            "emp": chance.integers(0, 80, rows),
            "pay": chance.integers(-400, 900, rows) / 4,
        }
    )
    pay = rw.plan.Measure.of("pay", step="1/4", signed=True)
    with employers(
        table, "county", "naics", firm="firm", measures={"emp": 1, "pay": pay}, max_outside="accept"
    ) as session:
        areas = rw.query().group_by("county", "naics", keys=keys())
        sums = areas.count(rw.Gaussian(sigma=2)).sum("emp", rw.UnitSplit(at=9, rho="0.2"))
        codes = rw.Keys.of({"naics": ["111", "112", "221"]})
        asked = {
            "sums": sums.sum("pay", rw.Gaussian(sigma=7)).combine("pay - 2 * emp", alias="rest").ratio("emp", "count"),
            "averages": areas.avg("emp", sum=rw.Gaussian(sigma=3), count=rw.Gaussian(sigma=2)),
            "transformed": areas.where("pay > 2.5")
            .count(rw.Gaussian(sigma=1))
            .sum("emp", rw.RootTransform(degree=2, sigma=1)),
            "firms": areas.where("emp > 5").count_distinct("firm", rw.Gaussian(sigma=2)),
            "quantiles": areas.quantile("emp", p="0.3", grid=Grid.linear(0, 80, bits=4), rho="0.3"),
            "levels": rw.query()
            .levels(rw.prefix("naics", [1, 2, 3]), keys=codes)
            .sum("emp", rw.LogTransform(offset=4, sigma="0.3"))
            .with_shares("1/2", "1/3", "1/6")
            .with_median("sum_emp"),
        }
        for name, query in asked.items():
            release = session.run(query, rng=Seeded(31), confidence=0.9)
            for each in release.tables:
                for column in each.data.column_names:
                    held = each.data.column(column).to_pylist()
                    told = [
                        value if isinstance(value, str) else float("nan") if value is None else float(value)
                        for value in held
                    ]
                    yield f"{name}, {each.name}, {column}", told


OTHERS = {
    "inverses": of_inverses,
    "two draws": of_two_draws,
    "windows": of_windows,
    "quantiles": of_quantiles,
    "curves": of_curves,
    "certificates": of_certificates,
    "releases": of_releases,
}
