"""The policy page in a real browser: what it computes, what it says, how it is used without a mouse, and how it looks."""

import csv
import io
import re
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import numpy as np
import pytest

from browser.kept_pictures import ARTEFACTS
from browser.shown import read
from build import few
from recordwise.policy import epsilon
from recordwise.policy.meaning import power_beside_delta
from recordwise.release.page.questions import Band, details, lead, told_sentence
from recordwise.release.page.value_change import band, change_upper
from report_releases import HOSTILE, LABELS, random_records

PHONE = {"viewport": {"width": 360, "height": 740}, "device_scale_factor": 2, "has_touch": True, "is_mobile": True}
TABLET = {"viewport": {"width": 768, "height": 1024}}
DARK = {"color_scheme": "dark"}
PAGES = ["demo", "industry", "private"]
LOOKED_AT = [*PAGES, "years", "sized", "hierarchies"]
LIGHT_AND_DARK = [(name, {} if (at + turn) % 2 else DARK) for turn in (0, 1) for at, name in enumerate(LOOKED_AT)]
"""Every page in one of the two first, then in the other."""
STEPS = {"emp": Fraction(1), "pay": Fraction(1, 100), "head": Fraction(1)}


def relative(found: Any, known: Any) -> float:
    left, right = np.asarray(found, float), np.asarray(known, float)
    return float(np.max(np.abs(left - right) / np.maximum(np.abs(right), 1e-300)))


def test_the_page_of_the_demo_is_below_130_kb_without_its_table(saved: Any) -> None:
    text = Path(urlparse(saved["demo"].address).path).read_text(encoding="utf-8")
    assert len(text.encode()) <= 5_000_000
    bare = re.sub(r'(id="packed">)[^<]*', r"\1", re.sub(r'"rows":\[\[.*?\]\]', '"rows":[]', text))
    assert len(bare.encode()) <= 130_000


@pytest.mark.parametrize("name", PAGES)
def test_a_thousand_random_records_lose_on_the_page_what_they_lose_in_python(name: str, visit: Any, saved: Any) -> None:
    records = random_records(np.random.default_rng(11), 1000)
    for record in records:
        record["payann"] = int(record["pay"])
    found = visit(name).evaluate("records => records.map(r => window.recordwise.loss(r))", records)
    policy = saved[name].policy
    assert relative([each["rho"] for each in found], [policy.loss(record) for record in records]) <= 1e-9
    assert relative([each["delta"] for each in found], [policy.delta(record) for record in records]) <= 1e-9


def numbers(page: Any) -> dict[str, str]:
    names, values = page.locator("#numbers dt").all_inner_texts(), page.locator("#numbers dd").all_inner_texts()
    return dict(zip(names, values, strict=True))


@pytest.mark.parametrize("emp, payann", [("4", "140"), ("20", "450"), ("400", "24,000"), ("20 000", "1600000")])
def test_typing_a_record_shows_its_loss_and_says_the_sentences_of_the_library(
    emp: str, payann: str, visit: Any, saved: Any
) -> None:
    page = visit("demo")
    page.fill("#q0", emp)
    page.fill("#q1", payann)
    record = {"emp": int(emp.replace(" ", "")), "payann": int(payann.replace(",", ""))}
    rho = saved["demo"].policy.loss(record)
    shown = numbers(page)
    assert read(shown["privacy loss ρ"]) == pytest.approx(rho, rel=1e-3)
    assert shown["ε is computed from"] == "the zCDP loss ρ"
    values, words = saved["demo"].values, saved["demo"].release.words
    windows = [values.window(record, name) for name in values.bounds]
    told = told_sentence([each for each in windows if not each.is_open()], words.labels, words.units)
    assert page.inner_text("#details") == " ".join(details(rho, 0.0, told))
    assert page.inner_text("#lead").startswith(lead(rho, ()).rstrip("."))


@pytest.mark.parametrize("name", ["industry", "consistent", "sized"])
def test_the_page_tells_a_value_as_closely_as_python(name: str, visit: Any, saved: Any) -> None:
    values = saved[name].values
    page = visit(name)
    records = random_records(np.random.default_rng(14), 3)
    for record in [*records, {**records[0], "emp": 3}]:
        record |= {"naics": "1111", "county": "01"}
        found = page.evaluate(
            "r => window.recordwise.fields.filter(f => window.recordwise.reaches[f.name])"
            ".map(f => [f.name, window.recordwise.told(r, f)])",
            record,
        )
        assert found
        for measure, each in found:
            known = values.window({**record, measure: str(record[measure])}, measure)
            if each is None:
                assert known.is_open() or len(values.of(measure)) > 1
                continue
            assert each["low"] == pytest.approx(float(known.low), rel=1e-12)
            assert each["high"] == (None if known.high is None else pytest.approx(float(known.high), rel=1e-12))
            assert each["reach"] == (None if known.reach is None else pytest.approx(float(known.reach), rel=1e-12))


def test_epsilon_is_from_the_exact_law_where_all_noise_is_gaussian(visit: Any, saved: Any) -> None:
    page = visit("consistent")
    for emp in ("1", "30", "400"):
        page.fill("#q0", emp)
        exact, shown = saved["consistent"].lattice.meaning({"emp": int(emp)}), numbers(page)
        (told,) = (value for name, value in shown.items() if name.startswith("ε at"))
        assert exact.epsilon * 0.999 <= read(told) <= 1.03 * exact.epsilon
        assert shown["ε is computed from"] == "the exact law of the noise"
        power = re.match(r"A membership test .* at most ([\d.]+)%", page.inner_text("#details"))
        assert power is not None
        assert exact.power - 0.001 <= float(power[1]) / 100 <= 1.03 * exact.power + 0.001


@pytest.mark.theorem("T-PURE")
def test_pure_losses_are_shown_where_all_noise_has_one(visit: Any, saved: Any) -> None:
    page = visit("pure")
    for emp in (1, 30, 400):
        page.fill("#q0", str(emp))
        epsilon, shown = 0.25 + emp / 100, numbers(page)
        assert saved["pure"].policy.epsilon_pure({"emp": emp}) == pytest.approx(epsilon)
        assert read(shown["pure ε, at δ = 0"]) == pytest.approx(epsilon, rel=1e-3)
        assert shown["ε is computed from"] == "the pure loss"
        assert read(next(value for name, value in shown.items() if name.startswith("ε at"))) <= epsilon * 1.001
        pieces = max(1, -(-emp // 100))
        assert page.inner_text("#budget-told").startswith("This release costs a record like yours a pure ε of ")
        assert f" of at most {1 + pieces} that all releases" in page.inner_text("#budget-told")
    firm = read(re.findall(r"pure ε of at most ([\d.,]+[\d])", page.inner_text("#firm-told"))[0])
    # Two establishments of 1 and 10 times the page's first record, wherever they are.
    start = float(page.evaluate("data.start.emp"))
    assert firm == pytest.approx(0.5 + 11 * start / 100, rel=2e-3)
    assert "pure ε" not in visit("demo").inner_text("main").lower()


def test_the_band_on_the_page_is_the_band_of_python(visit: Any, saved: Any) -> None:
    page = visit("industry")
    parts = saved["industry"].parts
    for number, record in enumerate(random_records(np.random.default_rng(12), 3)):
        known = {name: band(parts, record, name, step, 2**53) for name, step in STEPS.items()}
        found = page.evaluate(
            "r => window.recordwise.fields.filter(f => f.kind === 'amount').map(f => window.recordwise.band(r, f))",
            record,
        )
        for each in found:
            low, high = known[each["field"]["name"]]
            assert (each["low"], each["high"]) == pytest.approx((float(low), float(high)), rel=1e-9), number
        bands = [
            Band(label=LABELS[name], low=shown(known[name][0], step), high=shown(known[name][1], step))
            for name, step in sorted(STEPS.items())
        ]
        told = page.evaluate(
            "([r, rho]) => window.recordwise.leadText(rho, window.recordwise.fields.filter(f => f.kind === 'amount')"
            ".map(f => window.recordwise.band(r, f)))",
            [record, saved["industry"].policy.loss(record)],
        )
        assert told == lead(saved["industry"].policy.loss(record), bands)


def shown(value: Fraction, step: Fraction) -> str:
    return f"{float(value):,.{0 if step == 1 else 2}f}"


def test_the_loss_of_another_value_is_the_one_of_python(visit: Any, saved: Any) -> None:
    records = random_records(np.random.default_rng(13), 60)
    pairs = [[record, record | {"emp": other["emp"], "pay": other["pay"]}] for record, other in pairwise(records)]
    found = visit("industry").evaluate("pairs => pairs.map(([r, s]) => window.recordwise.change(r, s))", pairs)
    assert relative(found, [change_upper(saved["industry"].parts, r, s) for r, s in pairs]) <= 1e-9


SIZED_CELLS = [
    ("01", "Mining"),
    ("01", "Retail"),
    ("02", "Mining"),
    ("03", "Farming"),
    ("04", "Retail"),
    ("01", "retail"),
]


def test_the_page_looks_the_public_size_of_a_cell_up_from_county_and_industry(visit: Any, saved: Any) -> None:
    page, policy = visit("sized"), saved["sized"].policy
    records = random_records(np.random.default_rng(14), 300)
    for number, record in enumerate(records):
        record["county"], record["industry"] = SIZED_CELLS[number % len(SIZED_CELLS)]
    found = page.evaluate("records => records.map(r => window.recordwise.loss(r).rho)", records)
    assert relative(found, [policy.loss(record) for record in records]) <= 1e-9
    sizes = {}
    for county, industry in SIZED_CELLS:
        for place, text in enumerate(("500", "20000", county, industry)):
            page.fill(f"#q{place}", text)
        pairs = zip(page.locator("#bands dt").all_text_contents(), page.locator("#bands dd").all_text_contents())
        shown = numbers(page) | dict(pairs)
        rho = policy.loss({"emp": 500, "pay": 20_000, "county": county, "industry": industry})
        assert read(shown["privacy loss ρ"]) == pytest.approx(rho, rel=1e-3)
        (emp,) = (
            value for name, value in shown.items() if name.startswith("public size of your cell (employees by county")
        )
        (pay,) = (
            value for name, value in shown.items() if name.startswith("public size of your cell (dollars of payroll")
        )
        sizes[county, industry] = (emp, pay)
    below = "below 200 or not listed"
    assert sizes["01", "Mining"] == (below, "from 80,000 to below 160,000")
    assert sizes["01", "Retail"] == ("from 400 to below 800", "below 20,000 or not listed")
    assert sizes["02", "Mining"] == ("at least 1,600", "below 20,000 or not listed")
    assert sizes["03", "Farming"] == (below, "at least 1,280,000")
    assert sizes["04", "Retail"] == sizes["01", "retail"] == (below, "below 20,000 or not listed")


def test_powers_and_epsilons_are_those_of_python(visit: Any) -> None:
    losses = [1e-6, 0.01, 0.1, 0.5, 1.0, 5.0, 40.0, 1e4]
    page = visit("demo")
    powers = page.evaluate("losses => losses.map(rho => window.recordwise.power(rho, 0))", losses)
    assert powers == pytest.approx([power_beside_delta(rho, 0.0) for rho in losses], rel=1e-9)
    selected = page.evaluate("losses => losses.map(rho => window.recordwise.power(rho, 0.01))", losses)
    assert selected == pytest.approx([power_beside_delta(rho, 0.01) for rho in losses], rel=1e-9)
    found = page.evaluate("losses => losses.map(rho => window.recordwise.epsilon(rho, 1e-5))", losses)
    assert found == pytest.approx([epsilon(rho, 1e-5) for rho in losses], rel=1e-7)


def test_an_industry_is_chosen_from_the_cases_of_the_policy_in_the_words_of_the_plan(visit: Any, saved: Any) -> None:
    page = visit("industry")
    assert page.locator("label[for=q3]").inner_text() == "Industry"
    assert page.locator("#q3 option").all_inner_texts() == ["Mining and quarrying (Mining)", "Retail", "any other"]
    for place, text in enumerate(("500", "7", "1,234.56")):
        page.fill(f"#q{place}", text)
    for option, industry in (("Retail", "Retail"), ("any other", "Farming")):
        page.select_option("#q3", label=option)
        rho = saved["industry"].policy.loss({"emp": 500, "head": 7, "pay": 1234.56, "industry": industry})
        assert read(numbers(page)["privacy loss ρ"]) == pytest.approx(rho, rel=1e-3)


def test_private_keys_show_the_pair_of_a_record_and_of_a_firm(visit: Any, saved: Any) -> None:
    page = visit("private")
    page.fill("#q0", "120")
    rho, delta = (getattr(saved["private"].policy, each)({"emp": 120}) for each in ("loss", "delta"))
    pair = re.fullmatch(r"\((.*), (.*)\)", numbers(page)["the pair (ρ, δ)"])
    assert pair is not None
    assert read(pair[1]) == pytest.approx(rho, rel=1e-3)
    assert read(pair[2]) == pytest.approx(delta, rel=1e-2)
    assert "a cell is listed only because of you" in page.inner_text("#details")
    assert page.inner_text("#lead") == lead(rho, (), delta)
    assert "a cell is listed only because of it" in page.inner_text("#firm-told")


@pytest.mark.parametrize(
    "text, problem",
    [
        ("", "Write a number"),
        ("-4", "below 0"),
        ("1,5", "Write a number"),
        ("x", "Write"),
        ("1.000,50", "Write a number"),
        ("0,125", "Write a number"),
        ("1_000", "Write a number"),
        ("12 5", "Write a number"),
        ("1'00", "Write a number"),
        ("1,000 000", "Write a number"),
        ("1.000", "Write 1000 or 1.0000"),
        ("4.5", "Write a whole number."),
        ("9007199254740994", "It can be at most 9,007,199,254,740,992."),
    ],
)
def test_a_number_that_cannot_be_read_is_marked_and_told(text: str, problem: str, demo: Any) -> None:
    page = demo
    page.fill("#q0", text)
    assert page.get_attribute("#q0", "aria-invalid") == "true"
    assert problem in page.inner_text("#q0-hint")
    assert not page.locator("#numbers").is_visible()
    page.fill("#q0", "7")
    assert page.get_attribute("#q0", "aria-invalid") is None
    assert page.inner_text("#q0-hint") == "a whole number"


def test_the_budget_is_split_over_the_statistics(visit: Any, saved: Any) -> None:
    page = visit("industry")
    for place, text in enumerate(("30", "2", "800")):
        page.fill(f"#q{place}", text)
    record = {"emp": 30, "head": 2, "pay": 800, "industry": "Mining"}
    own = [read(text) for text in page.locator("#spending .own").all_inner_texts()]
    assert own == pytest.approx([part.policy.loss(record) for part in saved["industry"].parts], rel=2e-3)


def test_the_charts_are_read_with_the_arrow_keys_and_with_the_pointer(visit: Any, saved: Any) -> None:
    page = visit("demo")
    slider = page.locator("#slider-0")
    slider.focus()
    before = slider.get_attribute("aria-valuetext")
    for _ in range(12):
        page.keyboard.press("ArrowRight")
    after = slider.get_attribute("aria-valuetext")
    assert after != before
    size, loss = re.match(r"At ([\d,]+) employees: loss ([\d,.]+);", after).groups()
    payann = read(page.input_value("#q1"))
    assert read(loss) == pytest.approx(saved["demo"].policy.loss({"emp": read(size), "payann": payann}), rel=1e-3)
    page.locator("figure svg").first.scroll_into_view_if_needed()
    page.locator("figure svg").first.hover(position={"x": 500, "y": 100})
    assert slider.get_attribute("aria-valuetext") != after
    # The slider is where the line is, also at small sizes, which are further apart.
    slider.fill("0")
    for _ in range(3):
        page.keyboard.press("ArrowRight")
        left, right = page.evaluate("[data.axes.left, data.axes.right]")
        x = float(page.locator("figure .cursor").first.get_attribute("x1"))
        assert float(slider.input_value()) == pytest.approx(1000 * (x - left) / (right - left), abs=0.6)
        assert slider.get_attribute("aria-valuetext").startswith(f"At {_ + 2} employees")


def test_the_line_drawn_by_python_is_the_line_the_script_draws(visit: Any, saved: Any) -> None:
    text = Path(urlparse(saved["demo"].address).path).read_text(encoding="utf-8")
    drawn = re.findall(r'<path d="([^"]*)" class="loss"', text)
    page = visit("demo")
    redrawn = page.eval_on_selector_all("path.loss", "paths => paths.map(path => path.getAttribute('d'))")
    assert len(drawn) == len(redrawn) == 2
    for first, second in zip(drawn, redrawn):
        left, right = (np.array(re.findall(r"-?[\d.]+", each), float) for each in (first, second))
        assert np.max(np.abs(left - right)) <= 0.11


def test_the_tables_are_paged_found_and_saved(visit: Any) -> None:
    page = visit("demo")
    page.evaluate("window.recordwise.ready")
    assert page.inner_text("#held") == "All 96,005 cells, largest first."
    first = page.inner_text("#cells tbody tr:first-child")
    page.click("#next")
    assert page.inner_text("#cells tbody tr:first-child") != first
    assert "Rows 13 to 24" in page.inner_text("#place")
    page.fill("#find", "01003")
    cells = page.locator("#cells tbody tr th:first-child").all_inner_texts()
    assert cells
    assert all(cell.startswith("01003") for cell in cells)
    with page.expect_download() as download:
        page.click("#save")
    lines = download.value.path().read_text().splitlines()
    assert lines[0].startswith("county,naics3,count,count_low,count_high,count_cv,count_status,emp,")
    assert all(line.startswith("01003,") for line in lines[1:])
    page.fill("#find", "")
    counts = [float(text.replace(",", "")) for text in page.locator("#cells tbody td:nth-child(3)").all_inner_texts()]
    assert counts == sorted(counts, reverse=True)


def test_every_cell_on_the_page_is_the_one_of_the_files(visit: Any, saved: Any) -> None:
    page = visit("industry")
    page.evaluate("window.recordwise.ready")
    for number, table in enumerate(saved["industry"].release.tables):
        page.select_option("#which", str(number))
        lines = list(csv.DictReader(io.StringIO(page.evaluate("window.recordwise.csv()"))))
        assert len(lines) == table.data.num_rows
        shown = {tuple(line[key] for key in table.keys): line for line in lines}
        for row in table.data.to_pylist():
            line = shown[tuple(str(row[key]) for key in table.keys)]
            for name in table.variables:
                for end in ("", "_low", "_high", "_cv"):
                    value = row[name + end]
                    assert line[name + end] == ("" if value is None else line[name + end])
                    if value is not None:
                        assert float(line[name + end]) == pytest.approx(value, rel=2e-5)


def test_a_cell_is_followed_over_the_published_periods(visit: Any, saved: Any) -> None:
    page = visit("years")
    page.evaluate("window.recordwise.ready")
    page.fill("#find", "02")
    page.focus(".over-time")
    page.keyboard.press("Enter")
    assert page.inner_text("#history-title").startswith("02: ")
    assert page.evaluate("document.activeElement.id") == "history-title"
    release = saved["years"].release
    before, now = page.locator("#history-table tbody tr").all_inner_texts()
    assert (before.split()[0], now.split()[0]) == ("2025", "2026")
    (row,) = (each for each in release.table.to_pylist() if each["county"] == "02")
    assert float(now.split()[1].replace(",", "")) == pytest.approx(row["count"], rel=0.01)
    assert page.locator("#history-chart circle").count() == 2
    assert page.locator("#history-chart line.interval").count() == 2
    page.select_option("#history-of", "1")
    assert page.inner_text("#history-table tbody tr:last-child") != now
    page.fill("#find", "04")
    assert page.locator("#history").is_hidden()
    page.click(".over-time")
    assert page.inner_text("#history-table tbody tr:first-child").split() == ["2025"]
    assert page.locator("#history-chart circle").count() == 1


def test_everything_is_reached_and_used_with_the_keyboard_alone(visit: Any) -> None:
    page = visit("industry")
    reached = []
    for _ in range(60):
        page.keyboard.press("Tab")
        here = page.evaluate("document.activeElement.id || document.activeElement.tagName")
        if here == "BODY":
            break
        reached.append(here)
    wanted = ["rank-table", "rank-of", "rank-find", "area-of", "area-0", "which", "find", "save"]
    wanted += ["q0", "q1", "q2", "q3", "slider-0", "slider-1", "slider-2", "add"]
    assert [each for each in reached if each in wanted] == wanted
    page.focus("#q0")
    page.keyboard.press("Control+A")
    page.keyboard.type("77")
    page.focus("#q3")
    page.keyboard.press("ArrowDown")
    assert page.input_value("#q3") == "1"
    page.focus("#add")
    page.keyboard.press("Enter")
    assert page.locator("#members tbody tr").count() == 3
    assert page.evaluate("document.activeElement.closest('#members') !== null")
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"


def opened(page: Any) -> None:
    """All cells are there, and the first is followed over the periods where there are several."""
    page.evaluate("window.recordwise.ready")
    if page.locator(".over-time").count():
        page.locator(".over-time").first.click()


@pytest.mark.parametrize("name, how", few(LIGHT_AND_DARK, len(LOOKED_AT)))
def test_axe_finds_nothing_serious_and_a_picture_is_kept_to_be_looked_at(
    name: str, how: dict[str, Any], visit: Any
) -> None:
    from axe_playwright_python.sync_playwright import Axe

    page = visit(name, **how)
    opened(page)
    page.screenshot(path=ARTEFACTS / f"{name}-{'dark' if how else 'light'}.png", full_page=True)
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    brightness = sum(map(int, re.findall(r"\d+", paper)[:3])) / 3
    assert (brightness < 60) if how else (brightness > 230)
    page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true; })")
    found = Axe().run(page).response["violations"]
    assert [(each["id"], each["nodes"][0]["html"]) for each in found if each["impact"] in ("serious", "critical")] == []


@pytest.mark.parametrize(
    "how", few([PHONE | DARK, TABLET, PHONE, TABLET | DARK], 2), ids=["360 dark", "768", "360", "768 dark"]
)
def test_axe_finds_nothing_serious_at_other_widths(how: dict[str, Any], visit: Any) -> None:
    from axe_playwright_python.sync_playwright import Axe

    page = visit("years", **how)
    opened(page)
    page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true; })")
    assert page.evaluate("document.documentElement.scrollWidth") == how["viewport"]["width"]
    found = Axe().run(page).response["violations"]
    assert [(each["id"], each["nodes"][0]["html"]) for each in found if each["impact"] in ("serious", "critical")] == []


@pytest.mark.parametrize("name", LOOKED_AT)
def test_the_page_fits_a_phone_of_360_points(name: str, visit: Any) -> None:
    page = visit(name, **PHONE)
    opened(page)
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    page.screenshot(path=ARTEFACTS / f"{name}-phone.png", full_page=True, scale="css")
    small = page.evaluate(
        "[...document.querySelectorAll('button, form input, select')].filter(e => e.getBoundingClientRect().height < 40).length"
    )
    assert small == 0
    widths = "e => e.scrollWidth > e.closest('.scroll').clientWidth"
    assert page.evaluate(f"[...document.querySelectorAll('#accuracy, #dictionary, #spending')].some({widths})") is False


def test_nothing_moves_for_who_asked_for_less_motion_and_print_hides_the_controls(visit: Any) -> None:
    page = visit("demo", reduced_motion="reduce")
    assert page.evaluate("getComputedStyle(document.querySelector('circle.you')).transitionDuration") == "0s"
    page.emulate_media(media="print")
    assert not page.locator("#save").is_visible()
    assert page.locator("#lead").is_visible()
    page.screenshot(path=ARTEFACTS / "demo-print.png", full_page=True)


def test_hostile_names_are_words_on_the_page_and_nothing_else(visit: Any, saved: Any) -> None:
    page = visit("hostile")
    page.fill("#q0", "120")
    assert page.locator("img").count() == 0
    assert page.locator("b").count() == 0
    assert page.locator("h1").inner_text() == HOSTILE
    assert HOSTILE in page.locator("#cells tbody").inner_text()
    rho = saved["hostile"].policy.loss({f"m{HOSTILE}": 120, HOSTILE: HOSTILE})
    assert read(numbers(page)["privacy loss ρ"]) == pytest.approx(rho, rel=1e-3)


@pytest.mark.parametrize(
    "name, words",
    [
        ("counts", "nothing to enter"),
        ("external", "an external mechanism"),
        ("consistent", "made to add up"),
        ("clamped", "of clamped records"),
    ],
)
def test_releases_of_other_kinds_have_a_page_that_runs_too(name: str, words: str, visit: Any, saved: Any) -> None:
    page = visit(name)
    shown = page.inner_text("main")
    assert words in shown
    # A clamped sum is cut at 100: below it the loss grows with the measure, from it on the loss stays the same.
    for emp in [] if name == "counts" else [50, 250]:
        page.fill("#q0", str(emp))
        rho = saved[name].policy.loss({"emp": emp})
        assert read(numbers(page)["privacy loss ρ"]) == pytest.approx(rho, rel=1e-3)
    if name == "counts":
        assert read(numbers(page)["privacy loss ρ"]) == pytest.approx(saved[name].policy.loss({}), rel=1e-3)
    assert page.locator(".not-private").count() == (name == "clamped")


def test_without_javascript_the_page_still_shows_charts_tables_and_files(chromium: Any, saved: Any) -> None:
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(saved["demo"].address)
    assert page.locator("path.loss").count() == 2
    assert page.locator("#cells tbody tr").count() == 12
    assert any("recordwise loss" in each for each in page.locator("noscript").all_inner_texts())
    context.close()


def test_rows_saved_from_the_page_hold_no_formula_and_say_when_they_are_not_private(visit: Any) -> None:
    kept = visit("hostile").evaluate("window.recordwise.csv()")
    assert "\n'=\u2028]]>," in kept
    assert not kept.startswith("# ")
    assert visit("clamped").evaluate("window.recordwise.csv()").startswith("# NOT PRIVATE: ")
