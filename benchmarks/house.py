"""How large the package is to a reader: modules, lines, functions, first lines, and the modules that three calls visit.

The numbers are quoted in docs/architecture.md. A module is visited if one of its functions runs, on a second call, when
everything is imported and cached; the plan file is the complete example of docs/plan-file.md.
"""

import ast
import re
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import pyarrow as pa

import recordwise as rw

PACKAGE = Path(rw.__file__).parent
EXAMPLE = Path(__file__).resolve().parents[1] / "docs" / "plan-file.md"
MOST_ENTRIES, MOST_AT_THE_TOP = 16, 20
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Module:
    """The text of a module, and its tree."""

    path: Path
    text: str
    nodes: tuple[ast.AST, ...]

    @property
    def lines(self) -> int:
        return self.text.count("\n")


def modules(package: Path) -> list[Module]:
    """Every module below a folder."""
    found = [(path, path.read_text(encoding="utf-8")) for path in sorted(package.rglob("*.py"))]
    return [Module(path, text, tuple(ast.walk(ast.parse(text)))) for path, text in found]


def quantiles(values: Sequence[int], *shares: float) -> str:
    """The quantiles of whole numbers in one cell of a table; 1 is the largest."""
    ranked = sorted(values)
    return " / ".join(f"{ranked[min(int(len(ranked) * share), len(ranked) - 1)]:,}" for share in shares)


def first_lines(module: Module) -> Iterator[int]:
    """The words in the first line of each docstring of a function or class."""
    for node in module.nodes:
        if isinstance(node, Function | ast.ClassDef) and (text := ast.get_docstring(node)):
            yield len(text.splitlines()[0].split())


def entries(folder: Path) -> int:
    """What a reader of a folder chooses from: its modules, and the packages in it."""
    plain = [path for path in folder.glob("*.py") if not path.name.startswith("__")]
    return len(plain) + len(list(folder.glob("*/__init__.py")))


def crowded(package: Path) -> str:
    """The folders with more entries than one can survey."""
    folders = [path.parent for path in sorted(package.rglob("__init__.py"))]
    found = {folder: entries(folder) for folder in folders}
    most = {folder: MOST_AT_THE_TOP if folder == package else MOST_ENTRIES for folder in folders}
    names = (f"{folder.relative_to(package.parent)} {found[folder]}" for folder in folders)
    return (
        ", ".join(name for name, folder in zip(names, folders, strict=True) if found[folder] > most[folder]) or "none"
    )


def sizes(package: Path) -> dict[str, str]:
    """The rows of the table that follow from the text of the package."""
    parts = modules(package)
    lines = sum(part.lines for part in parts)
    functions = sum(isinstance(node, Function) for part in parts for node in part.nodes)
    text = "\n".join(part.text for part in parts)
    return {
        "modules": f"{len(parts):,}",
        "lines": f"{lines:,}",
        "file p50 / p90 / max": quantiles([part.lines for part in parts], 0.5, 0.9, 1),
        "functions per 1,000 lines": f"{1000 * functions / lines:.0f}",
        "first line of a docstring, words p50 / p90": quantiles(
            [words for part in parts for words in first_lines(part)], 0.5, 0.9
        ),
        "`mechanism: Any`": str(text.count("mechanism: Any")),
        "`isinstance`": str(len(re.findall(r"\bisinstance\(", text))),
        "folders with more than 16 entries": crowded(package),
    }


def visited(call: Callable[[], Any]) -> set[str]:
    """The modules of the package of which a function runs during a call, after a first call."""
    call()
    found = set()

    def seen(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            found.add(frame.f_code.co_filename)

    sys.setprofile(seen)
    try:
        call()
    finally:
        sys.setprofile(None)
    return {name for name in found if name.startswith(str(PACKAGE))}


def walks(folder: Path) -> dict[str, Callable[[], Any]]:
    """The three calls by name; the file that one of them reads is written to ``folder``."""
    keys = rw.Keys.of({"county": ["a", "b"]})
    records = pa.table({"id": [1, 2, 3], "county": ["a", "a", "b"], "emp": [4, 20, 900]})
    counted = rw.query().group_by("county", keys=keys).count(rw.Gaussian(rho="0.05"))
    query = counted.sum("emp", rw.UnitSplit(at=50, rho="0.1"))
    budget = (rw.policy.constant(1) + rw.policy.gaussian_sum("emp", sigma=1)) * 1000
    session = rw.Session(
        records, unit="id", measures={"emp": 1}, columns={"county": "text"}, tuned_on="synthetic", budget=budget
    )
    path = folder / "plan.toml"
    path.write_text(re.findall(r"```toml\n(.*?)```", EXAMPLE.read_text(encoding="utf-8"), re.DOTALL)[0])
    goals = rw.planning.plan_goals(session, query, within="0.5")
    return {
        "Session.run": lambda: session.run(query),
        "load_plan": lambda: rw.load_plan(path),
        "recommend": lambda: rw.planning.recommend(session, goals, plan=query, data="synthetic"),
    }


def main() -> None:
    rows = sizes(PACKAGE)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, call in walks(Path(folder)).items():
            rows[f"modules visited by `{name}`"] = str(len(visited(call)))
    for name, value in rows.items():
        print(f"| {name} | {value} |")


if __name__ == "__main__":
    main()
