"""Hostile inputs for every door a user's text or file comes in by. ``python -m fuzz --help``; results in docs/trust.md."""

import sys
from pathlib import Path

# The oracles that share no code with the library live beside the tests.
sys.path.append(str(Path(__file__).parents[1] / "tests"))
