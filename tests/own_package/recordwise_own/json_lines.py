"""An output format: a JSON object on each line, below one with the privacy label."""

import json
from pathlib import Path

import pyarrow as pa


class JsonLines:
    name = "json_lines"
    extension = "jsonl"
    description = "the whole table, a JSON object for each cell"

    def holds(self, kind: pa.DataType) -> bool:
        types = pa.types
        return types.is_integer(kind) or types.is_floating(kind) or types.is_string(kind) or types.is_boolean(kind)

    def write(self, data: pa.Table, path: Path, *, privacy_label: str) -> None:
        rows = [{"privacy_label": privacy_label}, *data.to_pylist()]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")

    def privacy_label(self, path: Path) -> str:
        return str(_rows(path)[0]["privacy_label"])

    def same(self, data: pa.Table, path: Path) -> bool:
        return _rows(path)[1:] == data.to_pylist()


def _rows(path: Path) -> list:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


JSON_LINES = JsonLines()
