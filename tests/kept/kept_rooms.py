"""What whole rooms of the package tell about small inputs, number by number, as it was kept.

``PYTHONPATH=tests python tests/kept/kept_rooms.py`` writes them, with names as arguments those alone. Each number is held against
theory or a slow way elsewhere; kept, they also tell when a small change of the code moves one.
"""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from time import process_time
from typing import Any

from kept import kept_guarantees, kept_planning, kept_publications, kept_screens, kept_solutions
from kept.steady import told

KEPT = Path(__file__).with_suffix(".json")
SUBJECTS: dict[str, Callable[[], Iterator[tuple[str, Any]]]] = {
    **kept_guarantees.SUBJECTS,
    **kept_planning.SUBJECTS,
    **kept_publications.SUBJECTS,
    **kept_screens.SUBJECTS,
    **kept_solutions.SUBJECTS,
}


def written(found: dict[str, dict[str, Any]]) -> str:
    """One line for each part, so that a difference can be read."""
    lines = []
    for subject, parts in found.items():
        held = ",\n".join(f"  {json.dumps(name)}: {json.dumps(value)}" for name, value in parts.items())
        lines.append(f" {json.dumps(subject)}: {{\n{held}\n }}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def main(names: list[str]) -> None:
    kept = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}
    for subject, ask in SUBJECTS.items():
        if not names or subject in names:
            begun = process_time()
            kept[subject] = told(ask)
            print(f"{subject}: {process_time() - begun:.1f} s, {len(kept[subject])} parts")
    KEPT.write_text(written({subject: kept[subject] for subject in SUBJECTS if subject in kept}), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
