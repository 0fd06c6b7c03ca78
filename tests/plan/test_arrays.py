"""Between numpy and Arrow: what is made is what Arrow itself makes, without its question about pandas."""

import numpy as np
import pyarrow as pa
import pytest

from recordwise.plan.arrays import array_from_list, array_of, null_as, numpy_of, texts_of

WHOLE = [np.dtype(f"{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)]
DTYPES = [*WHOLE, np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.bool_)]
SIZES = (0, 1, 7, 8, 9, 1000)


def column(dtype, size, seed=1):
    generator = np.random.default_rng(seed)
    values = generator.integers(0, 2 if dtype.kind == "b" else 100, size).astype(dtype)
    return values, generator.random(size) < 0.3


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_an_array_becomes_the_column_that_arrow_makes(dtype):
    for size in SIZES:
        values, missing = column(dtype, size)
        for ours, theirs in (
            (array_of(values), pa.array(values)),
            (array_of(values, missing), pa.array(values, mask=missing)),
            (array_of(values[::2]), pa.array(values[::2])),
        ):
            ours.validate(full=True)
            assert ours.type == theirs.type
            assert ours.equals(theirs)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_column_becomes_the_array_that_arrow_makes(dtype):
    for size in SIZES:
        values, missing = column(dtype, size)
        whole, gaps = pa.array(values), pa.array(values, mask=missing)
        for each in (whole, gaps, whole.slice(size // 3), gaps.slice(size // 3), pa.chunked_array([gaps, whole])):
            theirs = each.to_numpy() if isinstance(each, pa.ChunkedArray) else each.to_numpy(zero_copy_only=False)
            np.testing.assert_array_equal(numpy_of(each), theirs, strict=True)
    np.testing.assert_array_equal(
        numpy_of(pa.chunked_array([], pa.from_numpy_dtype(dtype))), np.empty(0, dtype), strict=True
    )


@pytest.mark.parametrize("dtype", DTYPES[:-1], ids=str)
def test_null_is_another_number_and_the_type_stays(dtype):
    values, missing = column(dtype, 1000)
    found = null_as(pa.array(values, mask=missing).slice(3), 7)
    np.testing.assert_array_equal(found, np.where(missing, dtype.type(7), values)[3:], strict=True)
    np.testing.assert_array_equal(null_as(pa.chunked_array([pa.array(values)]), 7), values, strict=True)


def test_texts_and_lists_become_the_columns_that_arrow_makes():
    texts = ["", "001", "Añasco", "東京", "\x00"]
    assert texts_of(texts).equals(pa.array(texts))
    assert texts_of([]).equals(pa.array([], pa.string()))
    for values in (texts, [1, -(2**63), 2**63 - 1], [True, False], [1.5, 2], [1.5, 2.5], [], ["a", None], [None, 3]):
        ours, theirs = array_from_list(values), pa.array(values)
        ours.validate(full=True)
        assert ours.type == theirs.type
        assert ours.equals(theirs)
    for values in ([1.5, float("nan")], [float("nan")], [1, float("nan")], ["a", None], [1.0, None]):
        ours, theirs = array_from_list(values, nan_is_null=True), pa.array(values, from_pandas=True)
        ours.validate(full=True)
        assert ours.type == theirs.type
        assert ours.equals(theirs)
    assert array_from_list([1.5, float("nan")]).null_count == 0
    with pytest.raises((OverflowError, pa.ArrowInvalid)):
        array_from_list([2**64])
    with pytest.raises(UnicodeEncodeError):
        texts_of(["\ud800"])
