"""Random tables in random files: every one that is accepted has the totals that an independent reader finds, cell by cell.

A table may be refused; then nothing is charged and the message quotes nothing of its records. One that the independent reader
cannot read must be refused, and a plain one must not. A case is made again by its number: ``made(number, folder)``.
"""

import shutil
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import recordwise as rw
from build import employers
from engine_choice import Choice
from engines.independent_reader import Reader, Refused
from engines.lenient_readers import CAUGHT
from engines.plain_mechanism import Plain
from engines.random_files import write
from engines.random_oddities import spoil
from engines.random_sources import SEED, Case, make
from recordwise.errors import RecordwiseError
from recordwise.plan import Column, Measure, Plan, Schema
from recordwise.plan.query import query

M = Plain()
FOLDERS, BATCH = 2000, 250
SAMPLE, FEW = range(60), range(5)


@dataclass(frozen=True)
class Outcome:
    """What became of a case: totals by table and cell without empty cells, or why it was refused."""

    totals: Any = None
    refused: str = ""
    error: BaseException | None = None


def made(number: int, place: Path) -> Case:
    folder = place / f"case{number}"
    folder.mkdir()
    return make(number, folder, write, spoil)


def expected(case: Case, reader: Reader) -> Outcome:
    """What the independent reader finds."""
    try:
        records = reader.records(case.files, case.declared)
    except Refused as refusal:
        return Outcome(refused=str(refusal), error=refusal)
    except (pa.ArrowException, OSError) as error:
        return Outcome(refused="damaged", error=error)
    measures = [each for each in case.declared if each.role == "measure"]
    (step,) = (each.step for each in measures if each.name == "emp")
    found: list[dict[Any, list[int]]] = [{}, {}, {}]
    for record in records:
        cell = tuple(record[name].month if name == "opened" and record[name] else record[name] for name in case.keys)
        numbers = [1, *(record[each.name] for each in measures)]
        listed = all(value in case.keys[name] for name, value in zip(case.keys, cell))
        above = record["emp"] * step >= case.least
        for table, place, counts in ((0, (), True), (1, cell, listed), (2, (), above)):
            if counts:
                found[table][place] = [a + b for a, b in zip(found[table].get(place, [0] * len(numbers)), numbers)]
    return Outcome(totals=[without_empty(each) for each in found])


def without_empty(cells: dict[Any, list[int]]) -> dict[Any, list[int]]:
    return {cell: numbers for cell, numbers in cells.items() if any(numbers)}


def schema_of(case: Case) -> Schema:
    return Schema.of(
        unit="id",
        measures={
            each.name: Measure.of(
                each.name, step=each.step, bound=each.bound, null="zero" if each.null else "refuse", signed=each.signed
            )
            for each in case.declared
            if each.role == "measure"
        },
        columns={
            each.name: Column(name=each.name, type=each.role, null="category" if each.null else "refuse")
            for each in case.declared
            if each.role not in ("id", "measure")
        },
    )


def source_of(case: Case) -> Any:
    files = case.files
    if files.kind == "csv":
        return rw.sources.Csv(files.paths, delimiter=files.delimiter, decimal=files.decimal, encoding=files.encoding)
    if files.kind == "sqlite":
        return rw.sources.Database(files.place / "firms.db", table=files.table)
    return files.place if files.kind == "hive" else list(files.paths)


def questions(case: Case, of_count: Any = M, of_sum: Any = M) -> list[Any]:
    """Everything, everything by cell, and what a condition selects."""
    groups = [rw.month(name) if name == "opened" else name for name in case.keys]
    listed = list(product(*case.keys.values()))
    names = ["opened_month" if name == "opened" else name for name in case.keys]
    keys = {name: [row[place] for row in listed] for place, name in enumerate(names)}
    asked = [query(), query().group_by(*groups, keys=keys), query().where(f"emp >= {case.least}")]
    measures = [each.name for each in case.declared if each.role == "measure"]
    found = []
    for each in asked:
        each = each.count(of_count)
        for name in measures:
            each = each.sum(name, of_sum)
        found.append(each)
    return found


def outcome(case: Case, opens: Any) -> Outcome:
    """What an engine finds."""
    schema = schema_of(case)
    try:
        with opens(source_of(case), schema, threads=1) as engine:
            answers = engine.totals(Plan(schema=schema, queries=tuple(questions(case))))
    except RecordwiseError as error:
        return Outcome(refused=str(error), error=error)
    found = []
    for answer in answers:
        columns = [each.tolist() for each in answer.exact.reveal().totals.values()]
        cells = zip(*(column.to_pylist() for column in answer.cells.columns)) if answer.cells.num_columns else [()]
        found.append(without_empty(dict(zip(cells, map(list, zip(*columns))))))
    return Outcome(totals=found)


def faults(case: Case, wanted: Outcome, got: Outcome) -> list[str]:
    """What is wrong with an outcome."""
    told = [] if got.error is None else [str(got.error), repr(got.error.args), repr(got.error.__cause__)]
    quoted = sorted(mark for mark in case.marks if any(mark in text for text in told))
    if quoted:
        return [f"its message quotes {quoted}: {got.refused}"]
    if got.error is not None:
        return [f"a plain table is refused: {got.refused}"] if wanted.totals is not None and not case.odd else []
    if wanted.totals is None:
        return [f"it must be refused ({wanted.refused}), and has {got.totals}"]
    return [f"{got.totals} instead of {wanted.totals}"] if got.totals != wanted.totals else []


def charged(case: Case, **how: Any) -> list[str]:
    """What is wrong where a session is asked to publish a table that is refused: it is not, or something is charged."""
    schema = schema_of(case)
    measures, columns = ({each.name: each for each in listed} for listed in (schema.measures, schema.columns))
    try:
        session = employers(source_of(case), measures=measures, columns=columns, **how)
    except RecordwiseError as error:
        return faults(case, Outcome(), Outcome(refused=str(error), error=error))
    with session:
        try:
            session.run(*questions(case, rw.Gaussian(rho="0.1"), rw.Gaussian(sigma=10)))
        except RecordwiseError as error:
            kinds = [event.kind for event in session.history()]
            return faults(case, Outcome(), Outcome(refused=str(error), error=error)) + [kinds] * ("charged" in kinds)
    return ["it is published"]


@dataclass
class Tally:
    """What became of many cases."""

    faults: list[str]
    counts: Counter[str]

    def check(self) -> None:
        """No fault, and enough of each kind that this says something: plain tables, odd ones that pass, refusals."""
        assert not self.faults, f"seed {SEED}: " + "\n".join(self.faults)
        total = sum(self.counts.values())
        shares = {"plain": 0.1, "odd": 0.15, "refused": 0.25}
        assert all(self.counts[name] >= share * total for name, share in shares.items()), self.counts


def attacked(
    numbers: Iterable[int], place: Path, subject: Callable[[Case], Outcome], *, charges: bool = False
) -> Tally:
    found, reader = Tally([], Counter()), Reader()
    for number in numbers:
        case = made(number, place)
        wanted, got = expected(case, reader), subject(case)
        wrong = faults(case, wanted, got) + (charged(case) if charges and got.error is not None else [])
        found.faults += [f"case {number}, {case.files.kind}, {list(case.odd)}: {each}" for each in wrong]
        found.counts["refused" if got.error is not None else "odd" if case.odd else "plain"] += 1
        shutil.rmtree(case.files.place)
    return found


@pytest.mark.costly
def test_what_duckdb_accepts_of_random_files_is_what_an_independent_reader_reads(tmp_path):
    opens = Choice("duckdb")
    attacked(SAMPLE, tmp_path, lambda case: outcome(case, opens)).check()


@pytest.mark.costly
def test_a_session_charges_nothing_for_random_files_that_are_refused(tmp_path):
    refused = [
        case for case in (made(number, tmp_path) for number in SAMPLE) if expected(case, Reader()).totals is None
    ]
    assert len(refused) >= 15
    assert not any(charged(case) for case in refused[:15])


def test_what_spark_accepts_of_random_files_is_what_an_independent_reader_reads(tmp_path, spark_session):
    opens = Choice("spark", spark_session)
    found = attacked(FEW, tmp_path, lambda case: outcome(case, opens))
    assert not found.faults


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, FOLDERS, BATCH))
def test_two_thousand_random_folders(opens, tmp_path, first):
    """Every refusal on DuckDB is tried once more through a session, which charges nothing."""
    on_duckdb = opens.name == "duckdb"
    found = attacked(range(first, first + BATCH), tmp_path, lambda case: outcome(case, opens), charges=on_duckdb)
    print(opens.name, first, dict(found.counts))
    found.check()


@pytest.mark.parametrize("lenient, number", CAUGHT.items(), ids=lambda each: getattr(each, "__name__", ""))
def test_a_reader_that_is_lenient_in_one_thing_is_caught(tmp_path, lenient, number):
    case = made(number, tmp_path)
    assert faults(case, expected(case, Reader()), expected(case, lenient()))


@pytest.mark.slow
def test_every_lenient_reader_is_caught_again_and_again(tmp_path):
    """The two thousand have their share of every kind of file, read and refused, and catch each lenient reader more than once."""
    kinds, caught = set(), {lenient: list[int]() for lenient in CAUGHT}
    for number in range(FOLDERS):
        case = made(number, tmp_path)
        wanted = expected(case, Reader())
        kinds.add((case.files.kind, wanted.totals is None))
        assert wanted.totals is not None or case.odd, number
        for lenient, numbers in caught.items():
            numbers += [number] if faults(case, wanted, expected(case, lenient())) else []
        shutil.rmtree(case.files.place)
    assert kinds == set(product(("parquet", "hive", "csv", "arrow", "sqlite"), (True, False)))
    assert all(len(numbers) > 2 for numbers in caught.values()), caught
    assert {lenient: numbers[0] for lenient, numbers in caught.items()} == CAUGHT


def test_a_message_that_quotes_a_record_is_caught(tmp_path):
    case = made(0, tmp_path)
    told = RecordwiseError(f"cannot read {min(case.marks)}")
    assert faults(case, expected(case, Reader()), Outcome(refused=str(told), error=told))
