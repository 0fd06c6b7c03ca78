"""datapackage.json: the release as a Data Package, each table with a Table Schema, so that codes stay text and units are known."""

import re
from collections.abc import Collection
from typing import Any

import pyarrow as pa

from recordwise.plan.words import Publication
from recordwise.release.content import Content, DescribedTable
from recordwise.release.dictionary import Entry

NAME = "datapackage.json"
PROFILE = "https://datapackage.org/profiles/2.0/datapackage.json"
MEDIA_TYPES = {"csv": "text/csv", "parquet": "application/vnd.apache.parquet"}


def datapackage_json(content: Content, files: Collection[str]) -> dict[str, Any]:
    """The data package. It depends on the plan and the words alone, so the digests of files are in release.json only.

    Args:
        content: What the release says.
        files: The names of the files of the tables.

    Returns:
        The content of datapackage.json.
    """
    return {
        "$schema": PROFILE,
        "name": _plain(content.file_name),
        "title": content.title,
        "description": " ".join(content.notes),
        "privacy_label": content.privacy_label,
        **_about(content.words.publication),
        "resources": [_resource(each, content, files) for each in content.tables],
    }


def _plain(name: str) -> str:
    """A name as data packages allow it."""
    return re.sub(r"[^a-z0-9._-]", "_", name.lower())


def _about(said: Publication) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if said.version:
        found["version"] = said.version
    if said.date:
        found["created"] = f"{said.date}T00:00:00Z"
    if said.publisher:
        contact = {"email": said.contact} if "@" in said.contact and " " not in said.contact else {}
        found["contributors"] = [{"title": said.publisher, "roles": ["publisher"], **contact}]
    if said.license:
        address = said.license.startswith(("http://", "https://"))
        found["licenses"] = [{"path": said.license} if address else {"name": said.license, "title": said.license}]
    others = {"contact": said.contact, "period": said.period, "revision": said.revision}
    return found | {name: text for name, text in others.items() if text}


def _resource(table: DescribedTable, content: Content, files: Collection[str]) -> dict[str, Any]:
    """The CSV file of a table, or its Parquet file where there is none."""
    kind = next((each for each in ("csv", "parquet") if f"{table.name}.{each}" in files), "parquet")
    path = f"{table.name}.{kind}"
    commented = {} if content.private or kind != "csv" else {"dialect": {"commentChar": "#"}}
    return {
        "name": _plain(table.name),
        "type": "table",
        "title": table.title,
        "path": path,
        "format": kind,
        "mediatype": MEDIA_TYPES[kind],
        "encoding": "utf-8",
        **commented,
        "schema": {
            "fields": [
                _field(field, entry, content) for field, entry in zip(table.data.schema, table.columns, strict=True)
            ],
            "missingValues": [""],
            **({"primaryKey": list(table.table.keys)} if table.table.keys else {}),
        },
    }


def _field(field: pa.Field, entry: Entry, content: Content) -> dict[str, Any]:
    labels = content.words.values(entry.name) if pa.types.is_string(field.type) else {}
    return {
        "name": entry.name,
        "type": _type(field.type),
        "title": entry.title,
        "description": f"{entry.meaning}. {entry.computed}. Missing: {entry.missing}.",
        **({"unit": entry.unit} if entry.unit else {}),
        **({"value_labels": labels} if labels else {}),
    }


def _type(kind: pa.DataType) -> str:
    if pa.types.is_string(kind):
        return "string"
    if pa.types.is_boolean(kind):
        return "boolean"
    return "integer" if pa.types.is_integer(kind) else "number"
