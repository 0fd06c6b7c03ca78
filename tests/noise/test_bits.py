"""Where the bits come from."""

import os
import re
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

import recordwise
from recordwise.errors import ParameterError
from recordwise.noise import DiscreteGaussian, Secure, Seeded, is_private
from recordwise.noise import randomness as bits
from recordwise.noise.randomness import random_words

LAW = DiscreteGaussian(10**12)


def draw_ten(_: int) -> list[int]:
    return LAW.sample(10).tolist()


def draw_ten_from(source: Secure) -> list[int]:
    return LAW.sample(10, source).tolist()


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
@pytest.mark.process
def test_forked_workers_never_repeat_each_other_or_their_parent():
    shared = Secure()
    mine = draw_ten_from(shared)
    with ProcessPoolExecutor(max_workers=2, mp_context=get_context("fork")) as pool:
        theirs = list(pool.map(draw_ten, range(20))) + list(pool.map(draw_ten_from, [shared] * 20))
    everything = [*mine, *draw_ten_from(shared), *(value for drawn in theirs for value in drawn)]
    assert len(set(everything)) == len(everything) == 420  # two equal draws of sigma 1e12: probability below 1e-7


def test_each_request_is_the_aes_counter_keystream_of_a_fresh_key(monkeypatch):
    keys = iter([bytes(range(32)), bytes(32)])
    monkeypatch.setattr(bits.os, "urandom", lambda count: next(keys)[:count])
    for key in (bytes(range(32)), bytes(32)):
        stream = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor().update(bytes(8 * 1000))
        assert random_words(Secure(), 1000).tobytes() == stream


def test_a_long_request_is_one_keystream_across_the_inner_buffer(monkeypatch):
    monkeypatch.setattr(bits.os, "urandom", lambda count: bytes(count))
    count = (1 << 16) + 12345
    stream = Cipher(algorithms.AES(bytes(32)), modes.CTR(bytes(16))).encryptor().update(bytes(8 * count))
    assert random_words(Secure(), count).tobytes() == stream


def test_a_request_beyond_the_limit_of_one_key_takes_another(monkeypatch):
    asked = []
    monkeypatch.setattr(bits.os, "urandom", lambda count: asked.append(count) or bytes([len(asked)]) * count)
    monkeypatch.setattr(bits, "REQUEST_BYTES", 800)
    assert len(set(random_words(Secure(), 250).tolist())) == 250
    assert asked == [32, 32, 32]


def test_a_seeded_source_repeats_itself_and_is_not_private():
    assert np.array_equal(LAW.sample(1000, Seeded(7)), LAW.sample(1000, Seeded(7)))
    assert not np.array_equal(LAW.sample(1000, Seeded(7)), LAW.sample(1000, Seeded(8)))
    assert (is_private(Seeded(7)), is_private(Secure())) == (False, True)


def test_only_the_secure_source_itself_is_private_whatever_another_says_of_itself():
    class Boasting:
        private = True
        __class__ = Secure

        def fill(self, words):
            words[...] = 0

    class Inherited(Secure):
        def fill(self, words):
            words[...] = 0

    assert not is_private(Boasting())
    assert not is_private(Inherited())


@pytest.mark.parametrize("seed", [-1, 1.5, True, None])
def test_a_seed_that_is_not_a_natural_number_is_refused(seed):
    with pytest.raises(ParameterError, match="seed"):
        Seeded(seed)


def test_entropy_and_numpy_random_are_named_in_one_file_only():
    root = Path(recordwise.__file__).parent
    pattern = re.compile(r"urandom|np\.random|numpy\.random|import (random|secrets)\b")
    naming = {path.relative_to(root).as_posix() for path in root.rglob("*.py") if pattern.search(path.read_text())}
    # The studio's tokens are no noise.
    assert naming == {"noise/randomness.py", "studio/guard.py"}
    assert os.urandom is bits.os.urandom
