"""Published attacks on floating-point noise and sums: the same attack code breaks plain numpy and fails against our releases.

Least bits: Mironov, CCS 2012. Sums whose order matters: Casacuberta, Shoemate, Vadhan, Wagaman, CCS 2022. Where a test compares
losses, its false alarm is that of the audit (below 1e-12 a comparison).
"""

import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

import recordwise as rw
from audit.naive_numpy import float_sum, integer_sum, noisy
from build import employers
from recordwise.audit import bound_on_loss
from recordwise.audit.audit import features_of, lowest_bit
from recordwise.errors import DataError, ParameterError, RecordwiseError
from recordwise.noise import Seeded

Floats = NDArray[np.float64]
CELLS = 10_000


def published(
    values: Sequence[Any],
    mechanism: Any,
    folder: Path,
    *,
    cells: int = CELLS,
    measure: rw.Measure | None = None,
    stored: pa.DataType | None = None,
    rng: Any = None,
) -> pa.Table:
    """What files say of cells that all hold these values."""
    declared = measure or rw.Measure.of("value")
    names = [f"{cell:05d}" for cell in range(cells)]
    table = pa.table(
        {
            "id": np.arange(cells * len(values)),
            "cell": pa.array(np.repeat(names, len(values)) if values else [], pa.string()),
            "value": pa.array(list(values) * cells, stored or pa.int64()),
        }
    )
    with employers(table, "cell", measures={"value": declared}, max_outside="accept") as session:
        asked = rw.query().group_by("cell", keys=rw.Keys.of({"cell": names})).sum("value", mechanism, alias="answer")
        out = session.run(asked, rng=rng).save(folder)
    return pq.read_table(out / "cell.parquet").drop_columns(["cell"])


def seen_loss(with_record: pa.Table, without: pa.Table) -> float:
    """A lower bound on what the record lost, from every published column and the least bits of all floats."""
    present, absent = features_of(with_record), features_of(without)
    shared = present.keys() & absent.keys()
    return bound_on_loss({name: present[name] for name in shared}, {name: absent[name] for name in shared})


def finer_than(values: Floats, exponent: int) -> float:
    """The share of values with a binary digit below 2**exponent."""
    return float(np.mean(lowest_bit(values) < exponent))


@pytest.mark.parametrize("law, promised", [("laplace", math.exp(-1)), ("normal", 0.5)])
def test_least_bits_betray_the_total_behind_continuous_noise(law: str, promised: float) -> None:
    """A total of 1 leaves no digit below 2**-53 in any answer; a total of 0 does in half of them. One answer decides."""
    empty, one = (noisy(total, 1.0, CELLS, law=law, seed=total) for total in (0, 1))
    assert finer_than(empty, -53) > 0.2
    assert finer_than(one, -53) == 0.0
    assert bound_on_loss({"bit": lowest_bit(empty)}, {"bit": lowest_bit(one)}) > promised


@pytest.mark.parametrize(
    "mechanism",
    [
        rw.GeneralizedGaussian(shape=1, scale=1),
        rw.GeneralizedGaussian(shape=0.5, scale="0.3"),
        rw.Polylog(power=2, rate=1, offset=math.e, scale=1),
    ],
    ids=["laplace", "generalized gaussian", "polylog"],
)
@pytest.mark.costly
def test_least_bits_of_our_additive_noise_say_nothing(mechanism: Any, tmp_path: Path) -> None:
    """Every answer is a multiple of one public power of two, whatever the total."""
    without, one = (published(values, mechanism, tmp_path / name) for name, values in (("a", []), ("b", [1])))
    lattice = math.log2(mechanism.lattice(1))
    for table in (without, one):
        assert finer_than(table["answer"].to_numpy(), int(lattice)) == 0.0
    assert seen_loss(one, without) <= mechanism.policy("value").loss({"value": 1})


@pytest.mark.parametrize(
    "mechanism",
    [
        rw.LogTransform(offset=10, sigma="0.1"),
        rw.RootTransform(degree=2, offset=10, sigma="0.2"),
        rw.RootTransform(degree=4, offset=10, laplace_scale="0.05"),
    ],
    ids=["log", "root", "laplace"],
)
@pytest.mark.costly
def test_least_bits_of_transformed_answers_say_nothing_either(mechanism: Any, tmp_path: Path) -> None:
    without, one = (published(values, mechanism, tmp_path / name) for name, values in (("a", []), ("b", [1])))
    grid = math.log2(mechanism.grid(1))
    for table in (without, one):
        assert finer_than(table["answer_noisy"].to_numpy(), int(grid)) == 0.0
    assert seen_loss(one, without) <= mechanism.policy("value").loss({"value": 1})


STEPS = 1000
NEARLY = 2**53 - (STEPS + 1)
"""Below 2**53 floats are 1 apart and 1.25 is added as 1; from there on they are 2 apart and it is added as 2."""
MANY = [1.25] * STEPS


def test_a_float_sum_moves_by_twice_the_record_that_was_added() -> None:
    record = STEPS + 1
    assert float_sum([record, NEARLY, *MANY]) - float_sum([NEARLY, *MANY]) == 2 * record - 1
    assert float_sum([NEARLY, *MANY]) != float_sum([*MANY, NEARLY])


@pytest.mark.costly
def test_our_sum_moves_by_the_record_and_by_nothing_else(tmp_path: Path) -> None:
    """The same records; noise of sigma 20, so that the mean of 40 cells is within 25 of the truth but for 1e-12."""
    measure = rw.Measure.of("value", step="0.25", bound=2**54)
    means = []
    for number, values in enumerate(([NEARLY, *MANY], [STEPS + 1, NEARLY, *MANY], [*MANY, NEARLY])):
        table = published(
            [Decimal(str(each)) for each in values],
            rw.Gaussian(sigma=20),
            tmp_path / str(number),
            cells=40,
            measure=measure,
            stored=pa.decimal128(20, 2),
        )
        means.append(float(np.mean(table["answer"].to_numpy() - 2.0**53)))
    assert abs(means[1] - means[0] - (STEPS + 1)) < 50
    assert abs(means[2] - means[0]) < 50


FULL = [2**62, 2**62 - 1]
LARGE = rw.Measure.of("value", bound=2**62)


def test_a_sum_that_wraps_betrays_the_last_record() -> None:
    assert integer_sum([*FULL, 1]) < 0 < integer_sum(FULL)


@pytest.mark.parametrize("full", [FULL, [2**62], [2**61], [2**61, 2**61 - 1], [2**53]], ids=str)
@pytest.mark.costly
def test_no_total_is_so_large_that_one_more_shows(full: list[int], tmp_path: Path) -> None:
    """Where 64 bits end, where our own fast path ends (2**61, 2**62), and where floats end."""
    mechanism = rw.Gaussian(sigma=20)
    tables = [
        published(values, mechanism, tmp_path / name, cells=4000, measure=LARGE)
        for name, values in (("a", full), ("b", [*full, 1]))
    ]
    for table in tables:
        assert table["answer"].type == pa.int64()
        assert min(table["answer"].to_pylist()) > 0
    assert tables[0].schema == tables[1].schema
    assert seen_loss(tables[1], tables[0]) <= mechanism.policy("value").loss({"value": 1})


def test_noise_smaller_than_floats_can_hold_is_no_noise() -> None:
    """A subnormal scale: the answers fall on a handful of points and most of them are the total itself."""
    answers = noisy(0.0, 2.0**-1074, CELLS, law="laplace", seed=3)
    assert np.mean(answers == 0) > 0.3
    assert len(np.unique(answers)) < 50


@pytest.mark.parametrize("step", ["5e-324", "1e-310", "1e-20"])
def test_a_measure_so_fine_that_floats_run_out_is_refused(step: str) -> None:
    with pytest.raises(ParameterError, match="step"):
        rw.Measure.of("value", step=step)


def test_on_the_finest_lattice_the_noise_has_as_many_values_as_on_any(tmp_path: Path) -> None:
    fine = rw.Measure.of("value", step=Fraction(1, 2**53))
    mechanism = rw.Gaussian(sigma=Fraction(20, 2**53))
    table = published([0.0], mechanism, tmp_path / "a", measure=fine, stored=pa.float64())
    steps = table["answer"].to_numpy() * 2.0**53
    assert np.array_equal(steps, np.rint(steps))
    assert len(np.unique(steps)) > 100
    assert np.mean(steps == 0) < 0.05


def test_a_record_of_nothing_shows_in_the_sign_of_a_float_zero() -> None:
    assert math.copysign(1, np.cumsum([-0.0])[-1]) < 0 < math.copysign(1, float_sum([]))


def test_a_record_of_negative_zero_is_a_record_of_zero_to_the_last_bit(tmp_path: Path) -> None:
    """The same noise: the files must be the same."""
    tables = [
        published(values, rw.Gaussian(sigma=3), tmp_path / str(number), cells=500, stored=pa.float64(), rng=Seeded(4))
        for number, values in enumerate(([], [0.0], [-0.0]))
    ]
    files = [(tmp_path / str(number) / "cell.csv").read_bytes() for number in range(3)]
    assert files[0] == files[1] == files[2]
    assert tables[0].equals(tables[2])


def test_one_record_that_is_not_a_number_makes_a_float_sum_none() -> None:
    assert math.isnan(float_sum([1.0, math.nan]))


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, -1.0, 0.5, 2.0**60])
def test_records_that_are_not_numbers_are_refused_before_anything_is_spent(bad: float) -> None:
    table = pa.table({"id": [1, 2], "value": [1.0, bad]})
    with employers(table, measures={"value": 1}) as session:
        with pytest.raises(DataError) as refused:
            session.run(rw.query().sum("value", rw.Gaussian(sigma=3)))
        assert [event.kind for event in session.history()] == ["opened"]
    assert isinstance(refused.value, RecordwiseError)
    assert str(bad) not in str(refused.value).replace("infinite", "")


@pytest.mark.parametrize("total", [0, 1, 2**52 + 1, 2**53 + 1, 2**60 + 1])
def test_rounding_to_floats_happens_to_the_sum_with_noise_and_never_to_the_total(total: int, tmp_path: Path) -> None:
    """Answers of whole numbers stay whole numbers: the last digit of a large answer is as random as its first."""
    table = published([total], rw.Gaussian(sigma=20), tmp_path / "a", measure=LARGE)
    odd = np.array([int(each) % 2 for each in table["answer"].to_pylist()])
    assert abs(odd.mean() - 0.5) < math.sqrt(math.log(2e9) / (2 * CELLS))
