"""No noisy answer, error or end of an interval moves unseen (``kept_answers``)."""

import json

import pytest

from kept.kept_answers import KEPT, SUBJECTS
from kept.test_kept_rooms import same

HELD = json.loads(KEPT.read_text(encoding="utf-8"))
ANEW = "If it was meant to: PYTHONPATH=tests python tests/kept/kept_answers.py"


@pytest.mark.parametrize("subject", SUBJECTS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.costly
def test_answers_are_as_they_were(subject: str) -> None:
    found = json.loads(json.dumps(dict(SUBJECTS[subject]())))
    assert found.keys() == HELD[subject].keys()
    assert not {part: (found[part], kept) for part, kept in HELD[subject].items() if not same(found[part], kept)}, ANEW


def test_nothing_that_is_kept_is_left_out() -> None:
    assert list(HELD) == list(SUBJECTS)
