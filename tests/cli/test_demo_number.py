"""How many establishments the demo makes up."""

import pytest

from recordwise.cli.demo import DEFAULT_ROWS, read_number
from recordwise.errors import ParameterError


def test_the_demo_has_as_many_establishments_as_are_asked_for() -> None:
    assert [read_number(asked) for asked in (None, 1, 300)] == [DEFAULT_ROWS, 1, 300]
    for asked in (0, -1):
        with pytest.raises(ParameterError, match="at least 1"):
            read_number(asked)
