"""Everything that is published about a few small releases: tables, dictionaries, files of every format, pages and changes."""

import json
import re
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import openpyxl
import pyreadstat

import recordwise as rw
from recordwise.errors import ParameterError
from recordwise.plan.publication import StatusRules
from recordwise.release.content import basic_first, datapackage_json, short_titles
from recordwise.release.dictionary import headings
from recordwise.release.formats.registry import known_formats
from recordwise.release.page.charts import chart_text, draw, gauge, rungs
from recordwise.release.page.page import page_html
from recordwise.release.page.results import headlines, results_json, results_of
from recordwise.release.page.view import page_json, payload, view_of
from release.rich_releases import plain, rich, selected

Told = Iterator[tuple[str, Any]]


def private(release: rw.Release) -> rw.Release:
    """Some answers are given of private releases alone; noise from a seed serves as well here."""
    return replace(release, private=True)


@cache
def releases() -> dict[str, rw.Release]:
    """Each kind of release that files and pages are made of."""
    rules = StatusRules(limits=(("good", 0.1), ("fair", 0.3)), otherwise="bad", withheld=("bad",))
    return {
        "rich": private(rich()),
        "fitted": plain().consistent(draws=20, complete=True),
        "basic": private(rich().basic(units={"emp": 5, "pay": "0.5"}, rules=rules)),
        "selected": selected().with_labels(names=False),
        "later": private(rich(2)).with_history(private(rich(1))),
    }


def of_tables() -> Told:
    for name, release in releases().items():
        for table in (*release.tables, *release.basic_tables):
            if name != "later":
                yield f"{name}, {table.name}", table.data
        yield f"{name}, words", [repr(release), release.privacy_label]


def of_forms() -> Told:
    """release.json and policy.json."""
    for name, release in releases().items():
        for part, value in release.to_json().items():
            yield f"{name}, {part}", value
        yield f"{name}, policies", release.policies().form


def of_contents() -> Told:
    """Titles, dictionaries and the description for machines."""
    for name, release in releases().items():
        content = release.content()
        yield f"{name}, titles", [content.title, content.file_name, content.private, content.confidence]
        for research in ("", " (research)"):
            yield f"{name}, short titles{research}", short_titles(content.tables, research=research)
        yield f"{name}, order", [each.name for each in basic_first(content.tables)]
        for table in content.tables:
            yield f"{name}, {table.name}", [each.to_json() for each in table.columns]
            yield f"{name}, {table.name}, about", [table.title, table.halves, table.reaches, sorted(table.signed)]
            yield f"{name}, {table.name}, heads", [headings(table.columns), table.telling_keys(), table.coarser]
        yield f"{name}, package", datapackage_json(content, {f"{each.name}.csv" for each in content.tables[:2]})


def of_pages() -> Told:
    """What pages hold, and what is read on them before any script runs."""
    for name, release in releases().items():
        files = {"a.csv": "the whole table", "b.parquet": "the same"}
        view = view_of(release, files)
        for part, value in payload(view).items():
            yield f"{name}, {part}", value
        yield f"{name}, start", [view.start, [each.to_json() for each in view.questions]]
        for number, figure in enumerate(view.figures):
            yield (
                f"{name}, figure {number}",
                [figure.to_json(), draw(figure, number), chart_text(figure), rungs(figure)],
            )
        content = release.content()
        results = results_of(release, content)
        yield f"{name}, results", results_json(results, content, [table.name for table in content.tables])
        yield f"{name}, headlines", headlines(content, results)
        yield f"{name}, json", page_json(release, {"emp": "employees"})
        page = re.sub(r"(?s)<(script|style)\b.*?</\1>", " ", page_html(view))
        yield f"{name}, words", re.sub(r"\s+", " ", page)
    yield "gauge", gauge()


def of_files() -> Told:
    """Files of every format, cell by cell."""
    with TemporaryDirectory() as place:
        for name in ("rich", "fitted", "basic"):
            release = private(releases()[name])
            for format in ("csv", "long", "sdmx-csv", "cbp", "r"):
                for at in (0, len(release.tables) - 1, len(release.tables) - 4):
                    table = release.tables[at].name
                    file = Path(place) / f"{name}-{format}-{at}.txt"
                    try:
                        release.export(file, format=format, table=None if format == "r" else table)
                        text = file.read_text(encoding="utf-8")
                        yield f"{name}, {format}, {table}", text.split("rw_total <-")[0].splitlines()
                    except ParameterError as refused:
                        yield f"{name}, {format}, {table}", f"refused: {refused}"
            for format, extension in (("stata", "dta"), ("sas", "xpt"), ("sas8", "v8xpt")):
                file = Path(place) / f"{name}.{extension}"
                release.export(file, format=format, table=release.tables[-4].name)
                read = pyreadstat.read_dta if format == "stata" else pyreadstat.read_xport
                frame, about = read(str(file))
                held = {column: frame[column].astype(str).tolist() for column in frame.columns}
                yield f"{name}, {format}", [about.file_label, about.column_names_to_labels, held]


def of_workbooks() -> Told:
    """The cells of workbooks, with formulas, widths, heights, links and styles."""
    with TemporaryDirectory() as place:
        for name in ("rich", "basic"):
            file = private(releases()[name]).export(Path(place) / f"{name}.xlsx", format="xlsx")
            book = openpyxl.load_workbook(file)
            for sheet in book:
                rows = [[cell.value for cell in row] for row in sheet.iter_rows()]
                widths = {letter: each.width for letter, each in sheet.column_dimensions.items()}
                heights = {str(row): each.height for row, each in sheet.row_dimensions.items() if each.height}
                looks = [
                    [cell.number_format, cell.font.b, cell.alignment.indent] for row in sheet["A1:E6"] for cell in row
                ]
                links = [[each.ref, each.location, each.target] for each in sheet._hyperlinks]
                frozen = [sheet.freeze_panes, sheet.auto_filter.ref, sheet.page_setup.orientation]
                yield f"{name}, {sheet.title}", [rows, widths, heights, looks, links, frozen]
                checks = [[str(each.sqref), each.type, each.formula1] for each in sheet.data_validations.dataValidation]
                yield f"{name}, {sheet.title}, choices", checks
            with zipfile.ZipFile(file) as packed:
                yield f"{name}, about", packed.read("docProps/core.xml").decode()
            content = private(releases()[name]).content()
            format = known_formats()["xlsx"]
            yield f"{name}, same", [format.same(content, file), format.privacy_label(file)]


def of_changes() -> Told:
    """From one period to the next, as they are, with a crosswalk and by groups."""
    now, before = private(rich(2)), private(rich(1))
    hows: dict[str, Any] = {
        "plain": {},
        "crosswalk": {"crosswalk": {"naics": {"311": "3121", "332": "332"}}},
        "merged": {"crosswalk": {"county": {"01001": "x", "0103": "x"}}},
        "groups": {"groups": {"state": {"01": "south", "13": "south"}, "kind": {"open": "some", "old": "some"}}},
    }
    for name, how in hows.items():
        try:
            found = now.change(before, **how)
        except ParameterError as refused:
            yield name, f"refused: {refused}"
            continue
        for table, data in found.tables.items():
            yield f"{name}, {table}", data
        content = found.content()
        yield f"{name}, confidence", [found.confidence, repr(found), found.to_json()]
        for described in content.tables:
            yield f"{name}, {described.name}, columns", [each.to_json() for each in described.columns]
            yield f"{name}, {described.name}, title", described.title
    with TemporaryDirectory() as place:
        folder = now.change(before).save(Path(place) / "changes", formats=("csv", "xlsx"))
        for path in sorted(folder.iterdir()):
            text = path.read_text(encoding="utf-8").splitlines() if path.suffix in (".csv", ".json") else ""
            yield f"saved, {path.name}", text[:40]


def of_fits() -> Told:
    """Fitted tables that follow from formulas, records made of them, and totals of words beside them."""
    for method in ("ols", "top_down"):
        for complete in (False, True):
            found = plain().consistent(method=method, complete=complete)
            for table in found.tables:
                fitted = [name for name in table.data.column_names if "_fit" in name or "_best" in name]
                yield f"{method}, {complete}, {table.name}", table.data.select(fitted)
            said = found.to_json()["consistent"]
            yield f"{method}, {complete}, said", {name: each for name, each in said.items() if name != "variables"}
            yield f"{method}, {complete}, bias", [each.data.column_names for each in found.tables][:1]
    for name, how in {"weighted": {"weighted": True, "values": ["emp"]}, "whole": {"whole": True}}.items():
        made: Any = plain().records(of="n", complete=True, method="top_down", **how)
        table = made.table if hasattr(made, "table") else made.data
        # Which of several cells with equal fractions is rounded up depends on the last digit, and so on the processor.
        yield f"records, {name}", table.group_by(["state"]).aggregate([([], "count_all")]) if name == "whole" else table
        yield f"records, {name}, words", [repr(made), getattr(made, "notes", "")]
    for name, wrong in {
        "unknown": {"method": "other"},
        "priority": {"priority": ["patterns_state_by_total"]},
        "at most": {"at_most": {"n": "nothing"}},
        "few draws": {"draws": 3},
        "gamma": {"method": "reweighted", "gamma": 1.0},
        "slack": {"method": "max_fit", "slack": 0.0},
    }.items():
        try:
            plain().consistent(**wrong)  # type: ignore[arg-type]
            yield f"refused, {name}", "accepted"
        except ParameterError as refused:
            yield f"refused, {name}", str(refused)


def of_saved() -> Told:
    """A saved folder, read again."""
    with TemporaryDirectory() as place:
        folder = releases()["rich"].save(Path(place) / "out", formats=("parquet", "csv", "r"))
        said = json.loads((folder / "release.json").read_text(encoding="utf-8"))
        yield "files", sorted(path.name for path in folder.iterdir())
        for part, value in said.items():
            yield f"release.json, {part}", value
        yield "datapackage.json", json.loads((folder / "datapackage.json").read_text(encoding="utf-8"))
        again = rw.read(folder)
        yield "read", [again.names, again.title, again.digest == releases()["rich"].digest, repr(again)]
        (folder / "by_kind.csv").write_text("other")
        (folder / "recordwise.R").unlink()
        yield "problems", rw.reader.reading.problems(folder)


SUBJECTS = {
    "tables": of_tables,
    "forms": of_forms,
    "contents": of_contents,
    "pages": of_pages,
    "files": of_files,
    "workbooks": of_workbooks,
    "changes": of_changes,
    "fits": of_fits,
    "saved": of_saved,
}
