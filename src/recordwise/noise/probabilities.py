"""Probabilities and moments of a lattice law as Arb balls, far tails included (T-SUM)."""

import math
from collections.abc import Iterable
from functools import lru_cache

from flint import arb

from recordwise.arithmetic import BallArithmetic
from recordwise.exact import bits_in_force, working_precision
from recordwise.functions import Function
from recordwise.noise.growth import log_slope_limit
from recordwise.noise.sums import range_sum, tail_sum

BITS = 80
GUARD = 64


def drop(exponent: Function, start: int, end: int) -> arb:
    """f(start) - f(end), with about as many correct bits as the precision in force."""
    with working_precision(bits_in_force() + GUARD):
        return exponent.value(BallArithmetic(), arb(start)) - exponent.value(BallArithmetic(), arb(end))


@lru_cache(maxsize=256)
def normaliser(exponent: Function, *, bits: int = BITS) -> arb:
    """The sum of exp(f(0) - f(|k|)) over all integers."""
    with working_precision(bits + GUARD):
        return 1 + 2 * drop(exponent, 0, 1).exp() * tail_sum(exponent, 1, bits=bits)


@lru_cache(maxsize=4096)
def log_tail(exponent: Function, start: int, *, bits: int = BITS) -> arb:
    """ln P(Z >= start) for start >= 1."""
    with working_precision(bits + GUARD):
        return (
            drop(exponent, 0, start)
            + tail_sum(exponent, start, bits=bits).log()
            - normaliser(exponent, bits=bits).log()
        )


def log_tails(exponent: Function, starts: Iterable[int]) -> dict[int, arb]:
    """ln P(Z >= start) for many starts >= 1: each tail is a range and the next tail."""
    found: dict[int, arb] = {}
    with working_precision(BITS + GUARD):
        total = normaliser(exponent).log()
        above: tuple[int, arb] | None = None
        for start in sorted(set(starts), reverse=True):
            if above is None:
                relative = tail_sum(exponent, start)
            else:
                relative = range_sum(exponent, start, above[0]) + drop(exponent, start, above[0]).exp() * above[1]
            above = (start, relative)
            found[start] = drop(exponent, 0, start) + relative.log() - total
    return found


def tail(exponent: Function, start: int, *, bits: int = BITS) -> arb:
    """P(Z >= start) for any integer start, with relative accuracy."""
    with working_precision(bits + GUARD):
        if start >= 1:
            return log_tail(exponent, start, bits=bits).exp()
        return -log_tail(exponent, 1 - start, bits=bits).expm1()


def absolute_moment(exponent: Function, power: int) -> arb:
    """E |Z|**power, infinite where it is not certified finite."""
    if log_slope_limit(exponent) <= power + 1:
        return arb.pos_inf()
    with working_precision(BITS + GUARD):
        return 2 * drop(exponent, 0, 1).exp() * tail_sum(exponent, 1, moment=power) / normaliser(exponent)


def last_at_least(exponent: Function, probability: arb, *, first: int = 0) -> int:
    """The largest m >= 0 with P(Z >= m) >= probability, for a probability of at most a half: Newton on the log of the tail."""
    low, high, guess = first, -1, first + 1
    wanted = probability.log()
    while high - low != 1:
        gap = log_tail(exponent, guess) - wanted
        low, high = (guess, high) if surely_positive(gap) else (low, guess)
        jump = guess + math.floor(float((gap * tail_sum(exponent, guess)).mid()))
        guess = max(low + 1, jump) if high < 0 else min(max(low + 1, jump), high - 1)
    return low


def surely_positive(value: arb) -> bool:
    """The sign of a real that is not zero."""
    if value > 0 or value < 0:
        return bool(value > 0)
    raise ArithmeticError("a probability was asked for that agrees with a tail of the law to 24 digits")
