"""Errata of [S] Seeman et al., Privately Answering Queries on Skewed Data via Per-Record Differential Privacy."""

import math

import numpy as np
import pyarrow as pa
from scipy import optimize, stats

import recordwise as rw
from experiments.errata.evidence import Evidence
from recordwise.policy import constant, group_loss, replacement_loss


def lemma_7() -> Evidence:
    """Gaussian noise on the sum: sigma = T/sqrt(2 rho), so that a record of m thresholds costs (m T)^2/(2 sigma^2) exactly."""
    true = float(rw.UnitSplit(at=1, rho="0.1").policy("emp").loss({"emp": 3}))
    printed = (0.1 * 3) ** 2
    return Evidence(
        name="lemma-7",
        source="[S]",
        printed="a rho-zCDP mechanism on m split rows costs (rho m)^2",
        shown=f"rho = 1/10, m = 3: the print gives {printed:.2f}, the Gaussian sum loses {true:.2f}",
        holds=true > printed and math.isclose(true, 0.9),
        correction="rho m^2 (T-SPLIT).",
    )


def lemma_6() -> Evidence:
    """x and -x in one cell of a signed sum: two normal laws 2x apart."""
    one = 0.5
    apart = 2 * 1.0
    true = apart**2 / 2
    bound = replacement_loss(constant(one), {}, {})
    return Evidence(
        name="lemma-6",
        source="[S]",
        printed="replacing a record costs 2 rho where adding or removing one costs rho",
        shown=f"rho = {one}, records 1 and -1: N(1,1) and N(-1,1) diverge by {true:.1f} per order, 2 rho is {2 * one:.1f}",
        holds=true > 2 * one and math.isclose(bound, 4 * one) and true <= bound,
        correction=f"Up to 4 rho = {bound:.1f} (T-REPLACE); none at all if the other record is unprotected.",
    )


LOSSES = (6.65, 0.29, 0.25, 0.08)


def lemma_4() -> Evidence:
    simple, advanced, tight = (group_loss(LOSSES, bound=bound) for bound in ("simple", "advanced", "tight"))
    return Evidence(
        name="lemma-4",
        source="[S]",
        printed="Lemma 4 is the tightest bound for a group that ignores the order of the records",
        shown=f"losses 6.65, .29, .25, .08: Lemma 4 {simple:.2f}, Lemma 5 {advanced:.4f}, (sum of roots)^2 {tight:.4f}",
        holds=tight < advanced < simple,
        correction="(sum of roots)^2 ignores the order and is never above either (T-GROUP).",
    )


def lemma_5() -> Evidence:
    """k/(k-1) P1 + k^2/(k-1) P2 at P1 = P2 = 1, minimized over k."""
    found = optimize.minimize_scalar(lambda k: (k + k * k) / (k - 1), bounds=(1.01, 20), method="bounded")
    advanced, tight = group_loss((1.0, 1.0), bound="advanced"), group_loss((1.0, 1.0))
    return Evidence(
        name="lemma-5-example",
        source="[S]",
        printed="for two records Lemma 5 gives (sqrt P1 + sqrt P2)^2",
        shown=f"P1 = P2 = 1: the infimum is {found.fun:.4f} at k = {found.x:.4f} (ours {advanced:.4f}), not {tight:.0f}",
        holds=found.fun > tight + 1 and math.isclose(found.fun, advanced, rel_tol=1e-6),
        correction="The example does not follow from the lemma; it is true by T-GROUP.",
    )


def average() -> Evidence:
    table = pa.table({"id": [1], "emp": [100], "county": ["01"]})
    with rw.Session(table, unit="id", measures={"emp": 1}) as session:
        grouped = rw.query().group_by("county", keys=rw.Keys.product(county=["01"]))
        summed = session.policy_of(grouped.sum("emp", rw.UnitSplit(at=50, rho="0.1"))).loss({"emp": 100})
        asked = grouped.avg("emp", sum=rw.UnitSplit(at=50, rho="0.1"), count=rw.Gaussian(rho="0.05"))
        whole = session.policy_of(asked).loss({"emp": 100})
    return Evidence(
        name="average",
        source="[S]",
        printed="an average costs what its sum costs",
        shown=f"a record of two thresholds: sum {summed:.2f}, sum and count {whole:.2f}",
        holds=math.isclose(whole - summed, 0.05, rel_tol=1e-9),
        correction="The count is a second release and costs rho_count (T-SEQ).",
    )


def selection() -> Evidence:
    """The lattice tail of the noise that is drawn, at thresholds in use, beside the normal tail."""
    law, threshold = rw.noise.DiscreteGaussian(sigma=1), 8
    deltas = {pieces: float(law.sf_upper(threshold - pieces)) for pieces in (1, 2, 4, 8, 20)}
    ratio = float(law.sf_upper(6)) / float(stats.norm.sf(6))
    return Evidence(
        name="selection-delta",
        source="[S]",
        printed="selecting keys on split rows costs a rho only",
        shown="sigma 1, threshold 8, the chance that a lone record shows its key, by its pieces: "
        + ", ".join(f"{pieces}: {delta:.2g}" for pieces, delta in deltas.items())
        + f"; the normal tail at 6 is {ratio:.1f} times too small",
        holds=deltas[20] > 0.999 and deltas[1] > 0 and 6 < ratio < 7,
        correction="A delta(r) = P(Z >= tau - m) is to be published, summed from the lattice law; it tends to 1 for giants.",
    )


def clamped_variance() -> Evidence:
    def variance(clamp: int, rho: str) -> float:
        return float(rw.Clamped(to=clamp, rho=rho).variance(0.0))

    base, wider, stricter = variance(1000, "1"), variance(2000, "1"), variance(1000, "0.5")
    return Evidence(
        name="clamped-variance",
        source="[S]",
        printed="the variance of a clamped sum is of the order Delta/rho^2",
        shown=f"twice the clamp: {wider / base:.3f} times the variance; half of rho: {stricter / base:.3f} times",
        holds=math.isclose(wider / base, 4, rel_tol=1e-6) and math.isclose(stricter / base, 2, rel_tol=1e-6),
        correction="Delta^2/(2 rho): the order is Delta^2/rho.",
    )


def realized_name() -> Evidence:
    """The log-ratio of N(1,1) and N(0,1) at z is z - 1/2."""
    ratios = {z: z - 0.5 for z in (1, 10, 100)}
    return Evidence(
        name="realized-loss",
        source="[S]",
        printed="the realized loss is called a log-max divergence once",
        shown="N(1,1) against N(0,1): log-ratio "
        + ", ".join(f"{ratio:g} at {z}" for z, ratio in ratios.items())
        + ", without end; sup over orders of D_a/a is 0.5",
        holds=max(ratios.values()) > 50,
        correction="It is sup over orders of D_a/a: the max-divergence of Gaussian noise is infinite.",
    )


def pareto_mse(clamp: float, tail: float, rho: float, count: int) -> float:
    """Noise, bias and sampling variance of a clamped sum of Pareto(1, tail) values."""
    over = clamp ** (1 - tail) / (tail - 1)
    mean = tail / (tail - 1) - over
    square = tail / (2 - tail) * (clamp ** (2 - tail) - 1) + clamp ** (2 - tail)
    return clamp**2 / (2 * rho) + (count * over) ** 2 + count * (square - mean**2)


def figure_1() -> Evidence:
    found = {}
    for tail in (1.2, 1.5, 1.8):
        best = optimize.minimize_scalar(
            lambda log, t=tail: pareto_mse(math.exp(log), t, 1.0, 1000), bounds=(0.1, 20), method="bounded"
        )
        total = 1000 * tail / (tail - 1)
        found[tail] = (best.fun / total, math.sqrt(best.fun) / total)
    return Evidence(
        name="figure-1",
        source="[S]",
        printed="the mean squared error over the expected sum, read as a relative error",
        shown="n = 1000, rho = 1, at the best clamp, MSE/E and RMSE/E: "
        + ", ".join(f"tail {tail}: {mse:.3g} and {rmse:.2f}" for tail, (mse, rmse) in found.items()),
        holds=bool(np.allclose([rmse for _, rmse in found.values()], [0.26, 0.09, 0.05], atol=0.005)),
        correction="The ratio without units is RMSE/E: .26, .09 and .05.",
    )


SHOWN = (
    lemma_7,
    lemma_6,
    lemma_4,
    lemma_5,
    average,
    selection,
    clamped_variance,
    realized_name,
    figure_1,
)
