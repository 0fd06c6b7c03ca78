"""What the tests of plan files share."""

from collections.abc import Callable
from pathlib import Path

import pytest

from recordwise.plan.file import PlanFile, load_plan


@pytest.fixture
def load(tmp_path: Path) -> Callable[[str], PlanFile]:
    """Load a plan from its text."""

    def loaded(text: str) -> PlanFile:
        (tmp_path / "plan.toml").write_text(text)
        return load_plan(tmp_path / "plan.toml")

    return loaded
