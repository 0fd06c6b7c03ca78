"""The check of what we build on: it sees what is wrong, and says when it could not see."""

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from supply import __main__ as command
from supply import lock, vulnerabilities
from supply.licenses import _allowed, license_problems
from supply.lock import entries, lock_problems
from supply.vulnerabilities import UncheckedError, vulnerability_problems


def test_everything_we_ask_for_is_pinned_and_hashed() -> None:
    assert lock_problems() == []


def test_a_library_without_a_digest_or_a_pin_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "requirements.lock").write_text(
        "numpy==2.0 \\\n    --hash=sha256:aa\nscipy>=1 --hash=sha256:bb\nduckdb==1\n"
    )
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nname = "p"\ndependencies = ["numpy", "rich"]\noptional-dependencies = {}\n'
    )
    monkeypatch.setattr(lock, "ROOT", tmp_path)
    assert lock_problems() == [
        "scipy is not pinned to one version",
        "duckdb has no digest",
        "rich is asked for and not in the lock",
    ]
    assert list(entries("a==1 \\\n    --hash=sha256:x\n")) == ["a"]


@pytest.mark.process
def test_every_license_of_what_is_installed_may_be_used() -> None:
    assert license_problems() == []


@pytest.mark.parametrize(
    "stated", ["MIT", "MIT AND LGPL-3.0-or-later", "GPL-3.0 OR BSD-3-Clause", "DFSG approved; MIT License"]
)
def test_a_license_with_one_usable_choice_is_allowed(stated: str) -> None:
    assert _allowed(stated)


@pytest.mark.parametrize("stated", ["GPL-3.0", "AGPL-3.0", "MIT AND GPL-2.0", "UNKNOWN", "Proprietary", ""])
def test_a_license_that_binds_us_or_says_nothing_is_not_allowed(stated: str) -> None:
    assert not _allowed(stated)


def answered(*libraries: dict[str, Any]) -> object:
    return lambda service: list(libraries)


def test_a_known_hole_is_told_with_the_version_that_mends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    hole = {"id": "X-1", "fix_versions": ["2.1"]}
    monkeypatch.setattr(vulnerabilities, "_asked", answered({"name": "a", "version": "2.0", "vulns": [hole]}))
    assert vulnerability_problems() == ["a 2.0: X-1, mended in 2.1"]


@pytest.mark.parametrize("libraries", [[], [{"name": "a", "version": "1", "skip_reason": "not found"}]])
@pytest.mark.process
def test_a_service_that_does_not_answer_is_not_taken_for_a_pass(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], libraries: list[Any]
) -> None:
    monkeypatch.setattr(vulnerabilities, "_asked", answered(*libraries))
    with pytest.raises(UncheckedError):
        vulnerability_problems()
    assert command.main() == 2
    assert "NOT CHECKED" in capsys.readouterr().out
