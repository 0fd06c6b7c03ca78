"""What release.json says, as typed values."""

from pathlib import Path

import pytest

from recordwise.release.files import load_release
from recordwise.release.published import read_groups

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
    published = load_release(file.parent).published
    for query in published.queries:
        assert query.external or all(table.by and published.query_of(table.name) is query for table in query.tables)
        assert all(each.rules.__name__ == each.kind for each in query.statistics)
    assert published.measures
    assert published.storage
    assert published.versions
    assert (published.fit is None) == (published.basic is None)
