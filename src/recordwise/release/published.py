"""What release.json says, as typed values: written and read here alone.

Its entries about columns (accuracy, fits, basic tables) are written and read in ``tables``, that for the page in ``page.view``.
Files of every earlier version are read. What was read is written again unchanged, with entries that only other versions know.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict, Unpack

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recordwise.exact.arithmetic import FloatArray
from recordwise.exact.numbers import read_fraction
from recordwise.plan.arrays import array_from_list, null_as, numpy_of
from recordwise.plan.expressions import DatePart, Field, Operand, Prefix, finer, operand_name
from recordwise.plan.publication import Labels, Publication
from recordwise.plan.statistics import Statistic, statistic_kind
from recordwise.policy.json import Bands, PolicyFile, bands_from_json
from recordwise.policy.policy import Policy
from recordwise.policy.series import Head, Step
from recordwise.release.tables import BASIC, Accuracy, BasicNote, FitNote, Form, ReleasedTable, accuracy

if TYPE_CHECKING:
    from recordwise.ledger.ledger import LedgerStatement
    from recordwise.plan.describe import DeclaredClass

FORMAT = 1
LEVEL = 0.95
"""The confidence of intervals where a release does not state it."""
LARGEST = Fraction(2**53)
"""The bound of a measure that states none."""
FIT, BASIC_TABLES, NAMES = "consistent", "basic", "name_columns"
OF_THE_FILE = (
    *("recordwise_release", "mark", "digest", "ledger", "flags", "accuracy"),
    *("page", "sha256", "units", "publication", "name_columns"),
)
"""Entries that follow from the rest of a release and are written each time it is saved."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedGroup:
    """A column that tells the cells of a table apart."""

    name: str
    expression: Operand | None = None
    """What its values are; None for a CASE."""
    case: str = ""
    """The branches of a CASE, as text."""
    hierarchy: str | None = None
    """The list of codes, where it is a coarser level of one."""
    determined_by: tuple[str, ...] = ()
    """The other levels of the list that determine it."""

    @classmethod
    def read(cls, form: Form) -> "PublishedGroup":
        """Read a group of a table."""
        name = str(form["name"])
        if "level" in form:
            below = tuple(map(str, form["determined_by"]))
            return cls(name=name, expression=Field(form["level"]), hierarchy=form["hierarchy"], determined_by=below)
        if "prefix_of" in form:
            return cls(name=name, expression=Prefix(form["prefix_of"], form["length"]))
        if "part" in form:
            return cls(name=name, expression=DatePart(form["of"], form["part"]))
        if "column" in form:
            return cls(name=name, expression=Field(form["column"]))
        return cls(name=name, case=json.dumps([form.get("case"), form.get("else")], sort_keys=True))

    @property
    def source(self) -> str:
        """The column or level that its values are from; its own name for a CASE."""
        return self.name if self.expression is None else operand_name(self.expression)

    @property
    def level(self) -> str | None:
        """The level of a hierarchy that it may be: a coarser one, or the column that records hold."""
        return self.expression.name if isinstance(self.expression, Field) else None

    def determines(self, other: "PublishedGroup") -> bool:
        """Whether the value of the other group is a function of the value of this one."""
        if self == other or self.expression is None or other.expression is None:
            return self == other
        # A column that two tables publish under two names was never taken for the same, and fits of such releases exist.
        if not isinstance(other.expression, Prefix) and self.expression == other.expression:
            return False
        return finer(self.expression, other.expression, {other.source: other.determined_by})


Groups: TypeAlias = Sequence[PublishedGroup]


def read_groups(forms: Iterable[Form]) -> tuple[PublishedGroup, ...]:
    """Read the groups of a table."""
    return tuple(map(PublishedGroup.read, forms))


@dataclass(frozen=True, slots=True, kw_only=True)
class SizedBands:
    """The bands of the cells of a table for a statistic whose noise is sized."""

    digest: str
    edges: tuple[Fraction, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedTable:
    """One table of a query."""

    name: str
    by: tuple[PublishedGroup, ...]
    share: Fraction
    rest: bool
    """Whether the rests of a coarser table are published in it."""
    selected: bool
    """Whether its keys were selected privately."""
    sized: Mapping[str, SizedBands]
    sized_on: tuple[str, ...]
    """Where the sizes of its cells are from."""
    sizes: str
    """The digest of these sizes."""

    @classmethod
    def read(cls, form: Form) -> "PublishedTable":
        """Read a table of a query."""
        sized = {
            str(name): SizedBands(digest=str(each["bands"]), edges=tuple(map(read_fraction, each["edges"])))
            for name, each in form.get("sized", {}).items()
        }
        return cls(
            name=str(form["name"]),
            by=read_groups(form["by"]),
            share=Fraction(form["share"]),
            rest="rest" in form,
            selected="keys" in form,
            sized=sized,
            sized_on=tuple(map(str, form.get("sized_on", ()))),
            sizes=str(form.get("sizes", "")),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedStatistic:
    """One statistic of a query."""

    name: str
    kind: str
    of: str | None = None
    noise: Form | None = None
    """Its mechanism, as saved; None where it is computed from others."""
    own: Mapping[str, "PublishedStatistic"] = field(default_factory=dict)
    """Where queries are joined, what each table publishes: name and mechanism may differ from query to query."""
    names: tuple[str, ...] = ()
    """Where queries are joined, its name in each of them."""

    @classmethod
    def read(cls, form: Form) -> "PublishedStatistic":
        """Read a statistic of a query."""
        name = str(form["name"])
        return cls(name=name, kind=str(form["kind"]), of=form.get("of"), noise=form.get("mechanism"), names=(name,))

    @property
    def rules(self) -> type[Statistic]:
        """The kind of statistic, which says how its numbers behave."""
        return statistic_kind(self.kind)

    def mechanism(self) -> Any | None:
        """Return its mechanism, or None if it is not ours."""
        from recordwise.mechanisms.registry import mechanism_from_json

        return None if self.noise is None else mechanism_from_json(self.noise)

    def in_table(self, table: str) -> "PublishedStatistic":
        """Return what a table publishes of it."""
        return self.own.get(table, self)


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedQuery:
    """One query, or several that are fitted together."""

    numbers: tuple[int, ...]
    """Where it is in the plan, counted from 1."""
    title: str = ""
    where: Any = None
    """The condition, as saved."""
    tables: tuple[PublishedTable, ...] = ()
    statistics: tuple[PublishedStatistic, ...] = ()
    external: bool = False

    @classmethod
    def read(cls, form: Form, number: int) -> "PublishedQuery":
        """Read a query of the plan."""
        return cls(
            numbers=(number,),
            title=str(form.get("title", "")),
            where=form.get("where"),
            tables=tuple(map(PublishedTable.read, form.get("tables", ()))),
            statistics=tuple(map(PublishedStatistic.read, form.get("statistics", ()))),
            external="statistics" not in form,
        )

    def group(self, name: str) -> PublishedGroup | None:
        """Return a group of any of its tables by name."""
        return next((each for table in self.tables for each in table.by if each.name == name), None)

    def statistic(self, name: str) -> PublishedStatistic | None:
        """Return a statistic by name."""
        return next((each for each in self.statistics if each.name == name), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedMeasure:
    """A measure of the records."""

    step: Fraction = Fraction(1)
    bound: Fraction = LARGEST
    signed: bool = False
    derived: bool = False

    @classmethod
    def read(cls, form: Form) -> "PublishedMeasure":
        """Read a measure of the schema."""
        return cls(
            step=Fraction(form["step"]),
            bound=Fraction(form["bound"]),
            signed=bool(form.get("signed")),
            derived="derive" in form,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeList:
    """A public list of codes, with the levels of each."""

    name: str
    levels: tuple[str, ...]
    source: str
    digest: str
    not_nested: tuple[tuple[str, str], ...]
    values: Mapping[str, Form]

    @classmethod
    def read(cls, form: Form) -> "CodeList":
        """Read a hierarchy."""
        return cls(
            name=str(form["name"]),
            levels=tuple(map(str, form["levels"])),
            source=str(form["source"]),
            digest=str(form["digest"]),
            not_nested=tuple((str(one), str(two)) for one, two in form.get("not_nested", ())),
            values=form["list"],
        )

    def level(self, name: str) -> pa.Array:
        """Return the value of a level for each listed code."""
        listed = self.values[name]
        values = array_from_list(listed["values"])
        return values.take(array_from_list(listed["codes"])) if "codes" in listed else values

    def table(self) -> pa.Table:
        """Return a row for each finest code and a column for each level, the finest last."""
        return pa.table({name: self.level(name) for name in self.levels})


@dataclass(frozen=True, slots=True)
class CodeLists:
    """The lists of a release, by the name of the hierarchy."""

    lists: Mapping[str, CodeList] = field(default_factory=dict)

    @classmethod
    def read(cls, forms: Iterable[Form]) -> "CodeLists":
        """Read hierarchies."""
        return cls({each.name: each for each in map(CodeList.read, forms)})

    def tables(self) -> dict[str, pa.Table]:
        """Return each list as a table."""
        return {name: each.table() for name, each in self.lists.items()}

    def hierarchy_of(self, group: PublishedGroup) -> str | None:
        """Return the list that a group is a level of; the finest level is a column of the records."""
        finest = {each.levels[-1]: name for name, each in self.lists.items()}
        return group.hierarchy or (None if group.level is None else finest.get(group.level))

    def above(self, group: PublishedGroup, source: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
        """Return the values of a coarser level for a column of codes of the level ``source``."""
        fine, coarse = self._pair(group, source)
        return coarse.take(pc.index_in(column, value_set=fine))

    def count_below(self, group: PublishedGroup, source: str, column: pa.ChunkedArray) -> FloatArray:
        """Count the values of ``source`` below each coarser value."""
        # Tables group by loading what is needed for data sets, and with it pandas.
        fine, coarse = (each.dictionary_encode(null_encoding="encode") for each in self._pair(group, source))
        places = np.asarray(numpy_of(fine.indices), np.int64), np.asarray(numpy_of(coarse.indices), np.int64)
        told = np.asarray(numpy_of(pc.is_valid(fine.dictionary)), bool)[places[0]]
        different = np.unique(places[1][told] * len(fine.dictionary) + places[0][told])
        counts = np.bincount(different // max(len(fine.dictionary), 1), minlength=len(coarse.dictionary))
        found = np.asarray(null_as(pc.index_in(column, value_set=coarse.dictionary), -1), np.int64)
        return np.append(counts, 0).astype(np.float64)[found]

    def _pair(self, group: PublishedGroup, source: str) -> list[pa.Array]:
        listed = self.lists[str(group.hierarchy)]
        return [listed.level(source), listed.level(group.source)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """One published period of a series: its charges and its budget."""

    name: str
    policy: Policy
    budget: Policy | None
    declared: str
    """When the budget was declared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierRevision:
    """A release that a later one of the same period replaces."""

    revision: int
    date: str
    digest: str

    @classmethod
    def read(cls, form: Form) -> "EarlierRevision":
        """Read the release that a series says is revised."""
        return cls(revision=form["revision"], date=form["date"], digest=form["digest"])


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedSeries:
    """The series and period that a release belongs to."""

    name: str = ""
    period: str = ""
    revision: int = 0
    date: str = ""
    """The day of the charge."""
    revises: tuple[EarlierRevision, ...] = ()
    periods: tuple[Period, ...] = ()
    """The periods so far, with this one."""

    @classmethod
    def read(cls, form: Form) -> "PublishedSeries":
        """Read the series."""
        bands = bands_from_json(form.get("bands"))
        periods = tuple(
            Period(
                name=each["period"],
                policy=Policy.from_json(each["policy"], bands),
                budget=None if each["budget"] is None else Policy.from_json(each["budget"], bands),
                declared=each["budget_declared"],
            )
            for each in form.get("periods", ())
        )
        return cls(
            name=form.get("name", ""),
            period=form.get("period") or "",
            revision=form.get("revision", 0),
            date=form.get("date", ""),
            revises=tuple(map(EarlierRevision.read, form.get("revises", ()))),
            periods=periods,
        )

    def to_json(self) -> dict[str, Any]:
        """Write the series."""
        from recordwise.ledger.entries import band_forms

        periods = [
            {
                "period": each.name,
                "policy": each.policy.to_json(),
                "budget": None if each.budget is None else each.budget.to_json(),
                "budget_declared": each.declared,
            }
            for each in self.periods
        ]
        bands = band_forms(policy for each in self.periods for policy in (each.policy, each.budget))
        return {
            "name": self.name,
            "period": self.period,
            "revision": self.revision,
            "date": self.date,
            "revises": [asdict(each) for each in self.revises],
            "periods": periods,
            **({"bands": bands} if bands else {}),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuning:
    """What a session says about itself in each of its releases."""

    tuned_on: str | None
    reason: str | None = None
    """Why choices made on confidential records were accepted."""
    parameters: Mapping[str, str] = field(default_factory=dict)
    """What the parameters of the plan file were set to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refinement:
    """What a release says about those that it refines (T-STAGES)."""

    digests: tuple[str, ...]
    """Of the release that is refined, and of those that it refines, the latest first."""
    charge: int
    """The entry of the ledger that charged the release that is refined."""
    fixed_in_advance: bool
    """Whether the accuracy of every stage was decided before the first answers were seen."""
    total: PolicyFile
    """What all stages cost together, which is what one release of this accuracy costs."""

    @classmethod
    def read(cls, form: Form) -> "Refinement":
        """Read the entry."""
        fixed, total, charge = bool(form["fixed_in_advance"]), PolicyFile(form["total"]), int(form["charge"])
        return cls(digests=tuple(map(str, form["digests"])), charge=charge, fixed_in_advance=fixed, total=total)

    def to_json(self) -> dict[str, Any]:
        """Write the entry."""
        own = {"charge": self.charge, "fixed_in_advance": self.fixed_in_advance}
        return {"digests": list(self.digests), **own, "total": dict(self.total.form)}


class AboutPlan(TypedDict, total=False):
    """What a release says about its plan, as in the ledger."""

    plan: Sequence[Form]
    schema: Form
    confidence: float
    promise: str
    """What sized noise promises over time."""
    hierarchies: Sequence[Form]
    series: PublishedSeries | None
    declared: "Iterable[DeclaredClass]"
    """The losses that other packages answer for."""
    is_pure: bool
    """Whether all noise has a pure loss."""
    refinement: Refinement | None
    step: Step | None
    """What a draw of a series costs by a unit's records before and now (T-SERIES)."""
    follows: Sequence[str]
    """The digests of the releases that it follows, the latest first."""
    tier_of: Form


@dataclass(frozen=True, eq=False)
class Published:
    """A release as its file describes it; each entry is read when it is first asked for."""

    form: Form
    """The entries of release.json."""

    @classmethod
    def load(cls, path: Path) -> "Published":
        """Read release.json, of which nothing is checked yet."""
        return cls(json.loads(path.read_text(encoding="utf-8")))

    @classmethod
    def of(
        cls,
        *,
        dataset: str,
        tuning: Tuning | None = None,
        ledger: "LedgerStatement | None" = None,
        looks: Mapping[str, int] | None = None,
        versions: Mapping[str, str] | None = None,
        **about: Unpack[AboutPlan],
    ) -> "Published":
        """Describe a release before it is saved."""
        form: dict[str, Any] = {"dataset": dataset}
        if tuning is not None:
            form |= {"tuned_on": tuning.tuned_on, "accept_tuning": tuning.reason}
            form |= {"parameters": dict(tuning.parameters)} if tuning.parameters else {}
        if ledger is not None:
            form |= {"guarantee": ledger.guarantee, "budget": ledger.budget}
            bands = {} if ledger.bands is None else {"budget_bands": ledger.bands}
            form |= {**bands, "ledger_storage": ledger.storage}
        if looks is not None:
            form |= {"looked_at_records": bool(looks), "looks": dict(looks)}
        series, refinement, step = about.get("series"), about.get("refinement"), about.get("step")
        others = {
            "versions": versions,
            "plan": about.get("plan"),
            "interval_level": about.get("confidence"),
            "schema": about.get("schema"),
            "pure_epsilon": about.get("is_pure"),
            "sized_noise": about.get("promise") or None,
            "hierarchies": list(about.get("hierarchies", ())) or None,
            "series": None if series is None else series.to_json(),
            "refines": None if refinement is None else refinement.to_json(),
            "step": None if step is None else step.to_json(),
            "follows": list(about.get("follows", ())) or None,
            "tier_of": about.get("tier_of"),
            "declared_elsewhere": [each.to_json() for each in about.get("declared", ())] or None,
        }
        return cls(form | {name: entry for name, entry in others.items() if entry is not None})

    @property
    def dataset(self) -> str:
        """The name of the dataset."""
        return str(self.form.get("dataset", "release"))

    @cached_property
    def queries(self) -> tuple[PublishedQuery, ...]:
        """The queries of the plan, in order."""
        return tuple(PublishedQuery.read(each, number) for number, each in enumerate(self.form.get("plan", ()), 1))

    @cached_property
    def measures(self) -> dict[str, PublishedMeasure]:
        """The measures of the schema by name."""
        listed = self.form.get("schema", {}).get("measures", ())
        return {str(each["name"]): PublishedMeasure.read(each) for each in listed}

    @cached_property
    def categories(self) -> frozenset[str]:
        """The columns of which a missing value is a category."""
        listed = self.form.get("schema", {}).get("columns", ())
        return frozenset(str(each["name"]) for each in listed if each.get("null") == "category")

    @cached_property
    def lists(self) -> CodeLists:
        """The public lists of codes."""
        return CodeLists.read(self.form.get("hierarchies", ()))

    @cached_property
    def series(self) -> PublishedSeries:
        """The series it belongs to; empty outside a series."""
        return PublishedSeries.read(self.form.get("series", {}))

    @property
    def plan_forms(self) -> Sequence[Form]:
        """The queries of the plan, as saved."""
        found: Sequence[Form] = self.form.get("plan", ())
        return found

    @cached_property
    def refinement(self) -> Refinement | None:
        """What it refines; None for a first release."""
        return Refinement.read(self.form["refines"]) if "refines" in self.form else None

    def lineage(self, digest: str) -> frozenset[str]:
        """Return the digests of a release and of all that it refines, follows or was made from, whose noise it shares."""
        finer, refined = self.form.get("tier_of"), () if self.refinement is None else self.refinement.digests
        return frozenset((digest, *refined, *self.follows, *([] if finer is None else [str(finer["digest"])])))

    @property
    def tier_of(self) -> tuple[str, int] | None:
        """The digest and the charge of the finer release that it was made from; None unless it is a tier."""
        found = self.form.get("tier_of")
        return (str(found["digest"]), int(found["charge"])) if found else None

    @cached_property
    def step(self) -> Step | None:
        """What its draw costs by a unit's records before and now; None where it stands alone (T-SERIES)."""
        return Step.from_json(self.form["step"]) if "step" in self.form else None

    @property
    def follows(self) -> tuple[str, ...]:
        """The digests of the releases whose noise it carries, the latest first."""
        return tuple(map(str, self.form.get("follows", ())))

    @cached_property
    def fit(self) -> FitNote | None:
        """How its fitted columns were made."""
        return FitNote.read(self.form[FIT]) if FIT in self.form else None

    @cached_property
    def basic(self) -> BasicNote | None:
        """How its basic tables were made."""
        return BasicNote.read(self.form[BASIC_TABLES]) if BASIC_TABLES in self.form else None

    @property
    def added(self) -> tuple[str, ...]:
        """The ends of the names of fitted columns."""
        return () if self.fit is None else self.fit.added

    @property
    def protects(self) -> str:
        """What one record is, where its id has several columns."""
        return str((self.form.get("schema") or {}).get("protects") or "")

    @property
    def guarantee(self) -> str:
        """What the ledger guarantees."""
        return str(self.form.get("guarantee") or "")

    @property
    def tuned_on(self) -> str:
        """What mechanisms were chosen on."""
        return str(self.form.get("tuned_on"))

    @property
    def tuning_reason(self) -> str:
        """Why choices made on confidential records were accepted."""
        return str(self.form.get("accept_tuning"))

    @property
    def looked_at_records(self) -> bool | None:
        """Whether records were viewed before; None if that is not stated."""
        return self.form.get("looked_at_records")

    @property
    def looks(self) -> dict[str, int] | None:
        """How often records were viewed, by kind; None for a release of a version that did not count."""
        return self.form.get("looks")

    @property
    def promise(self) -> str:
        """What sized noise promises over time; empty where no noise is sized."""
        return str(self.form.get("sized_noise", ""))

    @property
    def storage(self) -> str:
        """Where the ledger was; the first version called it the books."""
        return str(self.form.get("ledger_storage", self.form.get("books", "")))

    @property
    def versions(self) -> Mapping[str, str]:
        """The versions of the software that made it."""
        return dict(self.form.get("versions", {}))

    @property
    def declared_elsewhere(self) -> "tuple[DeclaredClass, ...]":
        """The losses that other packages answer for."""
        from recordwise.plan.describe import DeclaredClass

        return tuple(map(DeclaredClass.from_json, self.form.get("declared_elsewhere", ())))

    @property
    def firm(self) -> str | None:
        """The column that says which firm a record belongs to."""
        found = self.form.get("schema", {}).get("firm")
        return None if found is None else str(found)

    @property
    def confidence(self) -> float:
        """The confidence of the intervals."""
        return float(self.form.get("interval_level", LEVEL))

    @property
    def basic_names(self) -> Mapping[str, Sequence[str]]:
        """The variables of each basic table."""
        found: Mapping[str, Sequence[str]] = self.form.get(BASIC_TABLES, {}).get("tables", {})
        return found

    def measure(self, name: str | None) -> PublishedMeasure:
        """Return a measure by name; the plainest one if none is declared."""
        return self.measures.get(name or "", PublishedMeasure())

    def query_of(self, table: str) -> PublishedQuery | None:
        """Return the query of a table, or of the table that a basic one is made of; None for an external mechanism."""
        table = table.removesuffix(BASIC) if table in self.basic_names else table
        return next((query for query in self.queries if any(each.name == table for each in query.tables)), None)

    def signed_variables(self, table: str) -> frozenset[str]:
        """Return the variables that may truly be negative: of a signed measure, or computed from others."""
        query = self.query_of(table)
        return frozenset(
            each.name
            for each in (query.statistics if query else ())
            if (each.of is None and each.rules.derived) or (each.of is not None and self.measure(each.of).signed)
        )

    def with_fit(self, note: FitNote) -> "Published":
        """Return the same with fitted columns."""
        return Published({**self.form, FIT: note.to_json()})

    def with_basic(self, note: BasicNote) -> "Published":
        """Return the same with basic tables."""
        return Published({**self.form, BASIC_TABLES: note.to_json()})

    def as_drawn(self) -> "Published":
        """Return the same without fitted columns and basic tables."""
        return Published({name: each for name, each in self.form.items() if name not in (FIT, BASIC_TABLES)})

    def with_files(self, page: Form, digests: Mapping[str, str] | None = None) -> "Published":
        """Return the same with what is saved for the page and the digests of the files."""
        return Published({**self.form, "page": page, **({} if digests is None else {"sha256": dict(digests)})})

    def with_rehearsal(self, about: Form) -> "Published":
        """Return the same, marked as a rehearsal."""
        return Published({**self.form, "rehearsal": about})

    # What is in the file of a saved release alone.

    @property
    def known(self) -> bool:
        """Whether this version reads such files."""
        return bool(self.form["recordwise_release"] == FORMAT)

    @property
    def privacy_label(self) -> str:
        """Whether the release is private."""
        return str(self.form["mark"])

    @property
    def digest(self) -> str:
        """The digest of tables and policy."""
        return str(self.form["digest"])

    @property
    def head(self) -> Head:
        """The end of the ledger's chain when the release was recorded."""
        return Head(length=int(self.form["ledger"]["length"]), digest=str(self.form["ledger"]["digest"]))

    @property
    def files(self) -> Mapping[str, str]:
        """The digests of its files, not listed by earlier versions."""
        return dict(self.form.get("sha256", {}))

    @property
    def page(self) -> Form | None:
        """What is saved for the page; the first version saved nothing."""
        return self.form.get("page")

    @property
    def flags(self) -> dict[str, dict[str, str]]:
        """For each table the variables that are not unbiased, and why."""
        return {table: dict(each) for table, each in self.form.get("flags", {}).items()}

    @property
    def accuracy(self) -> dict[str, dict[str, Accuracy]]:
        """The accuracy of each variable of each table."""
        return {
            table: {name: Accuracy.read(form) for name, form in found.items()}
            for table, found in self.form.get("accuracy", {}).items()
        }

    @property
    def variables(self) -> dict[str, list[str]]:
        """The variables of each table."""
        return {table: list(found) for table, found in self.form["accuracy"].items()}

    @property
    def words(self) -> Labels:
        """Labels, units and who publishes it; those of a release of the first version are empty."""
        labels, units = (self.page or {}).get("labels", {}), self.form.get("units", {})
        return Labels(
            labels={str(name): str(word) for name, word in labels.items()},
            units={str(name): str(word) for name, word in units.items()},
            publication=Publication.from_json(self.form.get("publication", {})),
            names=NAMES in self.form,
        )

    @property
    def name_columns(self) -> dict[str, list[str]]:
        """The columns of names that were added to each table."""
        return {str(table): list(map(str, names)) for table, names in self.form.get(NAMES, {}).items()}

    def with_names(self, added: Mapping[str, Sequence[str]]) -> "Published":
        """Return the same with the columns of names of each table."""
        return Published({**self.form, NAMES: {table: list(names) for table, names in added.items() if names}})

    def description(self) -> "Published":
        """Return the same without what is written each time it is saved."""
        return Published({name: value for name, value in self.form.items() if name not in OF_THE_FILE})

    def budget(self, bands: Bands) -> Policy | None:
        """Return the budget, which may name bands of its own."""
        form = self.form.get("budget")
        known = {**bands, **bands_from_json(self.form.get("budget_bands"))}
        return None if form is None else Policy.from_json(form, known)

    @property
    def terms(self) -> dict[str, Any]:
        """What the ledger says about it too, as saved: what is charged for, and under which terms."""
        series = self.form.get("series", {})
        stated = {name: self.form[name] for name in ("plan", "schema", "dataset", "budget")}
        return stated | {"period": (series.get("period"), series.get("revision"))}


def as_saved(
    published: Published, tables: Sequence[ReleasedTable], words: Labels, *, privacy_label: str, digest: str, head: Head
) -> Published:
    """Return release.json but for the page and the digests of files: no row count, no exact totals."""
    said = {"units": dict(words.units), "publication": words.publication.to_json()}
    errors = {table.name: {name: each.to_json() for name, each in accuracy(table).items()} for table in tables}
    return Published(
        {
            "recordwise_release": FORMAT,
            "mark": privacy_label,
            "digest": digest,
            "ledger": {"length": head.length, "digest": head.digest},
            **published.form,
            # Labels are with what is saved for the page.
            **{name: found for name, found in said.items() if found},
            "flags": {table.name: table.flags() for table in tables},
            "accuracy": errors,
        }
    )
