"""A stranger's path, as the README prints it: a table of their own, what is typed and what comes back."""

import re
import runpy
from pathlib import Path

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
SCRIPT = "docs/worked-example/shops.py"
SHOPS: str = runpy.run_path(str(ROOT / SCRIPT))["SHOPS"]


def blocks(language: str) -> list[str]:
    """The code blocks of the README in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", README, flags=re.DOTALL | re.MULTILINE)


def commands() -> list[str]:
    """What is typed from nothing to a release of one's own CSV file and a look at its policy."""
    (install,) = re.findall(r"^pip install recordwise$", README, flags=re.MULTILINE)
    return [install, *(line for line, _ in typed())]


def typed() -> list[tuple[str, str]]:
    """Each command of the README, with what it says comes back."""
    (own,) = blocks("console")
    pairs = [each.partition("\n") for each in re.split(r"^\$ ", own, flags=re.MULTILINE) if each]
    return [(line, said) for line, _, said in pairs]


def comes_back(said: str, shown: str) -> bool:
    """Whether what came back is what the README shows, where dots stand for lines left out."""
    words = [" ".join(part.split()) for part in re.split(r"^\.\.\.$", said, flags=re.MULTILINE)]
    pattern = ".*".join(re.escape(part) for part in words)
    return re.fullmatch(pattern, " ".join(shown.split()), flags=re.DOTALL) is not None
