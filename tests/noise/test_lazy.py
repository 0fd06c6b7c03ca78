"""Decisions by lazily extended bits."""

from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx

from recordwise.exact.numbers import ball
from recordwise.noise.randomness import LazyUniform, uniform_below


class Scripted:
    """Hands out the given words, then fails: a test sees exactly how many were asked for."""

    def __init__(self, script):
        self.script = list(script)

    def fill(self, target):
        for i in range(target.size):
            target[i] = self.script.pop(0)


def expansion(value: Fraction, count: int) -> list[int]:
    """The first words of the binary expansion."""
    scaled = value.numerator * 2 ** (64 * count) // value.denominator
    return [scaled >> 64 * (count - 1 - i) & (2**64 - 1) for i in range(count)]


@pytest.mark.theorem("T-LAZY")
@pytest.mark.parametrize("agree", [0, 1, 2, 5])
@pytest.mark.parametrize("step, verdict", [(-1, True), (1, False)])
def test_a_uniform_that_agrees_with_the_bound_for_many_words_is_decided_by_the_first_that_differs(agree, step, verdict):
    bound = Fraction(1, 3)
    script = expansion(bound, agree + 1)
    script[-1] += step
    source = Scripted(script)
    assert LazyUniform(source).below(lambda: ball(bound)) is verdict
    assert source.script == []


@pytest.mark.theorem("T-LAZY")
def test_the_verdict_is_right_however_slowly_the_enclosure_narrows():
    bound = Fraction(5, 7)
    for step, verdict in [(-1, True), (1, False)]:
        script = expansion(bound, 40)
        script[1] += step
        crude = lambda: ball(bound) + arb(0, 1) * arb(2) ** (-ctx.prec // 16)  # noqa: E731
        assert LazyUniform(Scripted(script)).below(crude) is verdict


@pytest.mark.theorem("T-LAZY")
def test_leading_bits_handed_over_count_and_no_word_is_drawn_where_they_settle_it():
    for bits, verdict in [(2, True), (3, False)]:
        assert LazyUniform(Scripted([]), bits=bits, count=2).below(lambda: arb("0.75")) is verdict


def test_a_uniform_integer_takes_the_leading_bits_of_as_few_words_as_it_needs():
    assert uniform_below(Scripted([]), 0) == 0
    assert uniform_below(Scripted([7 << 61]), 3) == 7
    assert uniform_below(Scripted([5, 9]), 128) == 9 << 64 | 5
    assert np.iinfo(np.int64).max >= uniform_below(Scripted([2**64 - 1]), 63)
