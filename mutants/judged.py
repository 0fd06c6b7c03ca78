"""What was said about bugs that nobody noticed, in ``judged.toml``: each is named as its site is, with a verdict and a reason."""

import tomllib
from dataclasses import dataclass
from pathlib import Path

from mutants.sites import Site

KEPT = Path(__file__).parent / "judged.toml"
VERDICTS = ("equivalent", "performance", "message", "real")
"""Nothing changes; only time or memory does; only words for a reader do; a bug that the tests should have noticed."""


@dataclass(frozen=True, slots=True)
class Judgment:
    """What one bug is, and why."""

    verdict: str
    why: str

    @property
    def counts(self) -> bool:
        return self.verdict == "real"


def judgments(path: Path = KEPT) -> dict[tuple[str, str, str, str, int], Judgment]:
    """By the key of a site; a verdict that is none, or an entry that stands twice, is refused."""
    found: dict[tuple[str, str, str, str, int], Judgment] = {}
    for entry in tomllib.loads(path.read_text(encoding="utf-8")).get("judged", []) if path.exists() else []:
        key = entry["function"], entry["operator"], entry["statement"], entry["change"], entry.get("ordinal", 0)
        if entry["verdict"] not in VERDICTS:
            raise ValueError(f"{path.name}: {entry['verdict']!r} is no verdict; there are {', '.join(VERDICTS)}")
        if key in found:
            raise ValueError(f"{path.name}: {' | '.join(map(str, key))} is judged twice")
        found[key] = Judgment(entry["verdict"], entry["why"])
    return found


def entry_for(site: Site, verdict: str = "real", why: str = "") -> str:
    """The lines to be added to the file."""
    lines = ["[[judged]]"]
    for name in ("function", "operator", "statement", "change"):
        lines.append(f"{name} = {quoted(getattr(site, name))}")
    if site.ordinal:
        lines.append(f"ordinal = {site.ordinal}")
    return "\n".join([*lines, f"verdict = {quoted(verdict)}", f"why = {quoted(why)}", ""])


def quoted(text: str) -> str:
    """As TOML writes a text."""
    if "'" not in text and "\n" not in text:
        return f"'{text}'"
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return f'"{escaped}"'
