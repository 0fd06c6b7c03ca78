"""Fixtures of the experiments' tests."""

import pytest

from experiments import establishments


@pytest.fixture
def generated(monkeypatch, tmp_path):
    """No data folder, and few generated establishments in place of millions."""
    monkeypatch.setenv("RECORDWISE_DATA", str(tmp_path / "nothing"))
    monkeypatch.setattr(establishments, "GENERATED_ROWS", 60_000)
