"""Selection from a public domain: the empty cells have the law they would have if each were visited."""

import itertools
import time
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import binom

from mechanisms.lattice_truth import FALSE_ALARM, chi_square_rejects, tail
from mechanisms.test_selection_law import found_counts, opened
from recordwise.errors import KeysError, ParameterError, PlanError
from recordwise.mechanisms import Gaussian
from recordwise.mechanisms.key_selection import SelectionLaw, distinct_below, passing_empty_cells
from recordwise.noise import Secure, Seeded
from recordwise.plan import Column, Domain, Keys, Plan, Schema, prefix
from recordwise.plan.expressions import as_group
from recordwise.plan.keys.keys import as_domain
from recordwise.plan.query import query
from recordwise.release.draw import select_cells

LAW = SelectionLaw(sigma=Fraction(3, 2), threshold=1)
SIZE, OCCUPIED = 6, np.array([1, 4])


def pattern_counts(repeats, seed, law=LAW):
    """How often each set of empty cells passed."""
    rng, seen = Seeded(seed), np.zeros(2 ** (SIZE - len(OCCUPIED)), dtype=np.int64)
    empty = np.setdiff1d(np.arange(SIZE), OCCUPIED)
    for _ in range(repeats):
        passed = passing_empty_cells(SIZE, OCCUPIED, law, rng).positions
        seen[np.sum(2 ** np.searchsorted(empty, passed))] += 1
    return seen


def visited_law(chance):
    """The same, had every empty cell been given its own noise."""
    ways = itertools.product([0, 1], repeat=SIZE - len(OCCUPIED))
    found = {
        sum(bit << i for i, bit in enumerate(way)): chance ** sum(way) * (1 - chance) ** way.count(0) for way in ways
    }
    return np.array([found[i] for i in range(len(found))])


@pytest.mark.theorem("T-EMPTY")
@pytest.mark.costly
def test_the_sampled_empty_cells_have_the_law_of_the_visited_ones():
    """3,500 draws of which of four empty cells pass, 16 outcomes. A chance off by 0.05 has a noncentrality of about
    3500 * 4 * 0.05**2 / (0.37 * 0.63) = 150 against the limit 77 of chi-square with 15 degrees: power above 0.999."""
    chance = float(tail(LAW.sigma, LAW.threshold))
    seen = pattern_counts(3_500, seed=11)
    assert not chi_square_rejects(seen, visited_law(chance))
    assert chi_square_rejects(seen, visited_law(chance + 0.05))
    shifted = np.roll(visited_law(chance), 1)
    assert chi_square_rejects(seen, shifted)


@pytest.mark.slow
@pytest.mark.theorem("T-EMPTY")
def test_the_sampled_empty_cells_have_the_law_of_the_visited_ones_at_length():
    """60,000 draws: a chance 5 % off (0.0185) has a noncentrality of about 350 against the limit 77, power above 0.999."""
    chance = float(tail(LAW.sigma, LAW.threshold))
    seen = pattern_counts(60_000, seed=12)
    assert not chi_square_rejects(seen, visited_law(chance))
    assert chi_square_rejects(seen, visited_law(chance * 1.05))


@pytest.mark.theorem("T-EMPTY")
@pytest.mark.parametrize(("bound", "count"), [(6, 3), (7, 2), (7, 5), (5, 1)])
@pytest.mark.costly
def test_places_are_drawn_without_replacement_and_every_set_is_equally_likely(bound, count):
    """20,000 draws of up to 35 sets; one set 70 % more likely than the others is found with probability above 0.999."""
    sets = {chosen: i for i, chosen in enumerate(itertools.combinations(range(bound), count))}
    rng, repeats = Seeded(bound * 10 + count), 20_000
    seen = np.zeros(len(sets), dtype=np.int64)
    for _ in range(repeats):
        seen[sets[tuple(distinct_below(bound, count, rng).tolist())]] += 1
    assert not chi_square_rejects(seen, np.full(len(sets), 1 / len(sets)))
    tilted = np.full(len(sets), 1 / len(sets))
    tilted[0] *= 1.7
    assert chi_square_rejects(seen, tilted / tilted.sum())


@pytest.mark.theorem("T-EMPTY")
def test_the_values_of_passing_empty_cells_have_the_truncated_law():
    """40,000 values; a sigma 5 % off moves the first cell of the histogram by 0.017, seven standard errors, the others too."""
    law = SelectionLaw(sigma=Fraction(3), threshold=4)
    drawn = passing_empty_cells(400_000, np.array([], dtype=np.int64), law, Seeded(5)).noisy
    assert drawn.min() == law.threshold
    seen = np.bincount(np.minimum(drawn - law.threshold, 6), minlength=7)
    assert not chi_square_rejects(seen, truncated(law))
    assert chi_square_rejects(seen, truncated(SelectionLaw(sigma=law.sigma * Fraction(105, 100), threshold=4)))


def truncated(law):
    tails = np.array([float(tail(law.sigma, law.threshold + i)) for i in range(7)] + [0.0])
    return -np.diff(tails) / tails[0]


@pytest.mark.theorem("T-EMPTY")
@pytest.mark.costly
def test_every_count_of_a_domain_is_kept_with_the_lattice_probability():
    """20,000 cells of each count from 0 to 60 in one domain, the empty ones never visited; exact tests as for found keys."""
    counts = np.repeat(np.arange(61), 20_000)
    law = SelectionLaw(sigma=Fraction(5), threshold=20)
    keys = Keys.select_from({"cell": np.arange(len(counts))}, rho="1/50", threshold=20)
    held = np.flatnonzero(counts)
    plan, found = found_counts(keys, counts[held])
    moved = pa.table({"cell": held})
    found = type(found)(table=found.table, cells=type(found.cells)(moved), exact=found.exact)
    chosen, exact, drawn = select_cells(plan, *opened(found), Seeded(21), confidence=0.95)
    kept = np.bincount(counts[chosen["cell"].to_numpy()], minlength=61)
    chances = np.array([law.keep_probability(count) for count in range(61)])
    limit = FALSE_ALARM / 122
    assert np.all(binom.cdf(kept, 20_000, chances) >= limit)
    assert np.all(binom.sf(kept - 1, 20_000, chances) >= limit)
    wrong = np.array([SelectionLaw(sigma=Fraction(21, 4), threshold=20).keep_probability(c) for c in range(61)])
    assert np.any((binom.cdf(kept, 20_000, wrong) < limit) | (binom.sf(kept - 1, 20_000, wrong) < limit))
    assert drawn.value.min() == 20
    (totals,) = exact.totals.values()
    assert totals.tolist() == counts[chosen["cell"].to_numpy()].tolist()


def test_positions_of_passing_cells_are_never_occupied_and_cover_all_empty_ones():
    law = SelectionLaw(sigma=Fraction(1), threshold=-3)
    occupied = np.array([0, 1, 5, 9])
    seen = set()
    for seed in range(40):
        found = passing_empty_cells(10, occupied, law, Seeded(seed)).positions
        assert np.all(np.diff(found) > 0)
        seen |= set(found.tolist())
    assert seen == {2, 3, 4, 6, 7, 8}


@pytest.mark.costly
def test_a_domain_of_a_billion_cells_takes_as_long_as_one_of_a_million_that_publishes_as_many():
    """Processor time side by side, the shortest of three: listing the cells would take a thousand times it."""
    rng = np.random.default_rng(0)
    occupied = np.sort(rng.choice(10**9, 10**5, replace=False))
    few = np.sort(rng.choice(10**6, 10**5, replace=False))
    taken: dict[int, list[float]] = {10**9: [], 10**6: []}
    for _ in range(3):
        for size, held, threshold in ((10**6, few, 4), (10**9, occupied, 9)):
            start = time.process_time()
            law = SelectionLaw(sigma=Fraction(9, 4), threshold=threshold)
            found = passing_empty_cells(size, held, law, Secure())
            taken[size].append(time.process_time() - start)
    assert min(taken[10**9]) < 20 * min(taken[10**6])
    chance = float(tail(Fraction(9, 4), 9))
    low, high = binom.ppf([FALSE_ALARM, 1 - FALSE_ALARM], 10**9 - 10**5, chance)
    assert low <= len(found.positions) <= high
    assert not np.isin(found.positions, occupied).any()


SCHEMA = Schema.of(
    unit="id",
    measures={"emp": 1},
    columns={"county": Column(name="county", null="category"), "naics": "text", "size": "integer"},
)


def bound(domain, *groups):
    return as_domain(domain).bound(tuple(as_group(group) for group in groups), SCHEMA)


@pytest.mark.theorem("T-DOMAIN")
@pytest.mark.parametrize("listed", [False, True])
def test_a_domain_finds_every_cell_it_names_and_nothing_else(listed):
    columns = {"county": ["B", None, "A"], "size": [3, 1]}
    domain = bound(Keys.product(**columns) if listed else columns, "county", "size")
    assert domain.size == 6
    cells = domain.keys(np.arange(6))
    assert domain.locate(cells).tolist() == list(range(6))
    outside = pa.table({"county": ["C", "A", None, "A"], "size": pa.array([1, 2, 1, 1], pa.int64())})
    found = domain.locate(outside)
    assert found[:2].tolist() == [-1, -1]
    assert domain.keys(found[2:]).to_pylist() == outside.slice(2).to_pylist()


@pytest.mark.theorem("T-DOMAIN")
def test_a_listed_domain_that_is_no_product_finds_its_cells():
    rows = [("A", 1), ("A", 7), ("B", 2), ("C", 1), ("C", 2), (None, 7)]
    keys = Keys.of(pa.table({"county": [r[0] for r in rows], "size": pa.array([r[1] for r in rows], pa.int64())}))
    domain = bound(keys, "county", "size")
    every = [(c, s) for c in ["A", "B", "C", "D", None] for s in (1, 2, 7, 9)]
    cells = pa.table({"county": [c for c, _ in every], "size": pa.array([s for _, s in every], pa.int64())})
    found = domain.locate(cells)
    assert [pair for pair, place in zip(every, found) if place >= 0] == [pair for pair in every if pair in rows]
    inside = found >= 0
    assert domain.keys(found[inside]).to_pylist() == cells.filter(pa.array(inside)).to_pylist()


def test_a_product_is_brought_to_the_level_of_a_prefix():
    domain = bound({"county": ["A"], "naics": ["4411", "4412", "4500"]}, "county", prefix("naics", 2))
    assert domain.keys(np.arange(domain.size)).to_pylist() == [
        {"county": "A", "naics2": "44"},
        {"county": "A", "naics2": "45"},
    ]


@pytest.mark.theorem("T-DOMAIN")
def test_a_careless_inverse_loses_cells_but_counts_none_twice():
    domain = Domain(
        columns=("size",),
        size=10,
        keys=lambda positions: {"size": positions * 10},
        positions=lambda columns: np.asarray(columns["size"]) // 10,
    )
    found = domain.bound((as_group("size"),), SCHEMA).locate(pa.table({"size": [0, 10, 15, 90, 100, -20]}))
    assert found.tolist() == [0, 1, -1, 9, -1, -1]


def test_domains_that_cannot_be_are_refused():
    with pytest.raises(ParameterError, match="domain"):
        Keys.select_from([1, 2], rho=1, threshold=3)
    with pytest.raises(ParameterError, match="threshold"):
        Keys.select_from({"county": ["A"]}, rho=1, threshold=2.5)
    with pytest.raises(KeysError, match="twice"):
        bound({"size": [1, 1]}, "size")
    with pytest.raises(ParameterError, match="size"):
        Domain(columns=("size",), size=0, keys=lambda positions: {}, positions=lambda columns: [])
    wide = Schema.of(unit="id", columns=dict.fromkeys("abcd", "text"))
    groups = tuple(as_group(name) for name in "abcd")
    with pytest.raises(KeysError, match=r"2\^62 cells"):
        as_domain({name: [str(i) for i in range(2**16)] for name in "abcd"}).bound(groups, wide)


def test_a_threshold_that_noise_alone_would_pass_too_often_is_refused_before_reading():
    keys = Keys.select_from({"size": range(20_000), "naics": [str(i) for i in range(2000)]}, rho="0.1", threshold=1)
    with pytest.raises(PlanError, match="empty cells would reach"):
        Plan(schema=SCHEMA, queries=(query().group_by("size", "naics", keys=keys).count(Gaussian(rho=1)),))
