"""Whether the licenses of everything installed let us use it beside an Apache-2.0 library: permissive, or weak copyleft."""

import json
import re
import subprocess
import sys

PERMISSIVE = (
    "MIT", "BSD", "Apache", "ISC", "PSF", "Python Software Foundation", "0BSD", "Zlib", "CC0", "LLVM-exception",
    "DFSG approved", "Unlicense",
)  # fmt: skip
WEAK = ("MPL", "Mozilla Public License", "LGPL")
"""Used as they are, not changed and not copied into this project."""
SAID_ELSEWHERE = {
    "quickjs": "states none in its metadata; MIT in the license file it ships; tests only",
    "axe-playwright-python": "states none in its metadata; MIT in the license file it ships; tests only",
}


def license_problems() -> list[str]:
    listed = subprocess.run(
        [sys.executable, "-m", "piplicenses", "--format=json"], capture_output=True, text=True, check=True
    )
    problems = []
    for library in json.loads(listed.stdout):
        name, stated = library["Name"], library["License"]
        if name.lower() not in SAID_ELSEWHERE and not _allowed(stated):
            problems.append(f"{name} is under {stated}")
    return problems


def _allowed(stated: str) -> bool:
    """Every part that must be kept is one we know; of parts to choose from, one."""
    choices = re.split(r"\s+OR\s+", stated)
    return any(all(_known(part) for part in re.split(r"\s+AND\s+|;\s*", choice)) for choice in choices)


def _known(part: str) -> bool:
    # "GPL" stands inside "LGPL", so names are sought from their beginning.
    return part.strip("() ").startswith((*PERMISSIVE, *WEAK))
