"""What a release says about itself, by hand: titles, entries of the dictionary, contents, and what is read from its file."""

from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from recordwise.plan.publication import Labels, Publication
from recordwise.policy import constant
from recordwise.release.content import (
    Content,
    DescribedTable,
    _about,
    _added_up,
    _coarser,
    _differs,
    _plain,
    _type,
    datapackage_json,
)
from recordwise.release.dictionary import (
    ENDS,
    Entry,
    dictionary_of,
    in_short,
    sd_column,
    title_of,
    type_name,
    value_column,
)
from recordwise.release.published import Published, PublishedSeries, Tuning
from recordwise.release.tables import NOT_PRIVATE, PRIVATE, ReleasedTable

QUERY: dict[str, Any] = {
    "title": "Firms",
    "tables": [
        {"name": "state", "by": [{"name": "state", "column": "state"}], "share": "1/2"},
        {
            "name": "fine",
            "by": [{"name": "state", "column": "state"}, {"name": "naics2", "prefix_of": "naics", "length": 2}],
            "share": "1/2",
        },
    ],
    "statistics": [
        {"name": "n", "kind": "Count", "mechanism": {"kind": "Gaussian", "sigma": "3"}},
        {"name": "jobs", "kind": "Sum", "of": "emp", "mechanism": {"kind": "Gaussian", "sigma": "3"}},
        {"name": "net", "kind": "Sum", "of": "net", "mechanism": {"kind": "Gaussian", "sigma": "3"}},
    ],
}
SCHEMA: dict[str, Any] = {
    "measures": [
        {"name": "emp", "step": "2", "bound": "100"},
        {"name": "net", "step": "1", "bound": "100", "signed": True},
    ],
    "columns": [{"name": "state", "null": "category"}, {"name": "naics"}],
    "firm": "owner",
}


def published(**more: Any) -> Published:
    return Published({"dataset": "d", "plan": [QUERY], "schema": SCHEMA} | more)


def table(name: str = "fine", keys: tuple[str, ...] = ("state", "naics2"), **columns: Any) -> ReleasedTable:
    data: dict[str, Any] = {key: ["01", "02"] for key in keys}
    data |= {"n": [1.0, 2.0], "n_sd": [3.0, 3.0], "jobs": [4.0, 5.0], "jobs_sd": [3.0, 3.0]} | columns
    return ReleasedTable(name=name, keys=keys, variables=("n", "jobs"), data=pa.table(data))


# Titles and entries.


def test_titles_come_from_the_query_and_say_by_what_unless_it_has_one_table() -> None:
    words = Labels(labels={"state": "State"})
    assert title_of(published(), table(), words) == "Firms, by State and naics2"
    assert title_of(published(), table("state", ()), words) == "Firms, total"
    alone = published(plan=[QUERY | {"tables": QUERY["tables"][:1]}])
    assert title_of(alone, table("state", ("state",)), words) == "Firms"
    untitled = published(plan=[QUERY | {"title": ""}])
    assert title_of(untitled, table(), words) == "By State and naics2"
    assert title_of(untitled, table("state", ()), words) == "Total"
    assert title_of(published(), table("other", ()), words) == "other"
    basic = published(basic={"tables": {"fine_basic": ["n"]}})
    assert title_of(basic, table("fine_basic"), words) == "Firms, by State and naics2 (basic)"
    assert title_of(basic, table(), words) == "Firms, by State and naics2 (research)"


def test_each_column_has_an_entry_with_its_unit_and_what_a_missing_value_means() -> None:
    words = Labels(labels={"emp": "Jobs", "naics": "Industry"}, units={"emp": "persons"})
    own = table(jobs_cv=[0.1, 0.1], jobs_low=[1.0, 1.0], other=[1, 2])
    found = {each.name: each for each in dictionary_of(published(interval_level=0.9), own, words, {"n": "noise"})}
    assert list(found) == own.data.column_names
    assert found["state"].missing == "empty: the value is missing in the records of the cell"
    assert found["naics2"].missing == "never missing"
    assert found["naics2"].meaning.endswith("as the first 2 characters of Industry")
    assert found["state"].meaning == "identifies the cell: the records counted in it have this value"
    assert (found["jobs"].title, found["jobs"].unit) == ("Jobs", "persons")
    assert found["n"].computed == "the exact number with noise; an unbiased estimate"
    assert found["jobs"].computed == "computed from other columns of the table; an unbiased estimate"
    assert (found["jobs_sd"].title, found["jobs_sd"].unit) == ("Jobs, sd", "persons")
    assert (found["jobs_cv"].unit, found["jobs_cv"].missing) == ("", "empty: jobs is 0")
    assert found["jobs_low"].meaning == "lower end of the 90% noise interval of Jobs"
    assert found["other"].meaning == "as the mechanism released it"
    short = in_short(found.values(), ["n", "jobs"], "90%")
    assert [each.name for each in short] == ["state", "naics2", "n", "jobs", "other", "NAME_sd", "NAME_cv", "NAME_low"]
    assert short[-1].meaning == "lower end of the 90% noise interval of NAME"
    assert all(each.title == "" for each in short[-3:])
    assert len(ENDS) == 18


def test_two_sums_of_one_measure_are_told_apart_by_their_names() -> None:
    statistics = [{"name": name, "kind": "Sum", "of": "emp"} for name in ("a", "b")]
    data = pa.table({"a": [1.0], "b": [2.0]})
    own = ReleasedTable(name="fine", keys=(), variables=("a", "b"), data=data)
    twice = published(plan=[QUERY | {"statistics": statistics}])
    assert [each.title for each in dictionary_of(twice, own, Labels(labels={"emp": "Jobs"}), {})] == [
        "Jobs, a",
        "Jobs, b",
    ]


def test_types_and_columns_to_publish_are_said_by_name() -> None:
    kinds = (pa.string(), pa.bool_(), pa.int64(), pa.float64())
    assert [type_name(each) for each in kinds] == ["text", "true or false", "whole number", "number"]
    assert [_type(each) for each in kinds] == ["string", "boolean", "integer", "number"]
    assert (value_column(table(), "n"), sd_column(table(), "n")) == ("n", "n_sd")
    fitted = table(n_fit=[1.0, 1.0], n_best_sd=[1.0, 1.0])
    assert (value_column(fitted, "n"), sd_column(fitted, "n")) == ("n_fit", "n_best_sd")
    drawn = table(n_fit=[1.0, 1.0], n_fit_sd=[1.0, 1.0], n_best_sd=[1.0, 1.0])
    assert sd_column(drawn, "n") == "n_fit_sd"


# Contents.


def test_counts_and_sums_with_noise_of_their_own_may_be_added_up() -> None:
    def halves(own: Published, given: ReleasedTable) -> dict[str, float]:
        return _added_up(own, given)[0]

    assert halves(published(), table()) == {"n": 0.5, "jobs": 1.0}
    assert halves(published(), table(jobs_sd=[1.0, 3.0])) == {"n": 0.5, "jobs": 1.0}
    assert halves(published(), table(jobs_sd=[0.99, 3.0])) == {"n": 0.5}
    assert halves(published(), table(jobs_sd=[None, 3.0])) == {"n": 0.5}
    assert halves(published(), table("other")) == {}
    assert halves(published(basic={"tables": {"fine": ["n"]}}), table()) == {}
    chosen = [QUERY["tables"][0], QUERY["tables"][1] | {"keys": {}}]
    assert halves(published(plan=[QUERY | {"tables": chosen}]), table()) == {}
    assert set(halves(published(plan=[QUERY | {"tables": chosen}]), table("state", ("state",)))) == {"n", "jobs"}
    firms = QUERY | {
        "statistics": [
            {"name": "n", "kind": "CountDistinct", "of": "owner", "mechanism": {"kind": "Gaussian", "sigma": "3"}}
        ]
    }
    assert halves(published(plan=[firms]), table()) == {}
    laplace = {"kind": "GeneralizedGaussian", "shape": "1", "scale": "3"}
    other = QUERY | {"statistics": [QUERY["statistics"][0] | {"mechanism": laplace}]}
    own, reaches = _added_up(published(plan=[other]), table())
    assert own == {"n": 0.0}
    assert reaches["n"] > 2.9
    none, _ = _added_up(published(plan=[other]), table(n_sd=[0.0, 3.0]))
    assert none == {}


def test_coarser_tables_are_those_whose_cells_contain_these() -> None:
    assert _coarser(published(), table()) == ("state",)
    assert _coarser(published(), table("state", ("state",))) == ()
    assert _coarser(published(), table("other")) == ()
    assert _coarser(published(basic={"tables": {"fine": ["n"]}}), table()) == ()


def test_a_column_differs_where_it_has_more_than_one_value() -> None:
    for values, expected in (
        (["a", "b"], True),
        (["a", "b", "a"], True),
        (["a", "a"], False),
        (["a"], False),
        ([], False),
        (["a", None], True),
    ):
        assert _differs(pa.chunked_array([pa.array(values, pa.string())])) == expected


def entry(name: str) -> Entry:
    return Entry(
        name=name, title=name.upper(), unit="u" if name == "n" else "", type="", meaning="m", computed="c", missing="x"
    )


def test_a_data_package_names_the_csv_file_or_the_parquet_file_and_its_comment() -> None:
    own = ReleasedTable(name="My T", keys=("k",), variables=("n",), data=pa.table({"k": ["a"], "n": [1.0]}))
    described = DescribedTable(table=own, title="T", columns=(entry("k"), entry("n")))

    def package(files: set[str], label: str = PRIVATE) -> Any:
        content = Content(dataset="D", tables=(described,), words=Labels(labels={"k=a": "Alpha"}), privacy_label=label)
        (found,) = datapackage_json(content, files)["resources"]
        return found

    found = package({"My T.csv", "My T.parquet"})
    assert (found["name"], found["path"], found["format"]) == ("my_t", "My T.csv", "csv")
    assert "dialect" not in found
    assert found["schema"]["primaryKey"] == ["k"]
    assert found["schema"]["fields"] == [
        {
            "name": "k",
            "type": "string",
            "title": "K",
            "description": "m. c. Missing: x.",
            "value_labels": {"a": "Alpha"},
        },
        {"name": "n", "type": "number", "title": "N", "description": "m. c. Missing: x.", "unit": "u"},
    ]
    assert package(set())["path"] == "My T.parquet"
    assert package({"My T.csv"}, NOT_PRIVATE)["dialect"] == {"commentChar": "#"}
    assert "dialect" not in package(set(), NOT_PRIVATE)
    assert _plain("Ab c-1.x") == "ab_c-1.x"


@pytest.mark.parametrize(
    "said, expected",
    [
        ({}, {}),
        ({"version": "1"}, {"version": "1"}),
        ({"date": "2026-01-02"}, {"created": "2026-01-02T00:00:00Z"}),
        ({"publisher": "P"}, {"contributors": [{"title": "P", "roles": ["publisher"]}]}),
        (
            {"publisher": "P", "contact": "a@b"},
            {"contributors": [{"title": "P", "roles": ["publisher"], "email": "a@b"}], "contact": "a@b"},
        ),
        (
            {"publisher": "P", "contact": "call a@b"},
            {"contributors": [{"title": "P", "roles": ["publisher"]}], "contact": "call a@b"},
        ),
        ({"license": "https://x"}, {"licenses": [{"path": "https://x"}]}),
        ({"license": "CC"}, {"licenses": [{"name": "CC", "title": "CC"}]}),
        ({"period": "2024"}, {"period": "2024"}),
    ],
)
def test_a_data_package_says_who_publishes_it(said: dict[str, str], expected: dict[str, Any]) -> None:
    assert _about(Publication(**said)) == expected


# What is read from release.json.


def test_entries_that_are_missing_have_their_plainest_meaning() -> None:
    bare = Published({})
    assert (bare.dataset, bare.confidence, bare.queries, bare.measures, bare.firm) == ("release", 0.95, (), {}, None)
    assert (bare.storage, bare.promise, bare.guarantee, bare.looks, bare.tier_of) == ("", "", "", None, None)
    assert Published({"books": "old"}).storage == "old"
    assert Published({"books": "old", "ledger_storage": "new"}).storage == "new"
    assert (bare.added, bare.follows, bare.step, bare.refinement, bare.protects) == ((), (), None, None, "")
    assert bare.lineage("x") == {"x"}
    tier = Published({"tier_of": {"digest": "t", "charge": 4}, "follows": ["f"]})
    assert (tier.tier_of, tier.lineage("x")) == (("t", 4), {"x", "t", "f"})
    assert published().categories == {"state"}
    assert published().measure("emp").step == 2
    assert published().measure("none").step == Fraction(1)
    assert published().measure(None).signed is False


def test_queries_of_basic_tables_and_signed_variables_are_found() -> None:
    own = published(basic={"tables": {"fine_basic": ["n"]}})
    for name in ("fine", "fine_basic"):
        query = own.query_of(name)
        assert query is not None
        assert query.title == "Firms"
    assert published().query_of("fine_basic") is None
    assert own.query_of("other") is None
    assert own.signed_variables("fine") == {"net"}
    assert own.signed_variables("other") == frozenset()
    derived = QUERY | {"statistics": [*QUERY["statistics"], {"name": "mean", "kind": "Ratio"}]}
    assert published(plan=[derived]).signed_variables("fine") == {"net", "mean"}
    assert own.as_drawn().basic_names == {}


def test_a_release_is_described_by_what_is_given_and_by_nothing_else() -> None:
    assert Published.of(dataset="d").form == {"dataset": "d"}
    tuned = Published.of(dataset="d", tuning=Tuning(tuned_on="public", parameters={"year": "2024"}), looks={})
    assert tuned.form == {
        "dataset": "d",
        "tuned_on": "public",
        "accept_tuning": None,
        "parameters": {"year": "2024"},
        "looked_at_records": False,
        "looks": {},
    }
    ledger: Any = SimpleNamespace(guarantee="g", budget=None, bands=None, storage="file")
    kept = Published.of(
        dataset="d", ledger=ledger, looks={"compare": 1}, confidence=0.9, promise="", follows=[], is_pure=False
    )
    assert kept.form == {
        "dataset": "d",
        "guarantee": "g",
        "budget": None,
        "ledger_storage": "file",
        "looked_at_records": True,
        "looks": {"compare": 1},
        "interval_level": 0.9,
        "pure_epsilon": False,
    }
    assert "parameters" not in Published.of(dataset="d", tuning=Tuning(tuned_on=None)).form


def test_a_series_is_read_as_it_was_written() -> None:
    form = {
        "name": "s",
        "period": "2024",
        "revision": 2,
        "date": "2026-01-01",
        "revises": [{"revision": 1, "date": "2025-01-01", "digest": "d"}],
        "periods": [
            {"period": "2024", "policy": constant(1).to_json(), "budget": None, "budget_declared": "x"},
            {
                "period": "2025",
                "policy": constant(2).to_json(),
                "budget": constant(3).to_json(),
                "budget_declared": "y",
            },
        ],
    }
    series = PublishedSeries.read(form)
    assert (series.revision, series.revises[0].revision, series.periods[0].budget) == (2, 1, None)
    assert series.periods[1].budget == constant(3)
    assert series.to_json() == form
