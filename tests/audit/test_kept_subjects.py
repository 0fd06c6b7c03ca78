"""No query, key or record of the audit's subjects moves unseen (``kept.whole``)."""

import pytest

from audit import kept_subjects
from kept.whole import ANEW, moved


@pytest.mark.parametrize("subject", kept_subjects.SUBJECTS)
@pytest.mark.costly
def test_the_audit_asks_what_it_asked(subject: str) -> None:
    assert not moved(kept_subjects, subject), ANEW.format("audit.kept_subjects")
