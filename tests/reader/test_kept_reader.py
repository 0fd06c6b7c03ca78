"""No number and no sentence that readers are answered moves unseen (``kept.whole``)."""

import pytest

from kept.whole import ANEW, moved
from reader import kept_reader


@pytest.mark.parametrize("subject", kept_reader.SUBJECTS)
@pytest.mark.costly
def test_readers_are_answered_as_they_were(subject: str) -> None:
    assert not moved(kept_reader, subject), ANEW.format("reader.kept_reader")
