"""No text of the studio and nothing that it hands over moves unseen (``kept.whole``)."""

import pytest

from kept.whole import ANEW, moved
from studio import kept_studio

CASES = [pytest.param(each, marks=[pytest.mark.costly] * (each == "made")) for each in kept_studio.SUBJECTS]


@pytest.mark.parametrize("subject", CASES)
def test_the_studio_shows_what_it_showed(subject: str) -> None:
    assert not moved(kept_studio, subject), ANEW.format("studio.kept_studio")
