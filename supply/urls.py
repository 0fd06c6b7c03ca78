"""Write the addresses of the project into pyproject.toml, for the wheel and the source archive that are built next.

    python -m supply.urls ADDRESS

ADDRESS is where the repository is, as the workflow that publishes knows it. It is written nowhere else, so that a copy of the
repository never names somebody else's pages.
"""

import re
import sys
import tomllib
from pathlib import Path

from supply.lock import ROOT

PAGES = {
    "Source": "",
    "Documentation": "/blob/main/docs/index.md",
    "Changelog": "/blob/main/CHANGELOG.md",
    "Issues": "/issues",
}


def with_urls(text: str, address: str) -> str:
    """Return the text of pyproject.toml with a table of addresses."""
    if not re.fullmatch(r"https://[\w.-]+(/[\w.-]+)+", address):
        raise ValueError("the address of a repository begins with https:// and ends with its name, without a slash")
    if "urls" in tomllib.loads(text)["project"]:
        raise ValueError("pyproject.toml has addresses already")
    rows = "".join(f'{name} = "{address}{page}"\n' for name, page in PAGES.items())
    return f"{text.rstrip()}\n\n[project.urls]\n{rows}"


def main(arguments: list[str], file: Path = ROOT / "pyproject.toml") -> int:
    """Write the addresses, or say why not."""
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        file.write_text(with_urls(file.read_text(encoding="utf-8"), arguments[0]), encoding="utf-8")
    except ValueError as problem:
        print(f"nothing written: {problem}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
