"""What is computed of withheld cells, and the words for it, does not move unseen (``kept.whole``)."""

import pytest

from disclosure import kept_attacks
from kept.whole import ANEW, moved


@pytest.mark.parametrize("subject", kept_attacks.SUBJECTS)
def test_attacks_find_what_they_found(subject: str) -> None:
    assert not moved(kept_attacks, subject), ANEW.format("disclosure.kept_attacks")
