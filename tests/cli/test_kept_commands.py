"""What commands print about fixed releases and plans does not move unseen (``kept.whole``)."""

import pytest

from cli import kept_commands
from kept.whole import ANEW, moved

CASES = [pytest.param(each, marks=[pytest.mark.costly] * (each != "plans")) for each in kept_commands.SUBJECTS]


@pytest.mark.parametrize("subject", CASES)
@pytest.mark.costly
def test_commands_print_what_they_printed(subject: str) -> None:
    assert not moved(kept_commands, subject), ANEW.format("cli.kept_commands")
