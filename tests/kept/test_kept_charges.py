"""No charge of a plan moves unseen, whatever its shape (``kept_charges``)."""

import json

import pytest

import recordwise as rw
from build import industries, records, session
from kept.kept_charges import KEPT, SUBJECTS
from kept.test_kept_rooms import same
from recordwise.errors import PlanError
from recordwise.policy.constructors import by

HELD = json.loads(KEPT.read_text(encoding="utf-8"))
ANEW = "If it was meant to: PYTHONPATH=tests python tests/kept/kept_charges.py"


@pytest.mark.parametrize("subject", SUBJECTS)
@pytest.mark.costly
def test_charges_are_as_they_were(subject: str) -> None:
    found = json.loads(json.dumps(dict(SUBJECTS[subject]())))
    assert found.keys() == HELD[subject].keys()
    assert not {part: (found[part], kept) for part, kept in HELD[subject].items() if not same(found[part], kept)}, ANEW


def test_nothing_that_is_kept_is_left_out() -> None:
    assert list(HELD) == list(SUBJECTS)


def test_a_level_none_of_whose_cells_has_a_threshold_is_refused_before_anything_is_spent() -> None:
    """One code of the sector has no threshold, so that the sector has none, and no other sector has one either."""
    at = by("naics", {"311": 20, "332": 5})
    asked = rw.query().group_by("sector", keys={"sector": ["31-33"]}).sum("emp", rw.UnitSplit(at=at, rho="0.2"))
    how = {"hierarchies": [industries()], "columns": {"naics": "text"}, "max_outside": "accept"}
    told = r"have no threshold by 'naics'; give a default\. Nothing was read and nothing was spent"
    with session(records(20), **how) as opened, pytest.raises(PlanError, match=told):  # type: ignore[arg-type]
        opened.run(asked)
