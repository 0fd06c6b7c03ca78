"""Makes the mutants, which stand beside the tests, importable."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
