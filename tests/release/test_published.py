"""What release.json says, as typed values."""

import re
from pathlib import Path

import pytest

import recordwise
import recordwise as rw
from recordwise.policy import constant, gaussian_sum
from recordwise.release.published import EarlierRevision, Period, PublishedSeries, read_groups

OLD = sorted((Path(__file__).parents[1] / "old_files").glob("*/*/release.json"))
PLACE = {"level": "state", "hierarchy": "place", "digest": "", "determined_by": ["county"]}
GROUPS = {
    "county": {"column": "county"},
    "state": PLACE,
    "naics3": {"prefix_of": "naics", "length": 3},
    "naics2": {"prefix_of": "naics", "length": 2},
    "naics": {"column": "naics"},
    "year": {"part": "year", "of": "opened"},
    "size": {"case": [{"when": {"<": ["emp", 5]}, "then": "small"}], "else": "large"},
}
ENTRIES = (
    *("recordwise_release", "sha256", "interval_level", "ledger_storage", "looked_at_records", "accept_tuning"),
    *("declared_elsewhere", "rehearsal", "tight", "paper", "lattice", "firms"),
)
"""Those that neither a ledger nor a plan file has."""
DETERMINED = {("county", "state"), ("naics3", "naics2"), ("naics", "naics3"), ("naics", "naics2")}


def test_a_group_determines_itself_its_prefixes_and_the_levels_above_it() -> None:
    groups = read_groups({"name": name, **form} for name, form in GROUPS.items())
    found = {(one.name, two.name) for one in groups for two in groups if one.determines(two)}
    assert found == DETERMINED | {(name, name) for name in GROUPS}


def test_a_column_under_two_names_is_not_taken_for_one() -> None:
    one, two = read_groups([{"name": "a", "column": "county"}, {"name": "b", "column": "county"}])
    assert not one.determines(two)


@pytest.mark.parametrize("file", OLD, ids=lambda file: "-".join(file.parts[-3:-1]))
def test_every_entry_of_earlier_releases_is_read(file: Path) -> None:
    published = rw.read(file.parent).published
    for query in published.queries:
        assert query.external or all(table.by and published.query_of(table.name) is query for table in query.tables)
        assert all(each.rules.__name__ == each.kind for each in query.statistics)
    used = {each.of for query in published.queries for each in query.statistics if each.kind == "Sum"}
    assert used <= published.measures.keys()
    assert published.storage
    assert published.versions
    assert (published.fit is None) == (published.basic is None)


def test_a_series_is_read_as_it_was_written() -> None:
    periods = (
        Period(name="2019", policy=constant(1), budget=None, declared="no budget"),
        Period(name="2020", policy=gaussian_sum("emp", sigma=3), budget=constant(5), declared="declared on 2020-02-01"),
    )
    revised = EarlierRevision(revision=0, date="2020-03-01", digest="ab")
    series = PublishedSeries(
        name="s", period="2020", revision=1, date="2020-04-01", revises=(revised,), periods=periods
    )
    form = series.to_json()
    assert list(form) == ["name", "period", "revision", "date", "revises", "periods"]
    assert PublishedSeries.read(form) == series
    assert PublishedSeries.read({}) == PublishedSeries()


def test_only_their_readers_know_the_entries_of_release_json_and_policy_json() -> None:
    """By name, as dictionaries of JSON; everything else asks for typed values."""
    package = Path(recordwise.__file__).parent
    words = "|".join(ENTRIES)
    looks_up = re.compile(
        rf"""(?:\[|\.get\(|\.pop\()"(?:{words})"|"(?:{words})" (?:not )?in |json\.loads.*(?:release|policy)\.json"""
    )
    found = {
        path.relative_to(package).as_posix() for path in package.rglob("*.py") if looks_up.search(path.read_text())
    }
    assert found == {"release/published.py", "policy/json.py", "plan/sources.py"}
