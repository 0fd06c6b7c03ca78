"""The policy page as a file: one file, small, no address of any other, nothing unescaped, nothing confidential, honest words."""

import base64
import json
import re
import zlib
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import quickjs

import recordwise as rw
from build import generous, question, records, session
from recordwise.exact.text import chance_text, factor_text
from recordwise.noise import Seeded
from recordwise.policy import meaning
from recordwise.release.page import cells
from recordwise.release.page.cells import interval_text
from recordwise.release.page.history import Digits, packed_numbers
from recordwise.release.page.page import model_js, page_html
from recordwise.release.page.questions import SENTENCES, Band, details, lead, or_list
from recordwise.release.page.view import view_of
from report_releases import (
    HOSTILE,
    HOSTILE_LABELS,
    LABELS,
    by_industry,
    five_levels,
    hostile_release,
    only_counts,
    opened,
    private_keys,
    random_records,
)

LIMIT = 130_000


class Structure(HTMLParser):
    """Elements and attributes as a browser reads them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words.append(data)


@pytest.fixture(scope="module")
def small() -> rw.Release:
    with session(records(), budget=generous()) as opened_session:
        return opened_session.run(question())


def pages() -> dict[str, str]:
    found = {"by industry": by_industry(), "private keys": private_keys()}
    return {name: page_html(view_of(release.with_labels(labels=LABELS), {})) for name, release in found.items()}


def without_rows(page: str) -> str:
    """The page less the cells of its tables."""
    bare = re.sub(r'"rows":\[\[.*?\]\]', '"rows":[]', page)
    bare = re.sub(r'(id="packed">)[^<]*', r"\1", bare)
    return re.sub(r'(id="cells">.*?<tbody>).*?</tbody>', r"\1</tbody>", bare)


def held(page: str) -> list[tuple[dict[str, Any], bytes]]:
    """What the compressed cells of a page say of each table, with all their bytes."""
    (text,) = re.findall(r'id="packed">([^<]*)', page)
    raw = zlib.decompress(base64.b64decode(text))
    length = int.from_bytes(raw[:4], "little")
    return [(head, raw[4 + length :]) for head in json.loads(raw[4 : 4 + length])]


@pytest.mark.costly
def test_every_release_is_saved_with_its_page(small: rw.Release, tmp_path: Path) -> None:
    page = (small.save(tmp_path / "out") / "report.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>\n<html")
    assert "county_by_naics3.csv" in page
    without = (small.save(tmp_path / "bare", formats=["parquet"]) / "report.html").read_text(encoding="utf-8")
    assert "county_by_naics3.csv" not in without
    assert "county_by_naics3.parquet" in without


@pytest.mark.costly
def test_five_levels_of_three_sums_with_twenty_thresholds_and_their_dictionary_fit_into_170_kb() -> None:
    release = five_levels()
    assert len(release.parts) == 20
    page = page_html(view_of(release, {}))
    assert len(without_rows(page).encode()) <= 1.3 * LIMIT
    assert "sum_emp, group with least noise" in page
    assert "group with least noise (" not in page


@pytest.mark.parametrize("name", ["by industry", "private keys"])
@pytest.mark.costly
def test_a_page_without_its_tables_is_below_130_kb(name: str) -> None:
    assert len(without_rows(pages()[name]).encode()) <= LIMIT


def many_counties(count: int) -> rw.Release:
    counties = [f"{number:06}" for number in range(count)]
    with opened(max_outside="accept") as session_of_many:
        asked = rw.query().group_by("county", keys=rw.Keys.product(county=counties)).count(rw.Gaussian(rho="0.1"))
        return session_of_many.run(asked.sum("emp", rw.UnitSplit(at=50, rho="0.1")))


def test_all_cells_are_on_the_page_and_the_largest_come_first() -> None:
    release = many_counties(20_000)
    page = page_html(view_of(release, {}))
    ((head, raw),) = held(page)
    assert head["rows"] == 20_000
    values = release.table.column("count").to_numpy()
    counties = np.array(release.table.column("county").to_pylist())
    order = np.argsort(-values, kind="stable")
    codes = np.frombuffer(raw, np.uint8, count=4 * 20_000).reshape(4, -1).astype(np.int64)
    shown = np.array(head["keys"][0]["values"])[sum(codes[at] << (8 * at) for at in range(4))]
    assert list(shown) == list(counties[order])
    numbers = Digits.read(raw[4 * 20_000 :], 20_000)
    np.testing.assert_array_equal(
        np.where(numbers.sign == 1, -1, 1) * numbers.whole * 10.0**numbers.power, values[order]
    )


@pytest.mark.costly
def test_a_page_of_a_quarter_of_a_million_cells_stays_below_5_mb() -> None:
    page = page_html(view_of(many_counties(250_000), {}))
    ((head, _),) = held(page)
    assert head["rows"] == 250_000
    assert len(page.encode()) <= 5_000_000


def test_where_not_all_cells_fit_the_room_is_filled_with_the_largest_and_the_page_says_how_many() -> None:
    content = many_counties(20_000).content()
    (shown,), packed = cells.page_cells(content, room=100_000)
    assert 80_000 < len(packed) <= 100_000
    assert packed == cells.packed_cells([shown])
    values = content.tables[0].data.column("count").to_numpy()
    assert shown.data.column("count").to_pylist() == sorted(values, reverse=True)[: shown.data.num_rows]
    told = shown.to_json([])
    assert (told["held"], told["all"]) == (shown.data.num_rows, 20_000)
    assert 1000 < told["held"] < 20_000


def test_the_room_is_shared_by_all_tables_and_small_ones_are_whole() -> None:
    release = five_levels()
    tables = release.content().tables
    counts = cells.rows_that_fit(tables, None, room=20_000)
    sizes = [table.data.num_rows for table in tables]
    assert counts != sizes
    assert max(counts) < max(sizes)
    assert all(count == size or count == max(counts) for count, size in zip(counts, sizes))
    assert cells.rows_that_fit(tables, None) == sizes


@pytest.mark.parametrize("seed", range(20))
def test_packed_numbers_are_those_of_the_files_to_six_digits(seed: int) -> None:
    chance = np.random.default_rng(seed)
    values = chance.normal(size=200) * 10.0 ** chance.integers(-200, 200, 200)
    values[:6] = [0.0, -0.0, np.nan, np.inf, 999_999.6, -0.0999_9996]
    back = packed_numbers(pa.array(values))
    read = Digits.read(back.planes(), 200).values()
    assert read == back.values()
    for value, shown in zip(values, read):
        assert shown == (float(f"{value:.6g}") if np.isfinite(value) else None)
    whole = pa.array([2**53, -(2**53), 0, -7, None] if seed % 2 else [2**53, -(2**53), 0, -7, 5])
    assert packed_numbers(whole).values() == whole.to_pylist()


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [(100, 200, "100 to 200"), (None, 200, "at most 200"), (100, None, "at least 100"), (None, None, "\N{EN DASH}")],
)
def test_an_interval_without_an_end_is_put_in_words(low: int | None, high: int | None, text: str) -> None:
    assert interval_text(low, high) == text


def test_the_page_names_no_address_and_forbids_every_request() -> None:
    for page in pages().values():
        structure = Structure(page)
        policies = [each.get("content") for tag, each in structure.elements if each.get("http-equiv")]
        assert len(policies) == 1
        assert str(policies[0]).startswith("default-src 'none'")
        assert "connect-src" not in str(policies[0])
        assert "unsafe" not in str(policies[0])
        for tag, attributes in structure.elements:
            assert "src" not in attributes, tag
            assert "style" not in attributes, tag
            assert not any(name.startswith("on") for name in attributes), tag
            assert (attributes.get("href") or "#").startswith(("#", "./"))
        assert "http:" not in page
        assert "https:" not in page


def test_ids_are_unique_and_every_reference_leads_to_one() -> None:
    for page in (*pages().values(), page_html(view_of(only_counts(), {}))):
        elements = Structure(page).elements
        ids = [each["id"] for _, each in elements if "id" in each]
        assert len(ids) == len(set(ids))
        for _, each in elements:
            for name in ("for", "aria-labelledby", "aria-describedby"):
                assert name not in each or each[name] in ids
            if (each.get("href") or "").startswith("#"):
                assert str(each["href"])[1:] in ids


def test_the_page_says_noise_interval_and_never_the_other_word() -> None:
    for page in pages().values():
        assert "noise interval" in page
        assert "confidence" not in page.lower()


def test_both_ends_of_the_privacy_scales_are_told_in_words() -> None:
    for page in pages().values():
        charts = page.count('class="title">Privacy loss')
        assert page.count("almost nothing can be learned") == charts + 1
        assert page.count("hardly any protection") == charts + 1


def test_a_hostile_name_makes_no_element_of_its_own_anywhere_on_the_page() -> None:
    release = hostile_release()
    page = page_html(view_of(release.with_labels(labels=HOSTILE_LABELS), {f"{HOSTILE}.csv": HOSTILE}))
    assert page.count("<script>") == 1
    assert page.count("<script ") == page.count('<script type="text/plain" id="packed">') == 1
    assert page.count("</script>") == 2
    assert "<img" not in page
    assert "<b>" not in page
    structure = Structure(page)
    assert all("onerror" not in each for _, each in structure.elements)
    assert any(HOSTILE in word for word in structure.words)


def test_a_notebook_escapes_hostile_names() -> None:
    release = hostile_release()
    at = rw.by(HOSTILE, {HOSTILE: 100}, default=50)
    asked = rw.query().group_by(HOSTILE).count(rw.Gaussian(rho="0.1"), alias=HOSTILE)
    asked = asked.sum(HOSTILE, rw.UnitSplit(at=at, rho="0.1")).where("county = '<script>alert(\"x\")</script>'")
    for shown in (release, release.policy, asked):
        text = shown._repr_html_()
        assert "<img" not in text
        assert "<script" not in text
        assert "&lt;" in text


def test_a_notebook_shows_a_release_with_noise_intervals_and_a_policy_with_a_chart(small: rw.Release) -> None:
    shown = small._repr_html_()
    assert "number (noise interval)" in shown
    assert re.search(r"<td>-?[\d,.]+ \(-?[\d,.]+ to -?[\d,.]+\)</td>", shown)
    assert "<svg" in small.policy._repr_html_()
    assert "<svg" in by_industry().policy._repr_html_() or len(by_industry().policy.columns()) != 1
    assert "county × naics2; county × naics3" in question()._repr_html_()
    assert "LogTransform" in question()._repr_html_()


def test_a_seeded_release_says_not_private_at_the_top_of_its_page() -> None:
    with session(records(), budget=generous()) as opened_session:
        seeded = opened_session.run(question(), rng=Seeded(1))
    body = page_html(view_of(seeded, {})).partition("<body>")[2]
    assert body.index("NOT PRIVATE") < body.index("<header>")


def test_the_number_of_records_is_nowhere_on_the_page() -> None:
    with session(records(6547)) as opened_session:
        page = page_html(view_of(opened_session.run(question()), {}))
    # The tables, as text and packed, their totals with noise, and the public table of epsilons have digits of all kinds.
    words = re.sub(
        r'<dl class="headlines">.*?</dl>|"rows":\[\[.*?\]\]|"meaning":\{.*?\}|<tbody>.*?</tbody>|(?<=id="packed">)[^<]+',
        "",
        page,
    )
    assert len(words) < len(page) - 1000
    assert not re.search(r"6,?547", words)


def model(release: rw.Release) -> Any:
    context = quickjs.Context()
    context.eval(f"const model = {model_js(release.policy, release.parts, None)};")
    return context


@pytest.mark.parametrize("release", [by_industry, private_keys])
@pytest.mark.costly
def test_the_formulas_of_the_page_agree_with_python_part_by_part(release: Any) -> None:
    made = release()
    context = model(made)
    for record in random_records(np.random.default_rng(3), 200):
        found = json.loads(
            context.eval(
                f"JSON.stringify([model.loss({json.dumps(record)}), model.parts.map(p => p({json.dumps(record)}))])"
            )
        )
        assert found[0]["rho"] == pytest.approx(made.policy.loss(record), rel=1e-9)
        assert found[0]["delta"] == pytest.approx(made.policy.delta(record), rel=1e-9)
        assert found[1] == pytest.approx([part.policy.loss(record) for part in made.parts], rel=1e-9)


def test_the_sentence_of_the_test_is_the_one_the_library_says() -> None:
    for rho in (0.01, 0.2, 3.0):
        assert details(rho, 0.0)[0] == meaning(rho).sentence()


def test_the_first_sentence_tells_odds_and_bands() -> None:
    bands = [Band(label="employees", low="4,800", high="5,200"), Band(label="dollars", low="7", high=None)]
    assert lead(0.2, bands) == (
        "These tables change the odds of any statement about you by a factor of at most 1.22, on average; no one can use them to "
        "reliably tell 4,800 from 5,200 employees or 7 from any larger number of dollars."
    )
    assert lead(0.2, [Band(label="employees", low="7", high="7")]).endswith(
        "; your exact number of employees is not hidden."
    )
    assert "10²²" in lead(50.0, [])
    assert lead(500.0, []) == SENTENCES["no limit"] + "."
    assert lead(0.0, bands) == SENTENCES["nothing"]
    assert lead(float("inf"), bands) == SENTENCES["no promise"]
    assert (or_list(["a"]), or_list(["a", "b", "c"])) == ("a", "a, b or c")
    assert (factor_text(0.0), factor_text(6.0), chance_text(1.08e-7), chance_text(0.25)) == (
        "1.00",
        "403",
        "1.08 × 10⁻⁷",
        "0.25",
    )
