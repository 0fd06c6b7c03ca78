"""Generated establishments are the same from the same seed (``kept.whole``)."""

import pytest

from kept.whole import ANEW, moved
from synthetic import kept_establishments


@pytest.mark.parametrize("subject", kept_establishments.SUBJECTS)
@pytest.mark.costly
def test_generated_tables_are_what_they_were(subject: str) -> None:
    assert not moved(kept_establishments, subject), ANEW.format("synthetic.kept_establishments")
