"""The session that the tests of planning share."""

from collections.abc import Iterator

import pytest
from small_table import opened

import recordwise as rw


@pytest.fixture(scope="module")
def session() -> Iterator[rw.Session]:
    with opened() as found:
        yield found
