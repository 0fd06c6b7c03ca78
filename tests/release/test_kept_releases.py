"""Nothing that is published about a small release moves unseen: tables, words, files, pages and changes (``kept.whole``)."""

import pytest

from kept.whole import ANEW, moved
from release import kept_releases


@pytest.mark.parametrize("subject", kept_releases.SUBJECTS)
@pytest.mark.costly
def test_all_that_is_published_is_what_it_was(subject: str) -> None:
    assert not moved(kept_releases, subject), ANEW.format("release.kept_releases")
