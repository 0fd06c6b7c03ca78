"""Whether the lock pins one version of everything, with digests, and covers what pyproject.toml asks for."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PINNED = re.compile(r"([A-Za-z0-9._-]+)(\[[^\]]*\])?==[^\s;]+")


def entries(text: str) -> dict[str, str]:
    """Each library of the lock with its whole entry."""
    joined = text.replace("\\\n", " ")
    lines = [line.strip() for line in joined.splitlines() if line.strip() and not line.startswith("#")]
    return {re.split(r"[=<>~!\[; ]", line, maxsplit=1)[0].lower(): line for line in lines}


def lock_problems() -> list[str]:
    found = entries((ROOT / "requirements.lock").read_text())
    problems = [f"{name} is not pinned to one version" for name, line in found.items() if not PINNED.match(line)]
    problems += [f"{name} has no digest" for name, line in found.items() if "--hash=sha256:" not in line]
    return problems + [f"{name} is asked for and not in the lock" for name in wanted() if name not in found]


def wanted() -> list[str]:
    """What pyproject.toml names, in all its extras."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    asked = [*project["dependencies"], *(each for extra in project["optional-dependencies"].values() for each in extra)]
    names = {re.split(r"[=<>~!\[; ]", each, maxsplit=1)[0].lower() for each in asked}
    return sorted(names - {project["name"]})
