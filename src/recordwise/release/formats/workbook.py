"""How the parts of an Excel workbook are put together.

Programs find a sheet by relations and types, and show its numbers by styles. A workbook is read only if all of these are those
that xlsxwriter gives it, so that what is read is what readers see. It needs no package.
"""

import posixpath
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
DESCRIPTION = "{http://purl.org/dc/elements/1.1/}description"
RELATION = "{http://schemas.openxmlformats.org/package/2006/relationships}Relationship"
RELATION_ID = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
TYPES, BOOK, SHEET = "[Content_Types].xml", "xl/workbook.xml", "xl/worksheets/sheet"
OFFICE = "application/vnd.openxmlformats-officedocument."
PACKAGE = "application/vnd.openxmlformats-package."
PARTS = (
    (r"docProps/app\.xml", "", "extended-properties", f"{OFFICE}extended-properties+xml"),
    (r"docProps/core\.xml", "", "core-properties", f"{PACKAGE}core-properties+xml"),
    (r"xl/workbook\.xml", "", "officeDocument", f"{OFFICE}spreadsheetml.sheet.main+xml"),
    (r"xl/styles\.xml", BOOK, "styles", f"{OFFICE}spreadsheetml.styles+xml"),
    (r"xl/theme/theme1\.xml", BOOK, "theme", f"{OFFICE}theme+xml"),
    (r"xl/sharedStrings\.xml", BOOK, "sharedStrings", f"{OFFICE}spreadsheetml.sharedStrings+xml"),
    (r"xl/worksheets/sheet[1-9]\d*\.xml", BOOK, "worksheet", f"{OFFICE}spreadsheetml.worksheet+xml"),
    (r"xl/tables/table[1-9]\d*\.xml", SHEET, "table", f"{OFFICE}spreadsheetml.table+xml"),
)
"""Each part: its name, the start of that which refers to it, what relations call it, and its type."""
DEFAULTS = {"rels": f"{PACKAGE}relationships+xml", "xml": "application/xml"}
SHOWN = {"@", "#,##0", "#,##0.##"}
BUILT_IN, OWN = {"0", "3", "49"}, 164
"""How numbers may be shown; the ids that Excel gives to these ways, and the first id of further ones."""


def label_of(path: Path) -> str:
    """The comment in a workbook's properties."""
    with zipfile.ZipFile(path) as book:
        return ElementTree.fromstring(book.read("docProps/core.xml")).findtext(DESCRIPTION) or ""


def sheets_of(path: Path) -> list[str]:
    """Return the names of the sheets in the order of their files; none if the workbook is not put together as ours."""
    with zipfile.ZipFile(path) as book:
        names = book.namelist()
        kinds = {name: kind for name in names if (kind := _kind(name)) is not None}
        holders = {_relations_name(name): name for name in ("", *kinds)}
        if len(names) != len(set(names)) or any(name not in kinds | holders and name != TYPES for name in names):
            return []
        related = [
            (holder, *each)
            for name, holder in holders.items()
            if name in names
            for each in _relations(book.read(name), holder)
        ]
        places = {each: place for holder, each, place, _ in related if holder == BOOK}
        typed = [dict(each.attrib) for each in ElementTree.fromstring(book.read(TYPES))]
        sheets = [dict(each.attrib) for each in ElementTree.fromstring(book.read(BOOK)).iter(f"{MAIN}sheet")]
        shown = _ways_shown(book.read("xl/styles.xml"))
    known = [{"Extension": name, "ContentType": kind} for name, kind in DEFAULTS.items()]
    known += [{"PartName": f"/{name}", "ContentType": kind[3]} for name, kind in kinds.items()]
    found = [
        sheet.keys() == {"name", "sheetId", RELATION_ID} and places.get(sheet[RELATION_ID]) == sheet_file(number)
        for number, sheet in enumerate(sheets, 1)
    ]
    whole = (
        all(found)
        and sorted(map(str, typed)) == sorted(map(str, known))
        and sorted(place for _, _, place, _ in related) == sorted(kinds)
        and all(kinds[place][1:3] == (_start(holder), kind) for holder, _, place, kind in related)
        and sum(kind[2] == "worksheet" for kind in kinds.values()) == len(sheets)
        and shown <= SHOWN | BUILT_IN
    )
    return [sheet["name"] for sheet in sheets] if whole else []


def sheet_file(number: int) -> str:
    """The file of a sheet."""
    return f"{SHEET}{number}.xml"


def _kind(name: str) -> tuple[str, str, str, str] | None:
    return next((each for each in PARTS if re.fullmatch(each[0], name)), None)


def _start(holder: str) -> str:
    """A part that refers to others, any sheet being as good as another."""
    return SHEET if holder.startswith(SHEET) else holder


def _relations_name(part: str) -> str:
    folder, name = posixpath.split(part)
    return posixpath.join(folder, "_rels", f"{name}.rels")


def _relations(xml: bytes, part: str) -> Iterator[tuple[str, str, str]]:
    """Yield the id, the place and the kind of each relation of a part."""
    for each in ElementTree.fromstring(xml):
        inside = each.tag == RELATION and each.keys() == ["Id", "Type", "Target"]
        place = posixpath.normpath(posixpath.join(posixpath.dirname(part), each.get("Target", ""))) if inside else ""
        yield each.get("Id", ""), place, each.get("Type", "").rpartition("/")[2]


def _ways_shown(styles: bytes) -> set[str]:
    """The formats of numbers, and the ids of those in styles that are Excel's."""
    root = ElementTree.fromstring(styles)
    codes = {each.get("formatCode", "") for each in root.iter(f"{MAIN}numFmt")}
    ids = {each.get("numFmtId", "0") for each in root.iter(f"{MAIN}xf")}
    return codes | {each for each in ids if int(each) < OWN}
