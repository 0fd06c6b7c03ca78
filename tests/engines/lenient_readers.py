"""Readers that are lenient in one thing each, as engines are if nobody stops them: the test of random sources catches them all."""

import gzip
from dataclasses import replace
from typing import Any

import pyarrow as pa

from engines.independent_reader import Part, Reader, Refused


class RoundsMeasures(Reader):
    """1.6 is 2 and -0.4 is 0, where the policy is charged for what was stored."""

    def steps(self, value, step):
        return round(value / step)

    def steps_of_float(self, declared, value):
        if value != value or abs(value) == float("inf"):
            raise Refused("no number")
        return round(value / float(declared.step))


class RoundsIntegers(Reader):
    def integer(self, declared, kind, value, files):
        return super().integer(declared, kind, round(value) if kind == "float" and abs(value) < 1e18 else value, files)


class TellsIdsApartByTheirType(Reader):
    """'1' and 1.0 are two units, each with a budget of its own."""

    def identity(self, kind, value):
        return kind, str(value)


class DropsRepeatedIds(Reader):
    def ids(self, values):
        return [str(number) for number, _ in enumerate(values)]


class ReadsNumbersAsPythonDoes(Reader):
    """1_000, full-width digits, and blanks of every kind."""

    def steps_of_text(self, declared, text, files):
        try:
            return self.steps_of_float(declared, float(text.replace(",", ".") if files.decimal == "," else text))
        except (ValueError, OverflowError):
            raise Refused("no number") from None


class ReadsWholeNumbersAsPythonDoes(Reader):
    def integer(self, declared, kind, value, files):
        try:
            return super().integer(
                declared, "whole" if kind == "text" else kind, int(value) if kind == "text" else value, files
            )
        except ValueError:
            raise Refused("no number") from None


class KnowsNoBounds(Reader):
    def measure(self, declared, kind, value, files):
        return super().measure(replace(declared, bound=declared.bound * 2**80, signed=True), kind, value, files)


class TrimsText(Reader):
    def text(self, declared, kind, value, files):
        return super().text(declared, kind, value.strip() if kind == "text" else value, files)


class MakesTextOfNumbers(Reader):
    def text(self, declared, kind, value, files):
        return str(value)


class MakesTruthOfNumbers(Reader):
    def boolean(self, declared, kind, value, files):
        return bool(value) if kind in ("whole", "float") else super().boolean(declared, kind, value, files)


class TakesTheDayOfAZone(Reader):
    def date(self, declared, kind, value, files):
        return super().date(declared, "day" if kind == "zoned" else kind, value, files)


class ReadsLongDates(Reader):
    """What follows the first ten characters may be a zone, or anything."""

    def date(self, declared, kind, value, files):
        return super().date(declared, kind, value[:10] if kind == "text" else value, files)


class TakesNoValueForZero(Reader):
    def _value(self, declared, value, read, files):
        if value is None and declared.role == "measure":
            return 0
        return super()._value(declared, value, read, files)


class FillsMissingColumns(Reader):
    """A part without a column has NULL there."""

    def _arrow_part(self, table, names, given=None):
        for name in names:
            if name not in table.column_names and name not in (given or {}):
                table = table.append_column(name, pa.nulls(table.num_rows))
        return super()._arrow_part(table, names, given)


class TakesTheFirstOfTwoColumns(Reader):
    def _arrow_part(self, table, names, given=None):
        firsts = {name.casefold(): place for place, name in reversed(list(enumerate(table.column_names)))}
        return super()._arrow_part(table.select(sorted(firsts.values())), names, given)


class BelievesTheFolder(Reader):
    """The name of a folder counts more than the file's own column."""

    def _arrow_part(self, table, names, given=None):
        own = [place for place, name in enumerate(table.column_names) if name not in (given or {})]
        return super()._arrow_part(table.select(own) if given else table, names, given)


class ReplacesWhatIsNoText(Reader):
    def csv_text(self, path, files):
        try:
            return super().csv_text(path, files)
        except Refused:
            content = path.read_bytes()
            content = gzip.decompress(content) if path.suffix == ".gz" else content
            return content.decode(files.encoding, errors="replace")


class KeepsTheMark(Reader):
    """A byte order mark at the start of a file is part of its first name."""

    def csv_text(self, path, files):
        marked = files.encoding == "utf-8" and path.read_bytes().startswith(b"\xef\xbb\xbf")
        return ("\ufeff" if marked else "") + super().csv_text(path, files)


class KeepsEmptyText(Reader):
    def csv_value(self, text: str) -> Any:
        return "text", text


class StopsAtAnEmptyPart(Reader):
    """What follows a part without records is lost, as in a table that Spark was given in pieces."""

    def records(self, files, declared):
        self.stopped = False
        return super().records(files, declared)

    def _csv(self, files, names):
        for part in super()._csv(files, names):
            self.stopped = self.stopped or not part.columns["id"]
            yield Part({name: [] if self.stopped else values for name, values in part.columns.items()})


CAUGHT: dict[type[Reader], int] = {
    RoundsMeasures: 0,
    RoundsIntegers: 260,
    TellsIdsApartByTheirType: 143,
    DropsRepeatedIds: 12,
    ReadsNumbersAsPythonDoes: 56,
    ReadsWholeNumbersAsPythonDoes: 261,
    KnowsNoBounds: 41,
    TrimsText: 292,
    MakesTextOfNumbers: 311,
    MakesTruthOfNumbers: 64,
    TakesTheDayOfAZone: 305,
    ReadsLongDates: 367,
    TakesNoValueForZero: 32,
    FillsMissingColumns: 23,
    TakesTheFirstOfTwoColumns: 17,
    BelievesTheFolder: 14,
    ReplacesWhatIsNoText: 842,
    KeepsTheMark: 85,
    KeepsEmptyText: 58,
    StopsAtAnEmptyPart: 29,
}
"""Every lenient reader, with the first case that catches it. Another generator needs other numbers: the slow test lists them."""
