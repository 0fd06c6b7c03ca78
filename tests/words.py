"""Count the words of every page.

    python tests/words.py [COMMIT]

prints them next to those of a commit, with the longest paragraph and sentence.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def pages() -> dict[str, str]:
    """The text of every page of docs/ but the generated reference, by its path."""
    found = sorted((ROOT / "docs").rglob("*.md"))
    return {str(path.relative_to(ROOT)): path.read_text("utf-8") for path in found if path.name != "reference.md"}


def pages_at(commit: str) -> dict[str, str]:
    """The same pages as they were."""

    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout

    names = [name for name in git("ls-tree", "-r", "--name-only", commit, "docs").split() if name.endswith(".md")]
    return {name: git("show", f"{commit}:{name}") for name in names if not name.endswith("reference.md")}


def paragraphs(text: str) -> Iterator[str]:
    """Prose between blank lines; items of lists are paragraphs of their own, and code, tables, pictures and headings are none."""
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    for block in re.split(r"\n\s*\n", prose):
        for item in re.split(r"\n(?=\s*(?:[-*]|\d+\.) )", block.strip("\n")):
            lines = [line for line in item.split("\n") if not re.match(r"\s*(?:\||#|\[?!\[|<)|    ", line)]
            if lines:
                yield " ".join(" ".join(lines).split())


def sentences(paragraph: str) -> list[str]:
    """The sentences of a paragraph, roughly: each ends with a period, a question mark or a semicolon before a blank."""
    return re.split(r"(?<=[.?!:;])\s+", paragraph)


def words(sentence: str) -> int:
    """How many words a sentence has without its formulas: what has two letters in a row that are no capitals, and "a"."""
    return len(re.findall(r"(?<!\S)(?:[^\w\s]*[A-Za-z][a-z]\S*|a(?!\S))", sentence))


def longest(text: str) -> tuple[int, int]:
    """Words of the longest paragraph and of the longest sentence of a page."""
    found = list(paragraphs(text))
    return (
        max((len(each.split()) for each in found), default=0),
        max((len(part.split()) for each in found for part in sentences(each)), default=0),
    )


def main(arguments: list[str]) -> None:
    """Print a row for each page, then the sums."""
    before = pages_at(arguments[0]) if arguments else {}
    now = pages()
    print(
        "| page | words before | words now | longest paragraph before | now | longest sentence now |\n|---|---|---|---|---|---|"
    )
    for name in sorted({*before, *now}):
        old, new = before.get(name), now.get(name)
        cells = [
            name,
            str(len(old.split())) if old is not None else "",
            str(len(new.split())) if new is not None else "gone",
            str(longest(old)[0]) if old is not None else "",
            str(longest(new)[0]) if new is not None else "",
            str(longest(new)[1]) if new is not None else "",
        ]
        print(f"| {' | '.join(cells)} |")
    sums = [str(sum(len(text.split()) for text in found.values())) for found in (before, now)]
    print(f"| together | {' | '.join(sums)} | | | |")


if __name__ == "__main__":
    main(sys.argv[1:])
