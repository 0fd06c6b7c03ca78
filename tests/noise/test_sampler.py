"""The machinery of a draw: which path decides must never matter."""

from dataclasses import replace

import mpmath as mp
import numpy as np
import pytest
from flint import arb

from noise.statistics import distance, dkw_threshold, shares_up_to, tail_alarm
from noise.test_lazy import Scripted
from noise.test_table import acceptance, side_of, some_offsets
from recordwise.errors import ExtremeDrawError, ParameterError
from recordwise.exact.functions import log, x
from recordwise.exact.numbers import working_precision
from recordwise.noise import ConcaveLaw, DiscreteGaussian, DiscreteLaplace, LatticeLaw, Polylog, Seeded, sampler
from recordwise.noise import kernel as compiled
from recordwise.noise import sampler as fixed
from recordwise.noise.randomness import random_words
from recordwise.noise.sampler import (
    ONE,
    OPEN,
    Block,
    Draws,
    Table,
    assemble,
    certify_table,
    decide,
    draw,
    table_for,
    tail_share,
)


def slot_and_coin(table: Table, row: int) -> int:
    """The low half of a first word that picks the row."""
    for slot, entry in enumerate(table.slots.tolist()):
        if slot == row and entry >> 10 > 0:
            return slot
        if entry & 1023 == row and entry >> 10 < 1 << 22:
            return (1 << 22) - 1 << 10 | slot
    raise AssertionError(f"row {row} cannot be picked")


def pair(table: Table, row: int, uniform: int, offset: int, sign: int = 0):
    """The two words of an attempt at an offset of a row, with a given 32-bit uniform."""
    place = (offset - table.blocks[row].start) << 64 - table.blocks[row].shift if row < table.tail_row else 0
    return np.array([uniform << 32 | slot_and_coin(table, row), place | sign], dtype=np.uint64)


@pytest.mark.theorem("T-EXACT")
def test_the_compiled_and_the_plain_attempts_agree_word_for_word(law: LatticeLaw):
    table, stream = table_for(side_of(law)), random_words(Seeded(11), 2 * 100_000)
    for room in (100_000, 5000, 1):
        results = []
        for attempt in (fixed.attempt, compiled.attempt):
            out = np.empty(room, dtype=np.int64)
            count, undecided = attempt(table, stream, out)
            results.append((count, out[:count].tolist(), undecided.tolist()))
        assert results[0] == results[1]


@pytest.mark.theorem("T-ALIAS")
def test_the_coin_that_equals_a_threshold_picks_the_other_row_in_both_kernels(law: LatticeLaw):
    table = table_for(side_of(law))
    slots = np.flatnonzero(table.slots >> np.uint64(10)).astype(np.uint64)
    threshold, other = table.slots[slots] >> np.uint64(10), table.slots[slots] & np.uint64(1023)
    for coin, row in ((threshold - np.uint64(1), slots), (threshold, other)):
        stream = np.zeros(2 * len(slots), dtype=np.uint64)
        stream[0::2] = coin << np.uint64(10) | slots
        assert [fixed.pick_row(table, each) for each in stream[0::2].tolist()] == row.tolist()
        results = []
        for attempt in (fixed.attempt, compiled.attempt):
            out = np.empty(len(slots), dtype=np.int64)
            count, undecided = attempt(table, stream, out)
            results.append((count, out[:count].tolist(), undecided.tolist()))
        assert results[0] == results[1]


@pytest.mark.theorem("T-EXACT")
@pytest.mark.costly
@pytest.mark.sampled
def test_a_walk_over_the_decision_boundaries_is_decided_as_the_exact_law_says(law: LatticeLaw):
    table = table_for(side_of(law))
    for row in range(0, len(table.blocks), max(1, len(table.blocks) // 40)):
        lower, lower_fall, upper, upper_fall = (int(v) for v in table.lines[row])
        for offset in some_offsets(table.blocks[row])[::3]:
            place = (offset - table.blocks[row].start << 32) >> table.blocks[row].shift
            exact = acceptance(law, table, row, offset)
            edges = (
                int(table.quick[row]) >> 32,
                lower - (lower_fall * place >> 32),
                upper - (upper_fall * place >> 32),
                int(exact),
            )
            for uniform in {min(max(edge + step, 0), ONE - 1) for edge in edges for step in (-1, 0, 1)}:
                check_decision(table, pair(table, row, uniform, offset, sign=1), -offset, uniform, exact)


def check_decision(table: Table, attempt_words, value: int, uniform: int, exact: mp.mpf) -> None:
    """Kept if the whole cell of the uniform is below, refused if it is above, and where it straddles, by the next bits."""
    for attempt in (fixed.attempt, compiled.attempt):
        out = np.empty(1, dtype=np.int64)
        count, undecided = attempt(table, attempt_words, out)
        if count and not len(undecided):
            assert uniform + 1 <= exact
            assert out[0] == value
        elif not count:
            assert uniform >= exact
        else:
            inside = exact - uniform
            follow = int(mp.floor(inside * 2**64))
            for extra, verdict in [(max(follow - 5, 0), inside > 0), (min(follow + 5, 2**64 - 1), inside >= 1)]:
                kept = decide(table, attempt_words, value, Scripted([extra] * 3))
                assert kept == (value if verdict else None)


def unsettled(table: Table) -> Table:
    """The same table with lines that decide nothing."""
    return assemble(table.side, list(table.blocks), table.scale, list(table.weights), [OPEN] * len(table.blocks))


@pytest.mark.theorem("T-EXACT")
def test_forcing_arbitrary_precision_on_every_draw_gives_the_very_same_draws(law: LatticeLaw):
    table, size = table_for(side_of(law)), 2000
    forced = unsettled(table)
    count, undecided = fixed.attempt(forced, random_words(Seeded(5), 2 * size), np.empty(size, dtype=np.int64))
    assert len(undecided) == count > 0.99 * size * (1 - table.weights[-1] / 2**32)
    # The end differs: what is refused late is made up for from fresh words. Before it, order and values are the same.
    same = size - size // 20
    assert np.array_equal(draw(forced, size, Seeded(5)).values[:same], draw(table, size, Seeded(5)).values[:same])


@pytest.mark.theorem("T-EXACT")
def test_a_draw_within_a_draw_leaves_the_words_of_the_outer_one_alone(monkeypatch):
    table, real, seen = table_for(side_of(DiscreteGaussian(50))), decide, []

    def nested(table: Table, pair, value: int, source) -> int | None:
        before = pair.tolist()
        draw(table_for(side_of(DiscreteLaplace(50))), 500, Seeded(len(seen)))
        seen.append(pair.tolist() == before)
        return real(table, pair, value, source)

    draw(table, 500, Seeded(1))
    monkeypatch.setattr(sampler, "decide", nested)
    draw(unsettled(table), 300, Seeded(2))
    assert len(seen) >= 300
    assert all(seen)


@pytest.mark.theorem("T-EXACT")
@pytest.mark.parametrize("attempt", [fixed.attempt, compiled.attempt], ids=["plain", "compiled"])
@pytest.mark.costly
def test_a_table_cut_so_short_that_a_fifth_lies_in_its_tail_draws_the_same_law(attempt, monkeypatch):
    monkeypatch.setattr(sampler, "attempt_for", lambda size: attempt)
    law, size = DiscreteLaplace(4), 30_000
    blocks = [Block(start=0, shift=0), Block(start=1, shift=2), Block(start=5, shift=1)]
    with working_precision(192):
        table = certify_table(side_of(law), blocks)
    sample = draw(table, size, Seeded(3)).values
    points = np.arange(-40, 41)
    shares = shares_up_to(sample, points)
    assert distance(shares, points, law.cdf) < dkw_threshold(size)
    assert distance(shares, points, DiscreteLaplace("4.5").cdf) > dkw_threshold(size)
    assert np.count_nonzero(np.abs(sample) >= table.tail_start) > size // 10


@pytest.mark.theorem("T-EXACT")
@pytest.mark.costly
def test_an_attempt_that_lands_in_the_tail_is_kept_with_the_exact_share_of_the_tail():
    law = DiscreteGaussian(50)
    table = table_for(side_of(law))
    with working_precision(128):
        share = float(tail_share(table))
    exact = 2 * law.sf(table.tail_start) / law.pmf(0) * float(table.scale) / table.weights[table.tail_row]
    assert share == pytest.approx(exact, rel=1e-12)
    source, trials = Seeded(2), 3000
    uniforms = (random_words(source, trials) >> np.uint64(32)).tolist()
    kept = [decide(table, pair(table, table.tail_row, u, 0, sign=u & 1), 0, source) for u in uniforms]
    values = [value for value in kept if value is not None]
    assert not tail_alarm(len(values), trials, share)
    assert min(abs(value) for value in values) >= table.tail_start
    assert {value < 0 for value in values} == {True, False}


def test_a_draw_beyond_64_bits_keeps_its_place_and_is_neither_wrapped_nor_clipped(monkeypatch):
    law = Polylog(1, 3, 1, 1)
    giant = (1 << 70) + 12345
    real = sampler.decide
    monkeypatch.setattr(sampler, "decide", lambda t, p, v, s: -giant if real(t, p, v, s) is not None else None)
    monkeypatch.setattr(sampler, "attempt_for", lambda size: fixed.attempt)
    table = unsettled(table_for(side_of(law)))
    monkeypatch.setattr("recordwise.noise.laws.table_for", lambda side: table)
    drawn = law.draw(5, Seeded(1))
    assert drawn.values.tolist() == [0] * 5
    assert drawn.extremes == dict.fromkeys(range(5), -giant)
    with pytest.raises(ExtremeDrawError, match="5 draws"):
        law.sample(5, Seeded(1))
    totals = np.array([giant - 3, giant, 0, 2**100, -7], dtype=object)
    assert law.add_to(totals, Seeded(1)).tolist() == [-3, 0, -(2**63), 2**63 - 1, -(2**63)]


def settled(decisions, values):
    """What becomes of a batch in which every attempt is open and decided as listed."""
    numbers = np.array(values, dtype=np.int64)
    undecided = np.stack([np.arange(len(numbers)), np.arange(len(numbers))], axis=1)
    table = table_for(side_of(DiscreteLaplace(50)))
    with pytest.MonkeyPatch.context() as patched:
        answers = iter(decisions)
        patched.setattr(sampler, "decide", lambda *_: next(answers))
        count, large = sampler._settle(table, random_words(Seeded(1), 2 * len(numbers)), numbers, undecided, Seeded(2))
    return numbers[:count].tolist(), large


@pytest.mark.theorem("T-EXACT")
def test_an_extreme_draw_moves_up_with_the_others_where_attempts_before_it_were_refused():
    giant = 1 << 70
    kept, large = settled([None, 7, -giant, None, None, giant, 3], range(7))
    assert kept == [7, 0, 0, 3]
    assert large == {1: -giant, 2: giant}


@pytest.mark.theorem("T-EXACT")
@pytest.mark.parametrize("value", [2**63 - 1, 1 - 2**63, -5, 0])
def test_a_decided_draw_that_fits_64_bits_replaces_the_value_at_its_place(value):
    assert settled([1, value, 2], [10, 20, 30]) == ([1, value, 2], {})


@pytest.mark.theorem("T-EXACT")
@pytest.mark.parametrize("value", [2**63, -(2**63), -(2**63) - 1])
def test_a_decided_draw_that_does_not_is_an_extreme_one(value):
    assert settled([1, value, 2], [10, 20, 30]) == ([1, 0, 2], {1: value})


@pytest.mark.theorem("T-EXACT")
def test_a_draw_of_a_tail_starts_where_the_table_ends_counted_from_where_the_table_starts(monkeypatch):
    """A table that starts at magnitude 1,000: its draws are offsets from there, in its tail too."""
    table = table_for(replace(side_of(DiscreteLaplace(50)), first=1000, signed=False))
    monkeypatch.setattr(sampler, "tail_share", lambda table: arb(1))
    beyond = sampler.tail_table(table)
    assert beyond.side.first == table.tail_start > 1000
    for into in (0, 1, 123):
        monkeypatch.setattr(sampler, "single", lambda table, source, into=into: into)
        assert decide(table, pair(table, table.tail_row, 5, 0), 0, Seeded(1)) == table.tail_start - 1000 + into


@pytest.mark.theorem("T-EXACT")
@pytest.mark.costly
def test_draws_given_that_they_pass_a_threshold_follow_the_law_beyond_the_table_too(monkeypatch):
    """A table from magnitude 20 on, cut so short that most draws come from its tail."""
    law, size = DiscreteLaplace(4), 30_000
    with working_precision(192):
        table = certify_table(replace(side_of(law), first=20, signed=False), [Block(start=0, shift=1)])
    sample = 20 + draw(table, size, Seeded(3)).values
    points = np.arange(20, 60)
    given = lambda k: 1 - np.array([law.sf(int(i) + 1) for i in k]) / law.sf(20)  # noqa: E731
    assert distance(shares_up_to(sample, points), points, given) < dkw_threshold(size)
    assert np.count_nonzero(sample >= table.tail_start) > size // 4


def test_draws_of_any_size_stand_in_the_order_they_were_accepted_whatever_is_refused_between_them(monkeypatch):
    verdicts: list[int | None] = []

    def scripted(*_: object) -> int | None:
        number = len(verdicts)
        verdicts.append((None, number, (1 << 63) + number // 40, -(1 << 63) - number)[number % 4])
        return verdicts[-1]

    monkeypatch.setattr(sampler, "decide", scripted)
    monkeypatch.setattr(sampler, "attempt_for", lambda size: fixed.attempt)
    monkeypatch.setattr(sampler, "CHUNK", 16)
    drawn = draw(unsettled(table_for(side_of(DiscreteGaussian(50)))), 60, Seeded(1))
    accepted = [value for value in verdicts if value is not None][:60]
    assert accepted.count(1 << 63) > 5
    assert [drawn.extremes.get(place, value) for place, value in enumerate(drawn.values.tolist())] == accepted
    assert all(drawn.values[place] == 0 for place in drawn.extremes)


def test_a_single_draw_beyond_64_bits_is_itself_and_a_tail_draw_counts_from_where_its_table_starts(monkeypatch):
    giant = (1 << 70) + 1
    table = table_for(side_of(DiscreteGaussian(50), first=70, signed=False))
    drawn = Draws(values=np.zeros(1, dtype=np.int64), extremes={0: giant})
    monkeypatch.setattr(sampler, "draw", lambda *_: drawn)
    assert sampler.single(table, Seeded(1)) == giant
    value = decide(table, pair(table, table.tail_row, 0, 0), 0, Seeded(1))
    assert value == giant + sampler.tail_table(table).side.first - 70


@pytest.mark.theorem("T-RANGE")
def test_adding_noise_clips_the_sum_and_never_the_noise_or_the_total():
    law, ends = DiscreteLaplace(50), np.array([2**63 - 1, -(2**63), 0], dtype=np.int64)
    noise = law.sample(3, Seeded(9)).tolist()
    exact = [int(total) + z for total, z in zip(ends.tolist(), noise)]
    assert law.add_to(ends, Seeded(9)).tolist() == [min(max(v, -(2**63)), 2**63 - 1) for v in exact]
    assert law.add_to(ends.astype(object), Seeded(9)).tolist() == law.add_to(ends, Seeded(9)).tolist()
    assert law.add_to(np.array([10, 20, 30]), Seeded(9)).tolist() == [10 + noise[0], 20 + noise[1], 30 + noise[2]]


@pytest.mark.theorem("T-RANGE")
@pytest.mark.parametrize("sign", [1, -1])
def test_a_sum_just_beyond_64_bits_is_clipped_and_not_wrapped_and_giant_noise_reaches_small_totals(sign, monkeypatch):
    drawn = Draws(values=sign * np.array([10, 0, 3]), extremes={})
    monkeypatch.setattr(LatticeLaw, "draw", lambda *_: drawn)
    end = 2**63 - 1 if sign > 0 else -(2**63)
    totals = np.array([end - sign * 9, 5, -7], dtype=np.int64)
    assert DiscreteGaussian(1).add_to(totals).tolist() == [end, 5, 3 * sign - 7]
    drawn.extremes[1] = sign * 2**80
    assert DiscreteGaussian(1).add_to(np.array([1, 2, 3])).tolist() == [1 + sign * 10, end, 3 + sign * 3]


@pytest.mark.parametrize("size", [0, 1, 32_767, 32_769, 100_001])
def test_the_asked_number_of_draws_comes_out(size: int):
    assert DiscreteGaussian(3).sample(size, Seeded(1)).shape == (size,)
    assert DiscreteGaussian(3).sample_above(-2, size, Seeded(1)).shape == (size,)


@pytest.mark.parametrize("size", [-1, 2.5, True, "3"])
def test_a_size_that_is_not_a_natural_number_is_refused(size):
    with pytest.raises(ParameterError, match="size"):
        DiscreteGaussian(3).sample(size)


def test_a_threshold_beyond_the_reach_is_refused():
    with pytest.raises(ParameterError, match="threshold"):
        DiscreteGaussian(3).sample_above(2**62 + 1, 1)


@pytest.mark.theorem("T-EXACT")
@pytest.mark.costly
def test_a_users_concave_exponent_draws_the_law_it_names():
    law, size = ConcaveLaw((x / 20) ** "0.7" + 2 * log(x / 9 + 1)), 8_000_000
    sample = law.sample(size)
    points = np.arange(-60, 61)
    shares = shares_up_to(sample, points)
    assert distance(shares, points, law.cdf) < dkw_threshold(size)
    wrong = ConcaveLaw((x / 20) ** "0.7" + 2 * log(x / "9.3" + 1))
    assert distance(shares, points, wrong.cdf) > dkw_threshold(size)
