"""An output format: a JSON object on each line, below one with the privacy label."""

import json
from pathlib import Path

from recordwise.release.content import Content
from recordwise.release.formats.format import type_problem


class JsonLines:
    name = "json_lines"
    extension = "jsonl"
    description = "the whole table, a JSON object for each cell"
    whole = False
    needs = ()

    def problem(self, content: Content) -> str | None:
        return type_problem(content)

    def write(self, content: Content, path: Path) -> None:
        rows = [{"privacy_label": content.privacy_label}, *content.table.data.to_pylist()]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")

    def privacy_label(self, path: Path) -> str:
        return str(_rows(path)[0]["privacy_label"])

    def same(self, content: Content, path: Path) -> bool:
        return _rows(path)[1:] == content.table.data.to_pylist()


def _rows(path: Path) -> list:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


JSON_LINES = JsonLines()
