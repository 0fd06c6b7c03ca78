"""What exactness rests on: envelopes that dominate, lines on the right side, weights that add up, on any cut."""

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noise.reference import weight
from recordwise.errors import ParameterError
from recordwise.exact.numbers import working_precision
from recordwise.noise import DiscreteGaussian, GeneralizedGaussian, LatticeLaw, Polylog
from recordwise.noise.sampler import ONE, TOTAL, Block, Side, Table, certify_table, table_for


def side_of(law: LatticeLaw, **changes) -> Side:
    return Side(exponent=law.exponent, inflection=law.inflection, **changes)


def acceptance(law: LatticeLaw, table: Table, row: int, offset: int) -> mp.mpf:
    """2**32 times the acceptance probability, from the definition."""
    block, scale = table.blocks[row], mp.mpf(table.scale.numerator) / table.scale.denominator
    copies = 1 if not table.side.signed or block.start == 0 else 2
    return (
        ONE
        * scale
        * copies
        * 2**block.shift
        / table.weights[row]
        * weight(law, table.side.first + offset, table.side.first)
    )


def some_offsets(block: Block) -> list[int]:
    size = 1 << block.shift
    middle = block.start + size // 2
    picks = {block.start, block.start + 1, middle - 2, middle - 1, middle, middle + 1, block.last - 1, block.last}
    picks |= {block.start + int(size * share) for share in (0.1, 0.37, 0.61, 0.93)}
    return sorted(k for k in picks if block.start <= k <= block.last)


def check_lines(law: LatticeLaw, table: Table, row: int) -> None:
    """The three integer bounds, as the kernels compute them, are on the right side of the true acceptance."""
    block = table.blocks[row]
    lower, lower_fall, upper, upper_fall = (int(v) for v in table.lines[row])
    assert 0 <= lower_fall < ONE
    assert 0 <= upper_fall < ONE
    for offset in some_offsets(block):
        place = (offset - block.start << 32) >> block.shift
        exact = acceptance(law, table, row, offset)
        assert int(table.quick[row]) >> 32 <= exact <= ONE
        assert lower - (lower_fall * place >> 32) <= exact <= upper - (upper_fall * place >> 32)


@pytest.mark.theorem("T-LINES")
@pytest.mark.costly
def test_lines_and_envelope_bound_the_acceptance_in_every_block(law: LatticeLaw):
    table = table_for(side_of(law))
    for row in range(0, len(table.blocks), max(1, len(table.blocks) // 120)):
        check_lines(law, table, row)


@pytest.mark.theorem("T-LINES")
@pytest.mark.parametrize("law", [DiscreteGaussian(50), GeneralizedGaussian(50, 0.5), Polylog(10**6, 1, 4, 2)], ids=str)
def test_lines_bound_the_acceptance_in_tables_of_a_deep_tail(law: LatticeLaw):
    table = table_for(side_of(law, first=12345, signed=False))
    for row in range(0, len(table.blocks), max(1, len(table.blocks) // 60)):
        check_lines(law, table, row)


@pytest.mark.theorem("T-LINES")
@pytest.mark.parametrize("first", [5 * 10**5, 10**6, 3 * 10**6])
@pytest.mark.costly
def test_the_curvature_of_a_tail_is_that_of_its_magnitudes_not_of_its_offsets(first: int):
    """Beyond the inflection every block is convex, although its offsets, counted from the tail's start, begin below it."""
    law = DiscreteGaussian(10**6)
    table = table_for(side_of(law, first=first, signed=False))
    for row in range(len(table.blocks)):
        check_lines(law, table, row)


@pytest.mark.parametrize("first", [0, 70, 12345])
def test_the_acceptance_in_arbitrary_precision_is_that_of_the_definition_in_tails_too(first: int):
    law = DiscreteGaussian(50)
    table = table_for(side_of(law, first=first, signed=first == 0))
    with working_precision(192):
        for row in range(0, len(table.blocks), max(1, len(table.blocks) // 10)):
            for offset in some_offsets(table.blocks[row])[::4]:
                found = table.acceptance(row, offset) * ONE
                assert abs(mp.mpf(found.mid().str(50, radius=False)) / acceptance(law, table, row, offset) - 1) < 1e-30


def test_blocks_follow_each_other_without_gap_and_stay_below_two_to_the_62(law: LatticeLaw):
    table = table_for(side_of(law))
    assert table.blocks[0] == Block(start=0, shift=0)
    for left, right in zip(table.blocks, table.blocks[1:]):
        assert right.start == left.last + 1
    assert table.blocks[-1].last < 1 << 62
    assert len(table.blocks) <= 1000


def test_no_block_crosses_the_inflection_of_a_gaussian():
    for sigma in ("7.5", 1000, "123456.789", 10**12):
        law = DiscreteGaussian(sigma)
        for block in table_for(side_of(law)).blocks:
            assert block.last <= law.sigma or block.start >= law.sigma


@pytest.mark.theorem("T-EXACT")
def test_weights_dominate_the_exact_masses_and_add_up(law: LatticeLaw):
    table = table_for(side_of(law))
    assert sum(table.weights) == TOTAL
    assert min(table.weights) >= 0
    scale = mp.mpf(table.scale.numerator) / table.scale.denominator
    tail = mp.exp(mp.mpf(law.log_sf(table.tail_start)) - mp.mpf(law.log_pmf(0)))
    assert table.weights[table.tail_row] >= 2 * scale * tail * (1 - mp.mpf(10) ** -10)


cuts = st.lists(st.integers(0, 6), min_size=1, max_size=40)


@pytest.mark.theorem("T-EXACT")
@settings(max_examples=60, deadline=None)
@given(shifts=cuts)
@pytest.mark.parametrize("law", [DiscreteGaussian(9), GeneralizedGaussian(3, 0.5), Polylog(2, 1, 4, 2)], ids=str)
@pytest.mark.costly
def test_any_cut_gives_certified_lines_and_weights(law: LatticeLaw, shifts: list[int]):
    blocks = [Block(start=0, shift=0)]
    for shift in shifts:
        start = blocks[-1].last + 1
        room = law.inflection - start + 1
        fits = min(shift, room.bit_length() - 1) if room > 0 else shift
        blocks.append(Block(start=start, shift=fits))
    while blocks[-1].last < 300:  # nearer to zero no bound on the tail is certified
        blocks.append(Block(start=blocks[-1].last + 1, shift=7 if blocks[-1].last >= law.inflection else 0))
    with working_precision(192), mp.workdps(50):
        table = certify_table(side_of(law), blocks)
        for row in range(len(blocks)):
            check_lines(law, table, row)
    assert sum(table.weights) == TOTAL


def test_a_cut_so_short_that_no_bound_on_the_tail_is_certified_is_refused():
    with pytest.raises(ParameterError, match="not certified finite"):
        certify_table(side_of(Polylog(2, 1, 4, 2)), [Block(start=0, shift=0)])


def test_a_table_with_both_signs_starts_at_zero():
    with pytest.raises(ValueError, match="starts at 0"):
        side_of(DiscreteGaussian(1), first=3)


def test_arrays_have_one_entry_per_slot(law: LatticeLaw):
    table = table_for(side_of(law))
    assert {len(table.slots), len(table.starts), len(table.quick), len(table.lines)} == {1024}
    assert np.all(table.quick & np.uint64(63) <= 60)
