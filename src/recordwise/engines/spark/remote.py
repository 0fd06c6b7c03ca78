"""Parquet files that only Spark can find: names and types of every file, from the footers, and no record.

Spark takes the types of one file; a column that another file lacks would be missing values there without a word.
"""

import re
from typing import Any
from urllib.parse import unquote, urlsplit

from recordwise.engines.problems import check_present
from recordwise.engines.sources.parquet_files import ADVICE, beside_folders, no_zone, unique_names
from recordwise.errors import SourceError
from recordwise.plan.schema import Schema


def check_remote(session: Any, frame: Any, schema: Schema) -> None:
    """Refuse files of which one lacks a declared column or stores it otherwise than the first."""
    files, first = sorted(frame.inputFiles()), dict[str, str]()
    for number, address in enumerate(files, 1):
        where = f"file {number} of {len(files)}" if len(files) > 1 else "the source"
        found = _stored_as(session, address)
        names = schema.names()
        folders = {part.partition("=")[0] for part in unquote(urlsplit(address).path).split("/")[:-1] if "=" in part}
        named = tuple(name for name in names if name in folders)
        beside_folders(named, list(found), where)
        check_present([name for name in names if name not in named], list(found), source=where)
        unique_names(names, list(found), where)
        for name in found.keys() & set(names):
            if found[name].startswith("int96"):
                raise no_zone(name, where)
            if found[name] != first.setdefault(name, found[name]):
                raise SourceError(
                    source=f"column '{name}'",
                    problem=f"{where} stores it as {found[name]}, and the first as {first[name]}",
                    advice=ADVICE,
                )


def _stored_as(session: Any, address: str) -> dict[str, str]:
    """How a file stores its columns, as Parquet writes it."""
    java = session._jvm
    path = java.org.apache.hadoop.fs.Path(java.java.net.URI(address))
    settings = session._jsparkSession.sessionState().newHadoopConf()
    file = java.org.apache.parquet.hadoop.util.HadoopInputFile.fromPath(path, settings)
    reader = java.org.apache.parquet.hadoop.ParquetFileReader.open(file)
    try:
        fields = list(reader.getFooter().getFileMetaData().getSchema().getFields())
    finally:
        reader.close()
    found = {field.getName(): _plain(str(field), field.getName()) for field in fields}
    if len(found) < len(fields):
        raise SourceError(source="the source", problem="two columns of one of its files have the same name")
    return found


def _plain(written: str, name: str) -> str:
    """The type without the name, the number of the field and whether a value must be there."""
    bare = re.sub(r"^(required|optional) ", "", written)
    return re.sub(r" = \d+$", "", bare.replace(f" {name}", "", 1))
