"""The trade file: what is written is read, what does not fit together is refused, and confidential ones are their owner's."""

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from recordwise.errors import OutputError, ParameterError
from recordwise.studio.trade import Trade
from studio.trade_sample import sample_trade

TRADE = sample_trade()


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    found = Trade.load(TRADE.save(tmp_path / "trade.json"))
    assert found == TRADE
    assert found.digest() == TRADE.digest()


@pytest.mark.parametrize("data", ["confidential", "past"])
def test_a_confidential_file_is_its_owners_and_says_so(tmp_path: Path, data: str) -> None:
    file = tmp_path / "trade.json"
    file.write_text("before")
    file.chmod(0o644)
    trade = sample_trade(data=data)
    trade.save(file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert json.loads(file.read_text())["label"].startswith("CONFIDENTIAL")
    (tmp_path / "release.json").touch()
    with pytest.raises(OutputError, match="the folder of a release"):
        trade.save(tmp_path / "other.json")
    assert not (tmp_path / "other.json").exists()
    assert TRADE.save(tmp_path / "other.json").exists()
    assert trade.is_confidential
    assert not TRADE.is_confidential


@pytest.mark.parametrize(
    "change",
    [
        {"version": 2},
        {"title": 3},
        {"positions": []},
        {"today": 9},
        {"main": 3},
        {"draws": 2},
        {"record_classes": []},
        {"statistics": []},
        {"others": {"records": [], "examples": [], "firms": [], "extremes": []}},
        {"more": 1},
    ],
)
def test_a_file_that_does_not_fit_together_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match="trade file"):
        Trade.from_json(TRADE.to_json() | change)


def test_what_is_no_trade_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text("no JSON")
    with pytest.raises(ParameterError, match="no JSON"):
        Trade.load(tmp_path / "other.json")
    with pytest.raises(ParameterError, match="version"):
        Trade.from_json([])
