"""What a source is refused with."""

from typing import Any

import pytest

from recordwise.errors import SourceError


def refusal(call: Any, *given: Any, **more: Any) -> SourceError:
    """The refusal that a call ends in; a call that ends otherwise fails the test."""
    with pytest.raises(SourceError) as refused:
        call(*given, **more)
    return refused.value
