"""The mechanisms of [F] at variance 2 (transformations: at a total of 2), and ours beside them.

The slides compare six mechanisms: an additive and a transformation mechanism for each of three orders of growth. They fix the
variance and name the kinds; the shape 1/2, the power 2 and the fourth root follow from the orders, while the rate and offset of the
polylogarithmic noise and the offset of the logarithm are ours.
"""

import math
from dataclasses import dataclass
from functools import cache

import recordwise as rw
from recordwise.mechanisms import Mechanism
from recordwise.policy import Policy

SOURCE = "[F] Finley et al., slides on Slowly Scaling Per-Record Differential Privacy (2024)"
MEASURE = "emp"
VARIANCE = 2
AT_TOTAL = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One mechanism with one of its policies."""

    key: str
    label: str
    order: str
    kind: str
    mechanism: Mechanism
    policy: Policy
    ours: bool
    """Whether it is our addition to the slides' six."""


def additive(key: str, label: str, order: str, mechanism: Mechanism, *, tight: bool = False) -> Entry:
    """The paper's policy of additive noise, or our certified tight one for the same noise."""
    policy = mechanism.policy(MEASURE, tight=tight)  # type: ignore[call-arg]
    return Entry(key=key, label=label, order=order, kind="additive", mechanism=mechanism, policy=policy, ours=tight)


def transformation(key: str, label: str, order: str, mechanism: Mechanism, *, ours: bool = False) -> Entry:
    policy = mechanism.policy(MEASURE)
    return Entry(
        key=key, label=label, order=order, kind="transformation", mechanism=mechanism, policy=policy, ours=ours
    )


@cache
def entries() -> tuple[Entry, ...]:
    """The slides' six, then our additions."""
    gaussian = rw.Gaussian(variance=VARIANCE)
    general = rw.GeneralizedGaussian(shape=0.5, variance=VARIANCE)
    polylog = rw.Polylog(power=2, rate=1, offset=math.e, variance=VARIANCE)
    goal = {"variance": VARIANCE, "at_total": AT_TOTAL}
    laplace = goal | {"noise": "laplace"}
    root, log = "square root", "squared logarithm"
    return (
        Entry(
            key="gaussian",
            label="Gaussian noise",
            order="square",
            kind="additive",
            mechanism=gaussian,
            policy=gaussian.policy(MEASURE),
            ours=False,
        ),
        transformation("identity", "identity transform", "square", rw.RootTransform(degree=1, **goal)),
        additive("general", "generalized Gaussian, shape 1/2", root, general),
        transformation("root", "4th root", root, rw.RootTransform(degree=4, **goal)),
        additive("polylog", "exponential polylog, power 2", log, polylog),
        transformation("log", "log, offset 1", log, rw.LogTransform(offset=1, **goal)),
        additive("general_tight", "generalized Gaussian, tight policy", root, general, tight=True),
        additive("polylog_tight", "exponential polylog, tight policy", log, polylog, tight=True),
        transformation(
            "root_offset", "4th root, offset 1", root, rw.RootTransform(degree=4, offset=1, **goal), ours=True
        ),
        transformation(
            "root_laplace",
            "4th root, offset 1, Laplace noise",
            "fourth root",
            rw.RootTransform(degree=4, offset=1, **laplace),
            ours=True,
        ),
        transformation(
            "log_laplace", "log, offset 1, Laplace noise", "logarithm", rw.LogTransform(offset=1, **laplace), ours=True
        ),
    )


def entry(key: str) -> Entry:
    return next(each for each in entries() if each.key == key)
