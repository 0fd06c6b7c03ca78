"""What a page holds, by hand: packed numbers, rows that fit, order, texts, lines, sentences, headlines and the map."""

import base64
import json
import math
import zlib
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import recordwise as rw
from recordwise.mechanisms.inference import ValueWindow
from recordwise.plan.publication import Labels
from recordwise.plan.statistics.base import COUNT, SUM
from recordwise.policy import Policy, constant, gaussian_sum
from recordwise.policy.columns import Measure, Truth
from recordwise.policy.render.html import Line
from recordwise.release.content import Content, DescribedTable
from recordwise.release.dictionary import Entry
from recordwise.release.page.cells import (
    FIRST_ROWS,
    MOST_WITH_ENDS,
    PageTable,
    PageVariable,
    _cell,
    _columns,
    _cv_text,
    _group,
    _key,
    _order,
    _row,
    _sample_rows,
    _width,
    compress,
    first_shown,
    interval_text,
    largest_first,
    packed_cells,
    page_cells,
    rows_that_fit,
    table_preview,
    with_titles,
)
from recordwise.release.page.charts import (
    MOST_LINES,
    Figure,
    _brief,
    _line_name,
    _rung,
    extremes,
    noise_lines,
    sizes_up_to,
    variances,
)
from recordwise.release.page.history import Digits, History, _number_rows, packed_codes, packed_numbers
from recordwise.release.page.questions import (
    Band,
    FirmColumns,
    Question,
    _on_lattice,
    _one_digit,
    _rest,
    _unlisted_value,
    details,
    lead,
    losses_along,
    or_list,
    reach_of,
    size_at_loss,
    told_sentence,
)
from recordwise.release.page.results import (
    Results,
    Total,
    Tree,
    _map,
    _ranked,
    headlines,
    on_page,
    results_json,
)
from recordwise.release.tables import PRIVATE, PagePart, ReleasedTable

# Numbers as digits and powers of ten.


@pytest.mark.parametrize(
    "value, whole, power, sign, shown",
    [
        (1.5, 150_000, -5, 0, 1.5),
        (-0.00123456789, 123_457, -8, 1, -0.00123457),
        (999_999.7, 100_000, 1, 0, 1_000_000),
        (123_456.0, 123_456, 0, 0, 123_456),
        (1e20, 100_000, 15, 0, 1e20),
        (0.0, 0, 0, 0, 0),
        (-0.0, 0, 0, 0, 0),
        (1e-300, 0, 0, 0, 0),
        (-1e-300, 0, 0, 0, 0),
        (None, 0, 0, 2, None),
        (math.inf, 0, 0, 2, None),
    ],
)
def test_a_number_is_six_digits_a_power_of_ten_and_a_sign(
    value: Any, whole: int, power: int, sign: int, shown: Any
) -> None:
    found = packed_numbers(pa.array([value], pa.float64()))
    assert (found.whole.tolist(), found.power.tolist(), found.sign.tolist()) == ([whole], [power], [sign])
    assert found.values() == [shown]


def test_whole_numbers_keep_every_digit_up_to_what_floats_hold() -> None:
    for values in ([2**53, -(2**53), 7], [2**53, None, -7]):
        assert packed_numbers(pa.array(values)).values() == [
            float(v) if v is not None and abs(v) == 2**53 else v for v in values
        ]
    assert packed_numbers(pa.array([2**60])).values() == [1.15292e18]
    assert packed_numbers(pa.array([2**60])).whole.tolist() == [115_292]
    assert packed_numbers(pa.array([-(2**60), 1])).sign.tolist() == [1, 0]
    assert packed_numbers(pa.array([], pa.int64())).values() == []
    assert packed_numbers(pa.array([-3, 4])).sign.tolist() == [1, 0]


def test_planes_are_the_bytes_of_each_place_and_are_read_again() -> None:
    assert packed_codes(np.array([1, 258, 65536]), 3) == bytes([1, 2, 0, 0, 1, 0, 0, 0, 1])
    found = packed_numbers(pa.array([1.5, -2e9, None, 1e-12]))
    raw = found.planes()
    assert len(raw) == 10 * 4
    again = Digits.read(raw, 4)
    assert again.values() == found.values() == [1.5, -2_000_000_000, None, 1e-12]
    assert again.rows(np.array([3, 0])).values() == [1e-12, 1.5]


def test_rows_with_equal_keys_have_equal_numbers_and_others_do_not() -> None:
    first = pa.table({"a": ["x", "x", None], "b": [1, 2, 1]})
    second = pa.table({"a": [None, "x", "y", "x"], "b": [1, 2, 1, 3]})
    ours, theirs = (each.to_pylist() for each in _number_rows(first, second))
    assert [theirs.index(each) if each in theirs else None for each in ours] == [None, 1, 0]
    assert len({*ours, *theirs}) == 5


def test_a_history_is_saved_and_read_again() -> None:
    columns = tuple(packed_numbers(pa.array(each)) for each in ([1.5, None], [2.0, 3.0], [4.0, 5.0]))
    own = History(periods=("2023",), digests=("d",), tables={"t": columns, "none": ()}, changes={"t": (1.5, None)})
    again = History.from_json(json.loads(json.dumps(own.to_json())))
    assert (again.periods, again.digests, again.changes) == (("2023",), ("d",), {"t": (1.5, None)})
    assert [each.values() for each in again.tables["t"]] == [[1.5, None], [2, 3], [4, 5]]
    assert again.tables["none"] == ()
    assert own.to_json()["tables"]["t"]["rows"] == 2
    assert "changes" not in History(periods=(), digests=(), tables={}).to_json()
    shown = table(["a"], [1.0])
    assert (own.columns(shown), own.rows(shown), own.periods_of(shown)) == (3, 2, ("2023",))
    other = replace(shown, name="u")
    assert (own.columns(other), own.rows(other), own.periods_of(other)) == (0, None, ())
    assert own.past(other, np.array([0])) == ()
    assert [each.values() for each in own.past(shown, np.array([1]))] == [[None], [3], [5]]


# Cells on the page.


def table(codes: list[str], values: list[Any], name: str = "t", *, accurate: bool = True) -> ReleasedTable:
    data: dict[str, Any] = {"k": codes, "n": pa.array(values, pa.float64())}
    if accurate:
        data |= {f"n_{end}": [float(at + 1) for at in range(len(codes))] for end in ("sd", "cv", "low", "high")}
    return ReleasedTable(name=name, keys=("k",), variables=("n",), data=pa.table(data))


def described(own: ReleasedTable, title: str = "", **more: Any) -> DescribedTable:
    about = {"unit": "", "type": "number", "meaning": "", "computed": "", "missing": ""}
    columns = tuple(Entry(name=each, title=each.upper(), **about) for each in own.data.column_names)
    return DescribedTable(table=own, title=title or own.name, columns=columns, **more)


def content(*tables: DescribedTable, **more: Any) -> Content:
    given: dict[str, Any] = {"words": Labels()} | more
    return Content(dataset="d", tables=tables, privacy_label=PRIVATE, **given)


def test_the_largest_cells_come_first_and_missing_ones_last() -> None:
    own = table(["a", "b", "c", "d"], [2.0, None, 9.0, 2.0])
    assert _order(own).to_pylist() == [2, 0, 3, 1]
    assert largest_first(own, 2).column("k").to_pylist() == ["c", "a"]
    assert _order(replace(own, variables=())).to_pylist() == [0, 1, 2, 3]


def test_rows_that_fit_are_as_many_of_the_largest_tables_as_there_is_room_for() -> None:
    small, large = described(table(["a"] * 20, [1.0] * 20)), described(table(["a"] * 100, [1.0] * 100, "u"))
    width = 4.5 * (1 + 4) + 0.7
    assert _width(small.table, None) == pytest.approx(width)
    assert rows_that_fit([small, large], None, 120 * width) == [20, 100]
    assert rows_that_fit([small, large], None, 120 * width - 0.1) == [20, 99]
    assert rows_that_fit([small, large], None, 70.5 * width) == [20, 50]
    assert rows_that_fit([small, large], None, 30 * width) == [15, 15]
    assert rows_that_fit([small, large], None, 1.0) == [FIRST_ROWS, FIRST_ROWS]
    assert rows_that_fit([], None, 10.0) == []


def test_pages_hold_every_cell_while_there_is_room_and_otherwise_fewer_than_fit() -> None:
    codes = [f"{at:05d}" for at in range(3000)]
    own = content(described(table(codes, list(np.random.default_rng(1).normal(size=3000) * 1000))))
    (whole,), packed = page_cells(own)
    assert whole.data.num_rows == 3000
    assert whole.data.column("n").to_pylist() == sorted(whole.data.column("n").to_pylist(), reverse=True)
    for room in (30_000, 12_000):
        (some,), fewer = page_cells(own, room=room)
        assert 0.7 * room <= len(fewer) <= room < len(packed)
        assert some.data.num_rows < 3000


def test_a_sample_of_rows_is_all_of_few_and_up_to_a_sixteenth_of_many_in_runs() -> None:
    assert _sample_rows(5).tolist() == [0, 1, 2, 3, 4]
    assert len(_sample_rows(8191)) == 8191
    half = _sample_rows(8192)
    assert len(half) == 4096
    assert int(np.sum(np.diff(half) > 1)) == 7
    many = _sample_rows(1_000_000)
    assert len(many) == pytest.approx(62_500, rel=0.01)


def test_packed_cells_say_how_they_are_packed() -> None:
    own = described(table(["a", "b"], [1.5, -2.0], accurate=False))
    (page,), packed = page_cells(content(own, words=Labels(labels={"k=a": "Alpha"})))
    raw = zlib.decompress(base64.b64decode(packed))
    size = int.from_bytes(raw[:4], "little")
    assert json.loads(raw[4 : 4 + size]) == [{"rows": 2, "keys": [{"values": ["a", "b"], "labels": ["Alpha", None]}]}]
    body = raw[4 + size :]
    assert body[:8] == packed_codes(np.array([0, 1]), 4)
    assert Digits.read(body[8:], 2).values() == [1.5, -2]
    assert packed_cells([]) == ""
    assert zlib.decompress(compress([b"abc"] * 50)) == b"abc" * 50
    head, parts = replace(page, parents=np.array([2, 0])).pack()
    assert head["parents"] == 1
    assert b"".join(parts).endswith(packed_codes(np.array([2, 0]), 4))


def test_a_table_has_its_interval_and_fit_on_the_page_and_the_ends_of_a_fit_unless_it_is_large() -> None:
    columns = {"n": [1.0], "n_cv": [1.0], "n_fit": [1.0], "n_fit_low": [1.0], "n_fit_high": [1.0]}
    own = ReleasedTable(name="t", keys=(), variables=("n",), data=pa.table(columns))
    assert _columns(own, "n") == ("n", "n_low", "n_high", "n_sd", "n_fit", "n_fit_low", "n_fit_high")
    for rows, expected in ((MOST_WITH_ENDS, 3), (MOST_WITH_ENDS + 1, 1)):
        many = pa.table({name: pa.nulls(rows, pa.float64()) for name in columns})
        assert len(_columns(replace(own, data=many), "n")) == 4 + expected
    plain = ReleasedTable(name="t", keys=(), variables=("n",), data=pa.table({"n": [1.0]}))
    assert _columns(plain, "n") == ("n",)


def variable(**changed: Any) -> PageVariable:
    given: dict[str, Any] = {"name": "n", "title": "N", "columns": (), "accurate": False, "fitted": 0, "status": False}
    return PageVariable(**(given | changed))


def page_table(*variables: PageVariable, rows: int = 2, **more: Any) -> PageTable:
    own = described(table(["a"] * rows if rows == 1 else ["a", "b"], [1.0] * rows))
    given: dict[str, Any] = {
        "described": own,
        "keys": ("k",),
        "data": own.data,
        "labels": ({"a": "Alpha"},),
        "status": {},
        "statuses": ("good", "bad"),
    }
    return PageTable(variables=variables, **(given | more))


def test_the_columns_of_a_row_are_found_one_after_the_other() -> None:
    everything = variable(accurate=True, fitted=3, status=True)
    value_only = variable(name="m", title="M", fitted=1)
    own = page_table(everything, value_only)
    row = ["a", 200.0, 150.0, 250.0, 20.0, 210.0, 160.0, 260.0, "good", 5.0, 6.0]
    found = _row(own, row, ("k",))
    assert found["keys"] == ["a Alpha"]
    assert [each["text"] for each in found["cells"]] == [
        "200",
        "150 to 250",
        "10%",
        "210",
        "160 to 260",
        "good",
        "5",
        "6",
    ]
    assert [each["kind"] for each in found["cells"]] == ["first", "interval", "", "", "interval", "status", "first", ""]
    assert _group(everything, 0.9) == {
        "name": "N",
        "columns": ["value", "90% noise interval", "cv", "made to add up", "its interval", "status"],
    }
    assert _group(value_only, 0.9)["columns"] == ["value", "made to add up"]
    assert _group(variable(), 0.9)["columns"] == ["value"]


def test_cells_and_intervals_are_said_in_words() -> None:
    assert interval_text(None, None) == "\N{EN DASH}"
    assert interval_text(None, 5.0) == "at most 5"
    assert interval_text(5.0, None) == "at least 5"
    assert interval_text(1.0, 2.0) == "1 to 2"
    assert (_key(None, {}), _key("a", {"a": "A"}), _key("b", {"a": "A"})) == ("(missing)", "a A", "b")
    assert (_cv_text(0.0, 1.0), _cv_text(None, 1.0), _cv_text(5.0, None), _cv_text(-4.0, 1.0)) == ("", "", "", "25%")
    own = table(["a"], [1.0])
    row = {"k": "a", "n": 12.0, "n_low": 10.0, "n_high": 14.0, "none": None}
    assert _cell(row, "n", own) == "12 (10 to 14)"
    assert _cell({"n": 12.0, "n_low": None, "n_high": 14.0}, "n", own) == "12"
    assert (_cell(row, "k", own), _cell(row, "none", own)) == ("a", "")


def test_the_first_table_is_shown_unless_it_is_a_basic_one_of_one_cell() -> None:
    def basic(rows: int) -> PageTable:
        return page_table(variable(status=True), rows=rows, status={"n": pa.array(["good"] * rows)})

    research = page_table(
        variable(accurate=True), described=described(table(["a", "b"], [1.0, 1.0]), halves={"n": 0.5})
    )
    assert first_shown([basic(1), basic(2), research]) == 1
    assert first_shown([basic(2), basic(2)]) == 0
    assert first_shown([basic(1), research]) == 0
    assert first_shown([research, basic(2)]) == 0
    assert first_shown([]) == 0


def test_what_the_script_knows_of_a_table() -> None:
    own = page_table(variable(accurate=True, columns=("n", "n_low", "n_high", "n_sd")), query=3, changes=(1.5,))
    told = own.to_json([])
    assert {
        name: told[name] for name in ("keys", "names", "texts", "telling", "basic", "held", "all", "gaps", "query")
    } == {
        "keys": ["K"],
        "names": ["k"],
        "texts": [True],
        "telling": [True],
        "basic": False,
        "held": 2,
        "all": 2,
        "gaps": False,
        "query": 3,
    }
    assert told["variables"] == [["n", True, 0, "N", False]]
    assert (told["halves"], told["reaches"], told["changes"]) == ([None], [None], [1.5])
    open_ended = own.data.set_column(own.data.column_names.index("n_high"), "n_high", pa.array([None, 1.0]))
    assert replace(own, data=open_ended).to_json([])["gaps"]
    assert replace(own, variables=(variable(status=True),), status={"n": pa.array(["good"] * 2)}).to_json([])["basic"]
    assert "changes" not in replace(own, changes=()).to_json([])


def part(name: str, label: str, mechanism: Any = None, **more: Any) -> PagePart:
    given: dict[str, Any] = {"kind": SUM, "noise": "", "policy": Policy(), "measure": "emp"} | more
    return PagePart(table=name, statistic=label, mechanisms=() if mechanism is None else mechanism, **given)


def test_parts_have_the_titles_of_tables_and_labels_that_tell_them_apart() -> None:
    own = content(described(table(["a"], [1.0]), "Title, with intervals"), words=Labels(labels={"emp": "Jobs"}))
    parts = [part("t", "a"), part("t", "b"), part("u", "c")]
    assert [(each.table, each.statistic) for each in with_titles(parts, own)] == [
        ("Title", "a"),
        ("Title", "b"),
        ("u", "Jobs"),
    ]


# Lines of noise.


SIZES = (1.0, 10.0, 100.0, 1000.0)


def test_noise_is_a_share_of_the_total_and_lines_that_coincide_share_a_name() -> None:
    emp = Measure.of("emp")
    wide, narrow = rw.Gaussian(sigma=30), rw.Gaussian(sigma=3)
    found = noise_lines(
        [
            part("one", "x", (narrow,)),
            part("two", "x", (narrow,)),
            part("one", "y", (wide,)),
            part("one", "z", (wide,), measure="pay"),
            part("one", "n", (wide,), kind=COUNT),
        ],
        emp,
        SIZES,
    )
    assert [line.name for line in found] == ["x", "y (one)"]
    np.testing.assert_allclose(found[0].y, [3 / size for size in SIZES], rtol=1e-6)
    np.testing.assert_allclose(found[1].y, [30 / size for size in SIZES], rtol=1e-9)
    assert _line_name({"x": ["one", "two"], "y": ["one"]}, 3) == "x (2 tables), y (one)"
    assert _line_name({"x": ["one", "two"]}, 2) == "x"


def test_lines_above_the_chart_are_left_out_if_others_are_in_it() -> None:
    emp = Measure.of("emp")
    far, near = part("one", "far", (rw.Gaussian(sigma=100_000),)), part("one", "near", (rw.Gaussian(sigma=3),))
    assert [line.name for line in noise_lines([far, near], emp, SIZES)] == ["near"]
    assert [line.name for line in noise_lines([far], emp, SIZES)] == ["far"]
    many = [part("one", f"s{at}", (rw.Gaussian(sigma=3 * (at + 1)),)) for at in range(7)]
    assert [line.name for line in noise_lines(many, emp, SIZES)] == [f"s{at}" for at in range(MOST_LINES)]


def test_noise_by_size_is_shown_by_its_least_and_its_most() -> None:
    bands = tuple(rw.Gaussian(sigma=each) for each in (20, 5, 90))
    sized = part("one", "x", bands, noise="in proportion to the size of the cell")
    assert [(name, each.sigma) for name, each in extremes(sized)] == [(", smallest cells", 5), (", largest cells", 90)]
    grouped = part("one", "x", bands)
    assert [name for name, _ in extremes(grouped)] == [", group with least noise", ", group with most noise"]
    fat = tuple(rw.GeneralizedGaussian(shape=1, scale=each) for each in (20, 5))
    assert [each.scale for _, each in extremes(part("one", "x", fat))] == [20, 5]
    assert [name for name, _ in extremes(part("one", "x", bands[:1]))] == [""]
    emp = Measure.of("emp")
    several = [part(f"t{at}", "x", tuple(rw.Gaussian(sigma=s * (at + 1)) for s in (2, 3))) for at in range(4)]
    assert [line.name for line in noise_lines(several, emp, SIZES)] == [
        "x, group with least noise",
        "x, group with most noise",
    ]
    assert noise_lines(several, emp, SIZES)[0].y[0] == pytest.approx(2.0, rel=1e-6)
    assert len(noise_lines(several[:3], emp, SIZES)) == MOST_LINES
    assert variances(rw.Polylog(power=1, rate="2.95", offset=1, scale=1), sized, SIZES) == [math.inf] * 4


def test_a_rung_has_the_nearest_size_and_numbers_are_brief() -> None:
    own = Figure(
        measure=Measure.of("emp"),
        label="emp",
        sizes=SIZES,
        losses=(0.1, 0.2, 0.3, 0.4),
        noises=(Line(name="x", x=SIZES, y=(3.0, 0.3, math.inf, 0.003)),),
    )
    assert _rung(own, 12.0) == {"size": "10", "at": 1, "loss": "0.2", "noises": ["30.00%"]}
    assert _rung(own, 90.0)["noises"] == ["no variance"]
    assert own.to_json() == {"name": "emp", "sizes": [1, 10, 100, 1000], "noises": [["x", [3, 0.3, None, 0.003]]]}
    assert [_brief(each) for each in (5.0, 5.5, math.nan, 1e9, 1e9 - 1)] == [5, 5.5, None, 1e9, 999_999_999]
    assert isinstance(_brief(1e9), float)
    assert isinstance(_brief(1e9 - 1), int)
    spread = sizes_up_to(Measure("emp", Fraction(2)), 2e12)
    assert (spread[0], spread[-1], len(spread)) == (2.0, 2e12, 61)


# Questions and sentences.


def test_a_record_starts_with_one_digit_on_the_lattice() -> None:
    assert [_one_digit(each) for each in (1.0, 99.0, 123.0, 0.057)] == [1.0, 90.0, 100.0, 0.05]
    assert _on_lattice(7.4, Measure.of("emp")) == 7
    assert _on_lattice(0.2, Measure.of("emp")) == 1
    assert _on_lattice(7.4, Measure("emp", Fraction(1, 2))) == 7.5
    assert isinstance(_on_lattice(7.0, Measure("emp", Fraction(1, 2))), int)


def test_charts_reach_a_thousand_times_the_size_that_costs_1_and_no_further_than_the_bound() -> None:
    emp = Measure.of("emp")
    policy = gaussian_sum("emp", sigma=10)
    # x^2/200 passes 1 at the first size above 14.1, and .2 above 6.3.
    assert size_at_loss(policy, emp, {}, 1.0) == 15.0
    assert size_at_loss(policy, emp, {}, 0.2) == 7.0
    assert size_at_loss(policy + constant(5), emp, {}, 1.0) == 15.0
    assert reach_of(policy, emp, {}, 1e12) == 1e5
    assert reach_of(policy, emp, {}, 5e4) == 5e4
    assert reach_of(policy, emp, {}, 3.0) == 10.0
    assert reach_of(gaussian_sum("emp", sigma="0.01"), emp, {}, 1e12) == 1e4
    assert reach_of(constant(1) + gaussian_sum("emp", sigma=10**12) * Fraction(1, 10**9), emp, {}, 1e30) <= 2.0**53
    assert losses_along(policy, {"emp": 3}, "emp", [0.0, 10.0, 20.0]) == pytest.approx([0.0, 0.5, 2.0])
    both = policy + gaussian_sum("pay", sigma=1)
    assert losses_along(both, {"pay": 2}, "emp", [0.0, 10.0]) == pytest.approx([2.0, 2.5])


def test_another_value_is_none_of_the_listed_ones() -> None:
    assert _unlisted_value([Fraction(3), Fraction(7)]) == 8.0
    assert _unlisted_value(["abc", "~x"]) == "\x7f"
    assert _unlisted_value([]) == "~"
    assert _unlisted_value([Truth(True)]) is False
    assert _unlisted_value([Truth(False)]) is True
    assert [each.label for each in _rest([Truth(True), Truth(False)], missing=False)] == []
    assert [each.label for each in _rest([Truth(True)], missing=True)] == ["any other", "not known"]
    assert [each.value for each in _rest(["a", "b"], missing=True)] == ["~", None]


def test_the_first_sentence_depends_on_the_loss_and_on_what_is_hidden() -> None:
    assert lead(0.0, []) == "Nothing in these tables depends on you: your privacy loss is 0."
    assert "no guarantee" in lead(math.inf, [])
    assert "at most" in lead(0.5, [])
    assert "no practical limit" in lead(100.1, [])
    assert "no practical limit" not in lead(100.0, [])
    assert "except for a probability" in lead(0.5, [], 1e-6)
    assert "except for a probability" not in lead(0.5, [])
    hidden, exact, far = (
        Band(label="jobs", low="5", high="9"),
        Band(label="pay", low="3", high="3"),
        Band(label="tax", low="2", high=None),
    )
    text = lead(0.5, [hidden, exact, far])
    assert (
        "reliably tell 5 from 9 jobs or 2 from any larger number of tax; your exact number of pay is not hidden."
        in text
    )
    assert or_list(["a"]) == "a"
    assert or_list(["a", "b", "c"]) == "a, b or c"


def test_details_add_what_is_selected_and_how_far_odds_move() -> None:
    assert len(details(0.5, 0.0)) == 2
    assert len(details(0.5, 1e-6, "told")) == 4
    assert "one case in twenty" in details(0.5, 0.0)[-1]
    assert "never change" in details(0.5, 0.0, pure=0.001)[-1]
    assert len(details(100.0, 0.0)) == 2
    assert len(details(100.1, 0.0)) == 1
    assert len(details(0.0, 0.0)) == 1


def window(low: Any, high: Any, value: Any = 100, step: Any = 1) -> ValueWindow:
    ends = {"low": Fraction(low), "high": None if high is None else Fraction(high)}
    return ValueWindow(
        measure="emp", value=Fraction(value), step=Fraction(step), least=Fraction(0), confidence=0.95, **ends
    )


def test_how_closely_a_value_is_told_has_its_own_words() -> None:
    labels, units = {"emp": "jobs"}, {"emp": "persons"}
    assert "your jobs within ± 10 (persons)" in told_sentence([window(90, 110)], labels, units)
    assert "your jobs as 90 to 130 (persons)" in told_sentence([window(90, 130)], labels, units)
    assert "your jobs as 90 (persons) or more" in told_sentence([window(90, None)], labels, units)
    assert "your exact emp" in told_sentence([window(100, 100)], {}, {})
    assert "your emp within ± 10.0 " in told_sentence([window(90, 110, step="1/2"), window(1, 1)], {}, {}) + " "


def test_firms_are_asked_for_what_no_question_asks_for() -> None:
    questions = [
        Question(name="emp", label="emp", kind="amount"),
        Question(name="naics", label="naics", kind="text"),
        Question(name="kind", label="kind", kind="choice"),
    ]

    class Firms:
        def columns(self) -> tuple[str, ...]:
            return ("state", "naics", "kind", "emp", "alone")

    listed = pa.table({"region": ["S", "S"], "state": ["1", "2"], "county": ["a", "b"]})
    found = FirmColumns.of(Firms(), questions, [listed])  # type: ignore[arg-type]
    assert found.needed == ("county", "kind", "alone")
    assert found.shared == ("naics",)
    assert found.found_levels() == ["state"]
    assert found.to_json({"kind": "Kind"}) == {
        "places": [["county", "county"], ["kind", "Kind"], ["alone", "alone"]],
        "shared": ["naics"],
        "lists": [{"finest": "county", "codes": ["a", "b"], "levels": {"state": {"values": ["1", "2"], "at": [0, 1]}}}],
    }
    assert FirmColumns.of(None, questions, [listed]) == FirmColumns()
    for rows, kept in ((20_000, 1), (20_001, 0)):
        long = pa.table({"state": ["1"] * rows, "county": ["a"] * rows})
        assert len(FirmColumns.of(Firms(), questions, [long]).lists) == kept  # type: ignore[arg-type]


# Results.


def test_parents_are_counted_from_1_in_the_order_of_the_page() -> None:
    tree = Tree(
        tables=("fine", "coarse"),
        names={"n": ("n", "n")},
        parents={"fine": np.array([3, 4, 3]), "coarse": np.array([-1, -1])},
    )
    found = on_page(tree, {"fine": np.array([2, 0, 1]), "coarse": np.array([1, 0])})
    # The coarse table's rows 0 and 1 are the answers 3 and 4; on the page row 1 is first.
    assert {name: each.tolist() for name, each in found.items()} == {"fine": [5, 5, 4], "coarse": [0, 0]}


def test_headlines_are_the_grand_total_or_the_sum_of_the_coarsest_table() -> None:
    one = table(["US"], [1234.0], "one")
    one = replace(
        one, data=one.data.set_column(4, "n_low", pa.array([1134.0])).set_column(5, "n_high", pa.array([1334.0]))
    )
    assert headlines(content(described(one))) == [
        {"title": "N", "unit": "", "value": "1,230", "interval": "1,130 to 1,330", "of": ""}
    ]
    several = described(table(["a", "b", "c"], [100.0, 200.0, 300.0]), "Tables", halves={"n": 0.5})
    (said,) = headlines(content(several))
    # Standard deviations 1, 2 and 3: 1.96 root 14 and half a step is 7.83.
    assert said == {"title": "N", "unit": "", "value": "600", "interval": "592 to 608", "of": "all 3 cells of Tables"}
    assert headlines(content(replace(several, coarser=("x",)))) == []
    assert headlines(content(replace(several, halves={}))) == []
    (wide,) = headlines(content(replace(several, halves={"n": 0.0}, reaches={"n": 10.0})))
    assert wide["interval"] == "563 to 637"


def test_a_notebook_shows_numbers_that_were_made_to_add_up_with_their_own_intervals() -> None:
    own = table(["a"], [458.0])
    assert "458 (1 to 1)" in table_preview(own)
    for name, value in (("n_fit", 99.0), ("n_fit_low", 97.0), ("n_fit_high", 101.0)):
        own = replace(own, data=own.data.append_column(name, pa.array([value])))
    shown = table_preview(own)
    assert "99 (97 to 101)" in shown
    assert "458" not in shown
    assert "number (noise interval) of numbers that were made to add up" in shown


def test_headlines_are_the_best_estimates_where_tables_form_a_tree() -> None:
    several = described(table(["a", "b", "c"], [100.0, 200.0, 300.0], "coarse"), "Coarse", halves={"n": 0.5})
    best = Total(value=500.0, sd=1.0, largest=0.5)
    tree = Tree(tables=("fine", "coarse"), names={}, parents={}, totals={"n": best})
    (said,) = headlines(content(several), Results(trees=(tree,)))
    # 1.96 and half of half a step is 2.21.
    assert said == {
        "title": "N",
        "unit": "",
        "value": "500",
        "interval": "498 to 502",
        "of": "best estimate from all tables",
    }


def test_headlines_of_complete_keys_are_of_the_table_with_the_smallest_error() -> None:
    rough = described(table(["a", "b", "c"], [100.0, 200.0, 300.0], "rough"), "Rough", halves={"n": 0.5})
    exact = described(table(["x", "y"], [290.0, 300.0], "exact"), "Exact", halves={"n": 0.5})
    longer = replace(exact, table=replace(exact.table, data=pa.concat_tables([exact.data] * 2)))
    queries = {"rough": 0, "exact": 0}
    for complete, of in ((True, "all 4 cells of Exact"), (False, "all 3 cells of Rough")):
        (said,) = headlines(content(rough, longer), Results(queries=queries, complete=complete))
        assert said["of"] == of


def test_the_ranked_table_has_few_keys_and_cells_but_at_least_four() -> None:
    few, many = described(table(["a"] * 3, [1.0] * 3, "few")), described(table(["a"] * 9, [1.0] * 9, "many"))
    four = described(table(["a"] * 4, [1.0] * 4, "four"))
    bare = described(table(["a"] * 5, [1.0] * 5, "bare", accurate=False))
    assert _ranked(content(few, many)) == "many"
    assert _ranked(content(few, many, four)) == "four"
    assert _ranked(content(bare, many)) == "many"
    assert _ranked(content(few)) == "few"
    assert _ranked(content(described(replace(few.table, keys=())))) == ""
    told = results_json(
        Results(queries={"few": 0, "many": 1}), content(few, replace(many, halves={"n": 0.5})), ["few", "many"]
    )
    assert (told["ranked"], told["map"], told["trees"], told["complete"]) == (1, None, [], False)
    assert told["z"] == pytest.approx(1.959964)
    assert told["statistics"] == [{"query": 1, "name": "n", "title": "N"}]


STATES = ["01", "02", "04", "05", "06", "08", "09", "10", "11"]


def by_state(codes: list[str], key: str = "state", **words: Any) -> Any:
    own = ReleasedTable(name="t", keys=(key,), variables=("n",), data=pa.table({key: codes, "n": [1.0] * len(codes)}))
    return _map(content(described(own), words=Labels(**words)), {"t": 3})


def test_a_map_needs_enough_codes_of_states_that_are_called_so() -> None:
    found = by_state(STATES)
    assert (found["table"], found["key"]) == (3, "state")
    assert found["tiles"]["01"][0] == "AL"
    assert by_state(STATES, key="State") is not None
    assert by_state(STATES, key="county") is None
    assert by_state(STATES[:8]) is not None
    assert by_state(STATES[:7]) is None
    assert by_state([*STATES, *"abcde"]) is not None
    assert by_state([*STATES, *"abcdef"]) is None
    assert by_state(STATES, labels={"state=01": "Alabama"}) is not None
    assert by_state(STATES, labels={"state=01": "AL"}) is not None
    assert by_state(STATES, labels={"state=01": "Bavaria"}) is None
