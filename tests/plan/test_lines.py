"""The line index: every entry of any TOML text is found on the line it stands on."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plan.whole_plan import WHOLE
from recordwise.plan.file.node import line_index


def paths(value, here=()):
    """Every way to an entry of a parsed document."""
    yield here
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, each in inner:
        yield from paths(each, (*here, name))


TRICKY = '''\
a = 1 # [not.a.table]
"quoted.key" = "x = 2 # no comment"
'literal key' = 'back\\slash'
b.c."d e" = [
  1, # one
  [2, 3],
  { x = "]", y = [ "}" ] },
]
text = """
[fake]
key = "\\""""
four = 4
five = \'\'\'
a = 'b'\'\'\'\'
[t]
"\\u0061bc" = true

[t.u.v]
when = 1979-05-27 07:32:00
[[rows]]
n = 1
[rows.inner]
deep = 2
[[rows]]
n = 3
[[rows.more]]
m = 4
[[rows.more]]
m = 5
'''


@pytest.mark.parametrize("text", [WHOLE, TRICKY, TRICKY.replace("\n", "\r\n"), "", "a=1", "# only a comment"])
def test_every_entry_has_a_line(text):
    assert set(paths(tomllib.loads(text))) <= set(line_index(text))


def test_lines_are_where_the_entries_stand():
    lines = line_index(TRICKY)
    assert lines["quoted.key",] == 2
    assert lines["b", "c", "d e"] == 4
    assert lines["b", "c", "d e", 1, 1] == 6
    assert lines["b", "c", "d e", 2, "y", 0] == 7
    assert lines["four",] == 12
    assert lines["t", "abc"] == 16
    assert lines["t", "u", "v", "when"] == 19
    assert lines["rows", 0, "inner", "deep"] == 23
    assert lines["rows", 1, "n"] == 25
    assert lines["rows", 1, "more", 1] == 28


names = st.text("abcxyz_", min_size=1, max_size=4)
scalars = st.one_of(
    st.integers(-9, 9).map(str),
    st.sampled_from(['"a # b"', "'[x]'", "true", "1.5", '"""\nx\n"""', '"\\\\"', "'''it's'''"]),
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda parts: "[\n" + ",\n".join(parts) + "]"),
        st.dictionaries(names, inner.filter(lambda v: "\n" not in v), max_size=2).map(
            lambda found: "{ " + ", ".join(f"{name} = {value}" for name, value in found.items()) + " }"
        ),
    ),
    max_leaves=6,
)
tables = st.dictionaries(names, values, max_size=4)


@given(st.lists(tables, max_size=4), tables)
@pytest.mark.costly
def test_generated_documents_are_walked_in_step_with_the_parser(rows, top):
    entries = [f"{name} = {value}" for name, value in top.items()]
    for row in rows:
        entries += ["[[ROWS]]", *(f"{name} = {value}" for name, value in row.items())]
    text = "\n".join(entries)
    lines, parsed = line_index(text), tomllib.loads(text)
    assert set(paths(parsed)) <= set(lines)
    split = text.splitlines()
    for path in paths(parsed):
        if path and isinstance(path[-1], str) and path != ("ROWS",):
            assert path[-1] in split[lines[path] - 1]
