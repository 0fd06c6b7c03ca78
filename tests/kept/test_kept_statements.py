"""No statement that an engine is given about a rich plan changes unseen (``kept_statements``)."""

import json

import pytest
import sqlglot

from kept.kept_statements import KEPT, SUBJECTS

HELD = json.loads(KEPT.read_text(encoding="utf-8"))
ANEW = "If it was meant to: PYTHONPATH=tests python tests/kept/kept_statements.py"


@pytest.mark.skipif(HELD["sqlglot"]["version"] != sqlglot.__version__, reason="another sqlglot may write SQL otherwise")
@pytest.mark.parametrize("subject", SUBJECTS)
@pytest.mark.costly
def test_statements_are_as_they_were(subject: str) -> None:
    found = json.loads(json.dumps(dict(SUBJECTS[subject]())))
    assert found.keys() == HELD[subject].keys()
    assert not {part: (found[part], kept) for part, kept in HELD[subject].items() if found[part] != kept}, ANEW


def test_nothing_that_is_kept_is_left_out() -> None:
    assert list(HELD) == ["sqlglot", *SUBJECTS]
