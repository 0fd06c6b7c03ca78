"""How tables nest, by hand: parents, complete lists, remainders, groups, rules and joined queries."""

from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from recordwise.errors import ParameterError
from recordwise.plan.expressions import ALL_OTHER
from recordwise.release.nesting import (
    NO_LISTS,
    OUTSIDE,
    _chains,
    _group_column,
    _overlap,
    _possible_pairs,
    _tiled_cells,
    cell_axes,
    chain_to,
    complete_rows,
    finest_of,
    fitted_cells,
    joint_queries,
    key_values,
    nests,
    parents,
    read_rules,
    rest_rows,
    rounding_nesting,
)
from recordwise.release.published import (
    CodeLists,
    PublishedGroup,
    PublishedMeasure,
    PublishedQuery,
    PublishedSeries,
    PublishedStatistic,
    PublishedTable,
    read_groups,
)
from recordwise.release.tables import ReleasedTable

LISTS = CodeLists.read(
    [
        {
            "name": "place",
            "levels": ["nation", "region", "state", "county"],
            "source": "public",
            "digest": "d",
            "list": {
                "nation": {"values": ["US"], "codes": [0, 0, 0, 0, 0]},
                "region": {"values": ["S", "W"], "codes": [0, 0, 1, 1, 0]},
                "state": {"values": ["1", "2", "3"], "codes": [0, 0, 1, 1, 2]},
                "county": {"values": ["a", "b", "c", "d", "e"]},
            },
        }
    ]
)


def level(name: str, *below: str) -> dict[str, Any]:
    return {"name": name, "level": name, "hierarchy": "place", "determined_by": list(below)}


NATION, REGION = level("nation", "region", "state", "county"), level("region", "state", "county")
STATE, COUNTY = level("state", "county"), {"name": "county", "column": "county"}


def digits(column: str, length: int) -> dict[str, Any]:
    return {"name": f"{column}{length}", "prefix_of": column, "length": length}


def by(*forms: dict[str, Any]) -> tuple[PublishedGroup, ...]:
    return read_groups(forms)


def table(name: str, /, **columns: Any) -> ReleasedTable:
    keys = tuple(columns)
    data = pa.table(columns) if columns else pa.table({"n": [1]})
    return ReleasedTable(name=name, keys=keys, variables=("n",), data=data)


# Columns that determine others.


def test_a_longer_prefix_a_finer_level_and_the_column_itself_determine_a_group() -> None:
    (p2,), (p3,), (whole,) = by(digits("c", 2)), by(digits("c", 3)), by({"name": "c", "column": "c"})
    assert (p3.determines(p2), p2.determines(p3), whole.determines(p2), p2.determines(whole)) == (
        True,
        False,
        True,
        False,
    )
    (state,), (county,), (region,) = by(STATE), by(COUNTY), by(REGION)
    assert (county.determines(state), state.determines(region), region.determines(state)) == (True, True, False)
    (renamed,) = by({"name": "other", "column": "c"})
    assert (whole.determines(whole), whole.determines(renamed)) == (True, False)
    (case,) = by({"name": "size", "case": [1], "else": "x"})
    (same,), (other,) = by({"name": "size", "case": [1], "else": "x"}), by({"name": "size", "case": [1], "else": "y"})
    assert (case.determines(same), case.determines(other), whole.determines(case)) == (True, False, False)
    assert (case.source, case.level, whole.source, whole.level, p2.source, p2.level) == (
        "size",
        None,
        "c",
        "c",
        "c",
        None,
    )


def test_the_finest_of_tables_is_that_in_which_all_nest() -> None:
    shapes = [by(digits("c", 2)), by(digits("c", 3), {"name": "k", "column": "k"}), by()]
    assert finest_of(shapes) == 1
    assert finest_of([by(digits("c", 2)), by({"name": "k", "column": "k"})]) is None
    assert finest_of([by()]) == 0
    assert nests(by(), by(COUNTY))
    assert nests(by(STATE, REGION), by(COUNTY))
    assert not nests(by(STATE, digits("c", 2)), by(COUNTY))


# Parents.


def test_parents_are_found_by_prefix_level_and_missing_values_and_never_in_a_rest() -> None:
    fine = table("f", c3=["111", "112", "221", None, "333"], k=["x", "y", "x", "x", "x"])
    coarse = table("c", c2=["22", "11", None], k=["x", "x", "x"])
    keys = by(digits("c", 3), {"name": "k", "column": "k"}), by(digits("c", 2), {"name": "k", "column": "k"})
    assert parents(coarse, keys[1], fine, keys[0]).tolist() == [1, OUTSIDE, 0, 2, OUTSIDE]
    rests = table("c", c2=["11", "11", "22"], k=["x", "x", "x"], **{ALL_OTHER: [True, False, True]})
    assert parents(rests, keys[1], fine, keys[0]).tolist() == [1, OUTSIDE, OUTSIDE, OUTSIDE, OUTSIDE]
    every = table("c", c2=["11"], k=["x"], **{ALL_OTHER: [True]})
    assert parents(every, keys[1], fine, keys[0]).tolist() == [OUTSIDE] * 5
    assert parents(table("t"), by(), fine, keys[0]).tolist() == [0] * 5
    counties = table("county", county=["e", "c", "zz", "a"])
    states = table("state", state=["2", "1"])
    assert parents(states, by(STATE), counties, by(COUNTY), LISTS).tolist() == [OUTSIDE, 0, OUTSIDE, 1]
    assert parents(table("r", region=["W", "S"]), by(REGION), states, by(STATE), LISTS).tolist() == [0, 1]


def test_two_keys_are_joined_so_that_no_two_pairs_look_alike() -> None:
    fine = table("f", a=["x", "xy"], b=["yz", "z"])
    columns = by({"name": "a", "column": "a"}, {"name": "b", "column": "b"})
    assert parents(table("c", a=["xy", "x"], b=["z", "yz"]), columns, fine, columns).tolist() == [1, 0]


def test_rests_are_the_rows_that_say_so() -> None:
    assert rest_rows(table("t", a=["x", "y"])).tolist() == [False, False]
    assert rest_rows(table("t", a=["x", "y"], **{ALL_OTHER: [False, True]})).tolist() == [False, True]


# Cells that are listed completely.


def test_a_cell_is_complete_where_all_codes_below_it_are_listed() -> None:
    states = table("state", state=["1", "2", "3"])
    for listed, expected in (
        (["a", "b", "c", "d", "e"], [True, True, True]),
        (["a", "c", "d", "e"], [False, True, True]),
        (["a", "b", "zz"], [True, False, False]),
    ):
        found = complete_rows(states, by(STATE), table("county", county=listed), by(COUNTY), LISTS)
        assert found.tolist() == expected
    rest = table("state", state=["1", "2"], **{ALL_OTHER: [False, True]})
    every = table("county", county=["a", "b", "c", "d", "e"])
    assert complete_rows(rest, by(STATE), every, by(COUNTY), LISTS).tolist() == [True, False]
    # No record has a code that is not listed, so that nothing is missing in N.
    regions, few = table("region", region=["S", "W", "N"]), table("state", state=["1", "2"])
    assert complete_rows(regions, by(REGION), states, by(STATE), LISTS).tolist() == [True, True, True]
    assert complete_rows(regions, by(REGION), few, by(STATE), LISTS).tolist() == [False, True, True]


def test_prefixes_say_nothing_about_completeness_and_a_shared_column_must_match() -> None:
    kind = {"name": "k", "column": "k"}
    fine = table("f", county=["a", "b", "a"], k=["x", "x", "y"])
    coarse = table("c", state=["1", "1"], k=["x", "y"])
    assert complete_rows(coarse, by(STATE, kind), fine, by(COUNTY, kind), LISTS).tolist() == [True, False]
    assert complete_rows(table("c", state=["1"]), by(STATE), fine, by(COUNTY, kind), LISTS).tolist() == [False]
    prefixes = table("c", c2=["11"]), table("f", c3=["111"])
    assert complete_rows(prefixes[0], by(digits("c", 2)), prefixes[1], by(digits("c", 3)), NO_LISTS).tolist() == [False]


# What published cells are sums of.


def incidence(
    tables: list[ReleasedTable], groups: dict[str, Any], *, complete: bool, lists: CodeLists = NO_LISTS
) -> Any:
    found = fitted_cells(tables, groups, complete=complete, lists=lists)
    return found, found.rows(tables, groups, lists).toarray().tolist()


def test_each_coarser_cell_has_a_remainder_unless_keys_are_complete() -> None:
    tables = [table("f", c2=["11", "12", "22"]), table("c", c1=["1", "2"]), table("t")]
    groups = {"f": by(digits("c", 2)), "c": by(digits("c", 1)), "t": by()}
    found, rows = incidence(tables, groups, complete=True)
    assert rows == [[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0], [0, 0, 1], [1, 1, 1]]
    assert not found.shared
    found, rows = incidence(tables, groups, complete=False)
    assert rows == [
        [1, 0, 0, 0, 0, 0],
        [0, 1, 0, 0, 0, 0],
        [0, 0, 1, 0, 0, 0],
        [1, 1, 0, 1, 0, 0],
        [0, 0, 1, 0, 1, 0],
        [1, 1, 1, 1, 1, 1],
    ]
    assert found.within == {"f": frozenset(), "c": {"f"}, "t": {"f", "c"}}
    assert [(own.name, rows.tolist()) for own, rows in found.owners] == [("f", [0, 1, 2]), ("c", [0, 1]), ("t", [0])]


def test_listed_codes_leave_a_remainder_only_where_some_below_are_not_listed() -> None:
    tables = [table("county", county=["a", "b", "c"]), table("state", state=["1", "2"]), table("nation", nation=["US"])]
    groups = {"county": by(COUNTY), "state": by(STATE), "nation": by(NATION)}
    found, rows = incidence(tables, groups, complete=False, lists=LISTS)
    assert [(own.name, rows.tolist()) for own, rows in found.owners] == [
        ("county", [0, 1, 2]),
        ("state", [1]),
        ("nation", [0]),
    ]
    assert rows == [
        [1, 0, 0, 0, 0],
        [0, 1, 0, 0, 0],
        [0, 0, 1, 0, 0],
        [1, 1, 0, 0, 0],
        [0, 0, 1, 1, 0],
        [1, 1, 1, 1, 1],
    ]


def test_published_rests_are_cells_of_their_own() -> None:
    tables = [table("f", c2=["11", "22"]), table("c", c1=["1", "2", "1"], **{ALL_OTHER: [False, False, True]})]
    groups = {"f": by(digits("c", 2)), "c": by(digits("c", 1))}
    found, rows = incidence(tables, groups, complete=True)
    assert [(own.name, rows.tolist()) for own, rows in found.owners] == [("f", [0, 1]), ("c", [2])]
    assert rows == [[1, 0, 0], [0, 1, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]


KIND = {"name": "k", "column": "k"}
PLACE = {"name": "p", "column": "p"}


def crossing(pairs: list[tuple[str, str]]) -> tuple[list[ReleasedTable], dict[str, Any]]:
    """All listed pairs, both margins and the total."""
    tables = [
        table("pk", p=[p for p, _ in pairs], k=[k for _, k in pairs]),
        table("p", p=["1", "2"]),
        table("k", k=["x", "y"]),
        table("t"),
    ]
    return tables, {"pk": by(PLACE, KIND), "p": by(PLACE), "k": by(KIND), "t": by()}


ALL_PAIRS = [("1", "x"), ("1", "y"), ("2", "x"), ("2", "y")]


def test_margins_share_remainders_where_a_pair_of_their_codes_is_not_listed() -> None:
    tables, groups = crossing(ALL_PAIRS)
    assert not fitted_cells(tables, groups, complete=False).shared
    tables, groups = crossing(ALL_PAIRS[:3])
    found = fitted_cells(tables, groups, complete=False)
    assert found.shared
    assert not fitted_cells(tables, groups, complete=True).shared
    chains = _chains(tables, groups, NO_LISTS)
    assert chains["pk"] == frozenset()
    assert chains["p"] == chains["k"] == {"pk"}
    assert chains["t"] in ({"pk", "p"}, {"pk", "k"})
    assert found.within == chains


def test_possible_pairs_are_those_that_agree_in_every_common_column() -> None:
    one = table("one", p=["1", "1", "2"], k=["x", "y", "x"])
    two = table("two", p=["1", "2", "2"], m=["u", "u", "v"])
    third = {"name": "m", "column": "m"}
    groups = {"one": by(PLACE, KIND), "two": by(PLACE, third)}
    every = np.arange(3)
    # Place 1: two cells by one; place 2: one by two.
    assert _possible_pairs((one, every), (two, every), groups, NO_LISTS) == 2 * 1 + 1 * 2
    assert _possible_pairs((one, every[:1]), (two, every[1:]), groups, NO_LISTS) == 0
    apart = {"one": by(KIND), "two": by(third)}
    assert _possible_pairs((one, every), (two, every[:2]), apart, NO_LISTS) == 6
    states, counties = table("one", state=["1", "2"], k=["x", "x"]), table("two", county=["a", "b", "c"], m=["u"] * 3)
    levels = {"one": by(STATE, KIND), "two": by(COUNTY, third)}
    assert _possible_pairs((states, np.arange(2)), (counties, every), levels, LISTS) == 2 + 1
    levels = {"two": by(COUNTY, third), "one": by(STATE, KIND)}
    assert _possible_pairs((counties, every), (states, np.arange(2)), levels, LISTS) == 2 + 1


def test_remainders_overlap_unless_one_table_nests_in_the_other_or_all_pairs_are_listed() -> None:
    tables, groups = crossing(ALL_PAIRS)
    pk, p, k, t = ((each, np.arange(each.data.num_rows)) for each in tables)
    assert not _overlap(p, k, tables, groups, NO_LISTS)
    assert _overlap(p, k, [tables[1], tables[2], tables[3]], groups, NO_LISTS)
    assert not _overlap(pk, p, tables, groups, NO_LISTS)
    assert not _overlap(p, pk, tables, groups, NO_LISTS)
    assert not _overlap(t, p, tables, groups, NO_LISTS)
    some, others = crossing(ALL_PAIRS[:3])
    one, two = ((each, np.arange(2)) for each in some[1:3])
    assert _overlap(one, two, some, others, NO_LISTS)
    # Of the first place both kinds are listed.
    assert not _overlap((some[1], np.array([0])), two, some, others, NO_LISTS)
    assert _overlap((some[1], np.array([1])), two, some, others, NO_LISTS)
    # Of the first kind both places are listed, of the second one.
    assert not _overlap(one, (some[2], np.array([0])), some, others, NO_LISTS)
    assert _overlap(one, (some[2], np.array([1])), some, others, NO_LISTS)


def test_of_two_tables_that_determine_each_other_only_the_later_one_leans_on_the_other() -> None:
    """State and its name: both are levels that determine each other."""
    state, name = level("state", "county", "name"), level("name", "county", "state")
    lists = CodeLists.read(
        [
            {
                "name": "place",
                "levels": ["name", "state", "county"],
                "source": "",
                "digest": "",
                "list": {
                    "name": {"values": ["One", "Two"], "codes": [0, 0, 1]},
                    "state": {"values": ["1", "2"], "codes": [0, 0, 1]},
                    "county": {"values": ["a", "b", "c"]},
                },
            }
        ]
    )
    tables = [table("county", county=["a"]), table("state", state=["1", "2"]), table("name", name=["Two", "One"])]
    groups = {"county": by(COUNTY), "state": by(state), "name": by(name)}
    both = frozenset({"county", "state", "name"})
    assert _tiled_cells(tables[1], tables, groups, both, lists).tolist() == [False, False]
    assert _tiled_cells(tables[2], tables, groups, both, lists).tolist() == [True, True]
    assert _tiled_cells(tables[2], tables, groups, frozenset({"county"}), lists).tolist() == [False, False]
    chains = _chains(tables, groups, lists)
    assert chains["state"] == {"county"}
    assert chains["name"] == {"county", "state"}
    # The same columns twice: the first has the cells, and the second none of its own.
    twice = [table("one", state=["1", "2"]), table("two", state=["2", "1"])]
    groups = {"one": by(STATE), "two": by(STATE)}
    assert _tiled_cells(twice[1], twice, groups, frozenset(), lists).tolist() == [True, True]
    assert _tiled_cells(twice[0], twice, groups, frozenset(), lists).tolist() == [False, False]


def three() -> tuple[list[ReleasedTable], dict[str, Any]]:
    """Counties by kind, two states, and one county: a finer table may stand behind a coarser one that has more cells."""
    tables = [
        table("ck", county=["a", "a", "c"], k=["x", "y", "x"]),
        table("state", state=["1", "2"]),
        table("county", county=["a"]),
    ]
    return tables, {"ck": by(COUNTY, KIND), "state": by(STATE), "county": by(COUNTY)}


def test_a_chain_goes_through_finer_tables_wherever_they_stand() -> None:
    tables, groups = three()
    chains = _chains(tables, groups, LISTS)
    assert chains == {"ck": frozenset(), "county": {"ck"}, "state": {"ck", "county"}}


def test_rounding_knows_the_coarser_cell_of_each_cell_in_every_coarser_table() -> None:
    tables, groups = three()

    def nested(*, shared: bool, within: Any, own: Any = tables, names: Any = groups) -> Any:
        found = rounding_nesting(
            SimpleNamespace(  # type: ignore[arg-type]
                tables=tuple(own),
                published=SimpleNamespace(lists=LISTS),
                cells=SimpleNamespace(shared=shared, within=within),
                described={name: SimpleNamespace(by=each) for name, each in names.items()},
            )
        )
        above = {k: {j: up.tolist() for j, up in each.items()} for k, each in found.above.items()}
        return found.sizes, above

    sizes, above = nested(shared=False, within={})
    assert sizes == (3, 2, 1)
    assert above == {0: {1: [0, 0, 1], 2: [0, 0, OUTSIDE]}, 1: {}, 2: {1: [0]}}
    chains = {"ck": frozenset(), "county": frozenset({"ck"}), "state": frozenset({"county"})}
    _, above = nested(shared=True, within=chains)
    assert above == {0: {2: [0, 0, OUTSIDE]}, 1: {}, 2: {1: [0]}}
    # Of two tables by the same columns the earlier one counts as the finer.
    twice = [table("one", state=["1", "2"]), table("two", state=["2", "1"])]
    _, above = nested(shared=False, within={}, own=twice, names={"one": by(STATE), "two": by(STATE)})
    assert above == {0: {1: [1, 0]}, 1: {}}


def test_values_of_a_group_in_a_table_are_missing_in_its_rests() -> None:
    fine = table("f", c2=["11", "22"])
    rests = table("c", c1=["1", "2"], **{ALL_OTHER: [False, True]})
    groups = {"f": by(digits("c", 2)), "c": by(digits("c", 1))}
    (c1,), (kind,) = by(digits("c", 1)), by(KIND)
    assert key_values(fine, [fine, rests], groups, kind, NO_LISTS) is None
    assert key_values(fine, [fine, rests], groups, c1, NO_LISTS).to_pylist() == ["1", "2"]
    assert key_values(rests, [fine, rests], groups, c1, NO_LISTS).to_pylist() == ["1", None]
    plain = table("c", c1=["1", "2"])
    assert key_values(plain, [fine, plain], groups, c1, NO_LISTS).to_pylist() == ["1", "2"]
    # A coarser table that has the group itself tells it of rests, too.
    place = table("p", p=["1", "2"])
    both = table("pk", p=["1", "2"], k=["x", "x"], **{ALL_OTHER: [False, True]})
    groups = {"p": by(PLACE), "pk": by(PLACE, KIND)}
    (own,) = by(PLACE)
    assert key_values(both, [both, place], groups, own, NO_LISTS).to_pylist() == ["1", "2"]
    assert key_values(both, [both, place], groups, kind, NO_LISTS).to_pylist() == ["x", None]


def test_the_codes_of_every_table_along_each_column_of_the_finest() -> None:
    tables, groups = crossing(ALL_PAIRS)
    axes = [[each.tolist() for each in axis] for axis in cell_axes(tables, groups)]
    assert axes == [
        [[0, 0, 1, 1], [0, 0, 1, 1], [0, 0, 0, 0], [0, 0, 0, 0]],
        [[0, 1, 0, 1], [0, 0, 0, 0], [0, 1, 0, 1], [0, 0, 0, 0]],
    ]


def test_the_group_of_each_cell_is_known_from_its_level_a_finer_one_or_a_prefix() -> None:
    (wanted,) = by({"name": "state", "column": "state"})
    assert _group_column(wanted, by(STATE), table("s", state=["2", "1"]), LISTS).to_pylist() == ["2", "1"]
    assert _group_column(wanted, by(COUNTY), table("c", county=["e", "a"]), LISTS).to_pylist() == ["3", "1"]
    assert _group_column(wanted, by(REGION), table("r", region=["S", "W"]), LISTS) is None
    assert _group_column(wanted, by(), table("t"), LISTS) is None
    (kind,) = by(KIND)
    assert _group_column(kind, by(COUNTY), table("c", county=["a"]), LISTS) is None
    (short,) = by(digits("c", 1))
    assert _group_column(short, by(digits("c", 2)), table("p", c2=["12"]), NO_LISTS).to_pylist() == ["1"]


# Rules between variables, and queries that are fitted together.


def statistic(name: str, kind: str = "Sum", of: str | None = "emp") -> PublishedStatistic:
    return PublishedStatistic(name=name, kind=kind, of=of, names=(name,))


def query(number: int, *statistics: PublishedStatistic, tables: Any = (), where: Any = None) -> PublishedQuery:
    return PublishedQuery(numbers=(number,), statistics=statistics, tables=tuple(tables), where=where)


def described(name: str, *forms: dict[str, Any], **changed: Any) -> PublishedTable:
    given: dict[str, Any] = {
        "share": Fraction(1),
        "rest": False,
        "selected": False,
        "sized": {},
        "sized_on": (),
        "sizes": "",
    } | changed
    return PublishedTable(name=name, by=by(*forms), **given)


PLAN = [
    query(1, statistic("first"), statistic("a", of="pay"), statistic("b", of="tax"), statistic("n", "Count", None)),
    query(2, statistic("first"), statistic("a", of="pay"), statistic("other", of="emp")),
]


def test_rules_apply_to_every_query_that_has_both_or_to_the_one_that_is_named() -> None:
    assert read_rules({"first": "a"}, PLAN) == [{"first": "a"}, {"first": "a"}]
    assert read_rules({"q2:first": "a"}, PLAN) == [{}, {"first": "a"}]
    assert read_rules({"first": "q1:a"}, PLAN) == [{"first": "a"}, {}]
    assert read_rules({"first": "tax"}, PLAN) == [{"first": "b"}, {}]
    assert read_rules({"q1:emp": "q1:pay", "a": "tax"}, PLAN) == [{"first": "a", "a": "b"}, {}]
    assert read_rules({"n": "first"}, PLAN) == [{"n": "first"}, {}]
    assert read_rules({}, PLAN) == [{}, {}]


@pytest.mark.parametrize(
    "rules, problem",
    [
        ({"first": "none"}, "does not name two counts or sums of one query"),
        ({"q1:first": "q2:a"}, "does not name two counts or sums of one query"),
        ({"q3:first": "a"}, "does not name two counts or sums of one query"),
        ({"q2:emp": "a"}, "names 'emp', which has several sums: first, other"),
        ({"q1:first": "a", "q1:b": "a"}, "two rules with 'a' on the same side"),
        ({"q1:first": "a", "q1:emp": "b"}, "two rules with 'first' on the same side"),
        ({"q1:first": "a", "q1:a": "first"}, "circular at 'a'"),
        ({"q1:first": "a", "q1:a": "b", "q1:b": "first"}, "circular at 'b'"),
    ],
)
def test_rules_that_fit_no_query_or_form_no_chain_are_refused(rules: dict[str, str], problem: str) -> None:
    with pytest.raises(ParameterError, match=problem):
        read_rules(rules, PLAN)


def test_a_chain_has_the_smallest_variable_first() -> None:
    names = [statistic("a"), statistic("b"), statistic("c"), statistic("d")]
    rules = {"a": "b", "b": "c"}
    assert [each.name for each in chain_to(names[2], names, rules)] == ["a", "b", "c"]
    assert [each.name for each in chain_to(names[1], names, rules)] == ["a", "b"]
    assert [each.name for each in chain_to(names[3], names, rules)] == ["d"]


FINE, COARSE = described("f", digits("c", 2)), described("c", digits("c", 1))


def joined(one: PublishedQuery, two: PublishedQuery, **how: Any) -> list[tuple[tuple[int, ...], list[str]]]:
    given: dict[str, Any] = {"at_most": {}, "zero_counts": False} | how
    return [(each.numbers, [own.name for own in each.statistics]) for each in joint_queries([one, two], **given)]


def test_queries_about_the_same_numbers_of_the_same_records_are_joined() -> None:
    one = query(1, statistic("x"), statistic("only", of="pay"), tables=[FINE])
    two = query(2, statistic("y"), tables=[COARSE])
    assert joined(one, two) == [((1,), ["only"]), ((1, 2), ["x"])]
    (both,) = [each for each in joint_queries([one, two], at_most={}, zero_counts=False) if len(each.numbers) == 2]
    assert [each.name for each in both.tables] == ["f", "c"]
    assert both.statistics[0].names == ("x", "y")
    assert {name: own.name for name, own in both.statistics[0].own.items()} == {"f": "x", "c": "y"}
    assert both.statistics[0].in_table("c").name == "y"


@pytest.mark.parametrize(
    "one, two, how",
    [
        (query(1, statistic("x"), tables=[FINE], where="w"), query(2, statistic("y"), tables=[COARSE]), {}),
        (query(1, statistic("x"), tables=[FINE]), query(2, statistic("y", of="pay"), tables=[COARSE]), {}),
        (query(1, statistic("x"), tables=[FINE]), query(2, statistic("y", "Count", None), tables=[COARSE]), {}),
        (query(1, statistic("x"), tables=[FINE]), query(2, statistic("y"), tables=[FINE]), {}),
        (
            query(1, statistic("x"), tables=[FINE]),
            query(2, statistic("y"), tables=[described("k", KIND)]),
            {},
        ),
        (
            query(1, statistic("x"), tables=[FINE]),
            query(2, statistic("y"), tables=[described("c", digits("c", 1), selected=True)]),
            {},
        ),
        (
            query(1, statistic("x"), tables=[FINE]),
            query(2, statistic("y"), tables=[described("c", digits("c", 1), rest=True)]),
            {},
        ),
        (
            query(1, statistic("x"), tables=[FINE]),
            query(2, statistic("y"), statistic("z"), tables=[COARSE]),
            {},
        ),
        (
            query(1, statistic("x"), tables=[FINE]),
            query(2, statistic("y"), tables=[described("c", digits("c", 1), selected=True), described("t")]),
            {},
        ),
        (
            query(1, statistic("x"), tables=[FINE]),
            query(2, statistic("y"), tables=[described("c", digits("c", 1), rest=True), described("t")]),
            {},
        ),
        (query(1, statistic("x"), tables=[FINE]), query(2, statistic("y"), tables=[COARSE]), {"zero_counts": True}),
        (
            query(1, statistic("x"), statistic("m", of="pay"), tables=[FINE]),
            query(2, statistic("y"), tables=[COARSE]),
            {"at_most": {"x": "m"}},
        ),
    ],
)
def test_queries_that_differ_in_anything_else_stay_alone(one: Any, two: Any, how: Any) -> None:
    assert {numbers for numbers, _ in joined(one, two, **how)} == {(1,), (2,)}


# What release.json says about groups, tables and series.


def test_codes_below_a_level_are_counted_once_and_missing_ones_not_at_all() -> None:
    (state,), (region,), (nation,) = by(STATE), by(REGION), by(NATION)
    counted = LISTS.count_below(state, "county", pa.chunked_array([["2", "1", "3", "zz", None]]))
    assert counted.tolist() == [2, 2, 1, 0, 0]
    assert LISTS.count_below(region, "state", pa.chunked_array([["S", "W"]])).tolist() == [2, 1]
    assert LISTS.count_below(nation, "region", pa.chunked_array([["US"]])).tolist() == [2]
    gaps = CodeLists.read(
        [
            {
                "name": "place",
                "levels": ["state", "county"],
                "source": "",
                "digest": "",
                "list": {"state": {"values": ["1", "1", "2"]}, "county": {"values": ["a", None, None]}},
            }
        ]
    )
    assert gaps.count_below(state, "county", pa.chunked_array([["1", "2"]])).tolist() == [1, 0]


def test_lists_are_found_by_the_hierarchy_of_a_level_or_by_their_finest_column() -> None:
    (state,), (county,), (other,), (case,) = by(STATE), by(COUNTY), by(KIND), by({"name": "z", "case": []})
    assert [LISTS.hierarchy_of(each) for each in (state, county, other, case)] == ["place", "place", None, None]
    assert LISTS.tables()["place"].column_names == ["nation", "region", "state", "county"]
    assert LISTS.tables()["place"].column("state").to_pylist() == ["1", "1", "2", "2", "3"]
    assert LISTS.above(state, "county", pa.chunked_array([["d", "q", "a"]])).to_pylist() == ["2", None, "1"]


def test_what_a_file_does_not_state_has_its_plainest_value() -> None:
    plain = PublishedMeasure()
    assert (plain.step, plain.bound, plain.signed, plain.derived) == (1, 2**53, False, False)
    told = PublishedMeasure.read({"step": "1/2", "bound": "7", "signed": True, "derive": []})
    assert (told.step, told.bound, told.signed, told.derived) == (Fraction(1, 2), 7, True, True)
    series = PublishedSeries.read({})
    assert (series.name, series.period, series.revision, series.date, series.revises) == ("", "", 0, "", ())
    bare = PublishedTable.read({"name": "t", "by": [], "share": "1/3"})
    assert (bare.share, bare.rest, bare.selected, bare.sized_on, bare.sizes) == (Fraction(1, 3), False, False, (), "")
    full = PublishedTable.read({"name": "t", "by": [], "share": 1, "rest": "publish", "keys": {}, "sizes": "d"})
    assert (full.rest, full.selected, full.sizes) == (True, True, "d")
    asked = PublishedQuery.read({}, 4)
    assert (asked.numbers, asked.external, asked.title, asked.where) == ((4,), True, "", None)
    assert not PublishedQuery.read({"statistics": []}, 1).external
