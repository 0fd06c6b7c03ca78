"""The session that the tests of planning share."""

from collections.abc import Iterator

import pytest

import recordwise as rw
from planning.small_table import opened


@pytest.fixture(scope="module")
def session() -> Iterator[rw.Session]:
    with opened() as found:
        yield found
