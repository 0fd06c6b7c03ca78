"""Arb's precision belongs to the process: threads take turns with it, and no result depends on what another thread set it to."""

import functools
import gc
import json
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from flint import arb_series, ctx

import recordwise as rw
from recordwise.exact.functions import log, x
from recordwise.exact.numbers import working_length, working_precision
from recordwise.noise import DiscreteGaussian, Seeded
from recordwise.policy.evaluate.javascript import policy_javascript
from recordwise.policy.evaluate.sql import terms_sql

SOURCE = Path(__file__).parents[1] / "src" / "recordwise"
TOTALS = np.array([0, 1, 7, 10**3, 10**6], dtype=np.int64)
MADE = {
    "laplace": lambda: rw.GeneralizedGaussian(shape=1, scale=3),
    "additive": lambda: rw.mechanisms.Additive((x / 5) ** 0.5 + log(x / 10 + 1)),
    "log": lambda: rw.LogTransform(offset="7/3", sigma="0.2"),
    "root": lambda: rw.RootTransform(degree=3, offset="1/3", laplace_scale="0.2"),
    "transform": lambda: rw.mechanisms.Transform(x**0.4, x**2.5, offset=10, laplace_scale="0.1"),
}


def forget_results() -> None:
    for each in gc.get_objects():
        if isinstance(each, functools._lru_cache_wrapper) and str(each.__module__).startswith("recordwise."):
            each.cache_clear()


def everything(mechanism) -> list[str]:
    """What is published, charged and shown of a mechanism."""
    policy = mechanism.policy("emp")
    noisy = mechanism.release(TOTALS, rng=Seeded(5))
    estimates = mechanism.estimate(noisy, confidence=0.95)
    numbers = [getattr(estimates, name).tolist() for name in ("value", "standard_error", "low", "high")]
    losses = [policy.loss({"emp": size}) for size in (1, 50, 10**9)]
    law = DiscreteGaussian(3)
    tails = [law.pmf(2), law.sf_upper(9), law.sf_lower(9), law.quantile("0.975")]
    texts = [json.dumps(policy.to_json()), policy_javascript(policy), terms_sql(policy.rho, "duckdb").sql()]
    return [*map(repr, [noisy.points.tolist(), numbers, losses, tails]), *texts]


@pytest.mark.parametrize("name", MADE)
@pytest.mark.costly
def test_no_result_depends_on_the_precision_another_thread_happens_to_use(name: str) -> None:
    """Outside its own contexts the code sees whatever precision is in force; the coarsest is the default of 53 bits."""
    found = []
    for bits in (53, 700):
        forget_results()
        with ctx.workprec(bits):
            found.append(everything(MADE[name]()))
    assert found[0] == found[1]


def test_a_thread_keeps_its_precision_while_another_wants_one() -> None:
    entered, leave = threading.Event(), threading.Event()

    def other() -> int:
        with working_precision(99):
            entered.set()
            leave.wait(10)
            return int(ctx.prec)

    with ThreadPoolExecutor(1) as pool:
        with working_precision(300):
            waiting = pool.submit(other)
            assert not entered.wait(0.2)
            assert ctx.prec == 300
            leave.set()
        assert waiting.result(10) == 99
    assert ctx.prec == 53


def test_a_thread_keeps_the_length_of_its_series() -> None:
    entered = threading.Event()

    def other() -> None:
        with working_length(2):
            entered.set()

    with ThreadPoolExecutor(1) as pool:
        with working_length(30):
            waiting = pool.submit(other)
            assert not entered.wait(0.2)
            assert (1 / arb_series([1, 1])).length() == 30
        waiting.result(10)
    assert ctx.cap == 10


def test_nothing_else_sets_what_belongs_to_the_process() -> None:
    setting = re.compile(r"ctx\.(workprec|workdps|extraprec)|ctx\.(prec|cap|dps|unicode)\s*=|, ctx\.(prec|cap|dps) =")
    users = [path.name for path in SOURCE.rglob("*.py") if setting.search(path.read_text())]
    assert users == ["numbers.py"]
