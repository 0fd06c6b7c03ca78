"""Lines of pictures and sentences about plans do not move unseen (``kept.whole``)."""

import pytest

from kept.whole import ANEW, moved
from planning import kept_pictures

pytest.importorskip("matplotlib", reason="the plots extra is not installed: no figure is drawn here")


@pytest.mark.parametrize("subject", kept_pictures.SUBJECTS)
@pytest.mark.costly
def test_pictures_and_explanations_show_what_they_showed(subject: str) -> None:
    assert not moved(kept_pictures, subject), ANEW.format("planning.kept_pictures")
