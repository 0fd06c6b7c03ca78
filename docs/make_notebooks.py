"""Run the notebooks of docs/notebooks and write the page of each, with what its cells printed.

    python docs/make_notebooks.py [NAME ...]

Notebooks are stored without outputs. A test runs their cells and fails while a page has other text or code than its notebook;
outputs are those of the last run of this script, since noise is drawn anew each time.
"""

import ast
import contextlib
import io
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "notebooks"
NEEDS_DATA = {"county-business-patterns"}
"""Notebooks that read the folder named by RECORDWISE_DATA."""


def notebooks() -> dict[str, Path]:
    """The notebooks by name."""
    return {path.stem: path for path in sorted(FOLDER.glob("*.ipynb"))}


def cells(path: Path) -> list[tuple[str, str]]:
    """Kind and text of each cell."""
    read = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [(each["cell_type"], "".join(each["source"])) for each in read]


def run(path: Path) -> Iterator[tuple[str, Any]]:
    """Run the code cells in the current folder, as a notebook does: what each printed, and what its last expression shows."""
    names: dict[str, Any] = {"__name__": "__main__"}
    for number, (kind, text) in enumerate(cells(path)):
        if kind != "code":
            continue
        tree = ast.parse(text)
        shown = ast.Expression(tree.body.pop().value) if isinstance(tree.body[-1], ast.Expr) else None
        place, printed, value = f"{path.name}, cell {number}", io.StringIO(), None
        with contextlib.redirect_stdout(printed):
            exec(compile(tree, place, "exec"), names)
            if shown is not None:
                value = _shown(eval(compile(shown, place, "eval"), names))
        yield printed.getvalue(), value


def page_parts(path: Path) -> list[str]:
    """The text and code of a notebook as its page has them, in order."""
    return [
        re.sub(r"\.ipynb\)", ".md)", text) if kind == "markdown" else f"```python\n{text}\n```"
        for kind, text in cells(path)
    ]


def page(path: Path) -> str:
    """The page of a notebook, with the outputs of a run in an empty folder."""
    results, parts, figures = list(_run_elsewhere(path)), [], 0
    for kind, part in zip((kind for kind, _ in cells(path)), page_parts(path)):
        parts.append(part)
        if kind == "code":
            printed, value = results.pop(0)
            parts += [f"```text\n{printed.rstrip()}\n```"] if printed.strip() else []
            if hasattr(value, "savefig"):
                figures += 1
                parts.append(_figure(path, figures, value))
            elif value is not None:
                parts.append(value)
    return "\n\n".join([*parts, _foot(path)]) + "\n"


def _run_elsewhere(path: Path) -> Iterator[tuple[str, Any]]:
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        for each in FOLDER.glob("*.R"):
            shutil.copy(each, folder)
        os.chdir(folder)
        try:
            yield from run(path)
        finally:
            os.chdir(before)


def _figure(path: Path, number: int, figure: Any) -> str:
    name = f"{path.stem}-{number}.svg"
    import matplotlib

    with matplotlib.rc_context({"svg.hashsalt": "recordwise", "svg.fonttype": "none"}):
        figure.savefig(FOLDER / name, metadata={"Date": None})
    axes = figure.axes[0]
    return f"![{axes.get_title(loc='left') or axes.get_ylabel()} against {axes.get_xlabel()}]({name})"


def _shown(value: Any) -> Any:
    """A figure as it is, a table of our own as HTML, anything else as text: a relation reads its files when it is shown."""
    if value is None or hasattr(value, "savefig"):
        return value
    if type(value).__module__.startswith("recordwise") and hasattr(value, "_repr_html_"):
        table = value._repr_html_().replace("<table>", '<table class="output">')
        return f'<div class="output" tabindex="0" role="region" aria-label="Output">\n{table}\n</div>'
    return f"```text\n{str(value).rstrip()}\n```"


def _foot(path: Path) -> str:
    return f"*Download: [{path.name}]({path.name}).*"


def main(names: list[str]) -> None:
    """Write the pages of the named notebooks, or of all."""
    for name, path in notebooks().items():
        if names and name not in names:
            continue
        if name in NEEDS_DATA and not os.environ.get("RECORDWISE_DATA"):
            print(f"{name}: RECORDWISE_DATA names no folder, so its page stays as it is")
            continue
        path.with_suffix(".md").write_text(page(path), encoding="utf-8")
        print(name)


if __name__ == "__main__":
    main(sys.argv[1:])
