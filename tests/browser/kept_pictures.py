"""Where screenshots are kept."""

from pathlib import Path

ARTEFACTS = Path(__file__).resolve().parents[1] / "artifacts"
