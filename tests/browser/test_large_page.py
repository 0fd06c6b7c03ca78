"""The page of a release of 350,000 cells: below 6 MB, and every answer within 100 ms."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import recordwise as rw
from build import employers
from recordwise.noise import Seeded

pytestmark = [pytest.mark.slow, pytest.mark.browser]
ROWS = 400_000
COUNTIES = [f"{state:02d}{county:03d}" for state in range(1, 51) for county in range(1, 61)]
INDUSTRIES = [f"{number:03d}" for number in range(111, 228)]
TIMED = """() => {
  const {tables} = window.recordwise, times = {}, find = name => document.querySelector(name);
  const timed = (name, act) => { const start = performance.now(); act(); times[name] = performance.now() - start; };
  const set = (name, value, event) => { find(name).value = value; find(name).dispatchEvent(new Event(event, {bubbles: true})); };
  const largest = tables.map((each, at) => [each.variables[0][1] ? each.size : 0, at]).sort(([one], [other]) => other - one)[0][1];
  timed("rank", () => set("#rank-table", largest, "change"));
  timed("rank some", () => set("#rank-find", "01", "input"));
  timed("rank another", () => set("#rank-of", 1, "change"));
  timed("browse", () => set("#which", largest, "change"));
  timed("find", () => set("#find", "11", "input"));
  timed("next", () => find("#next").click());
  timed("add up", () => set("#area-of", 1, "change"));
  timed("ask", () => set("#q0", "50", "input"));
  return times;
}"""


def made(folder: Path) -> rw.Release:
    """Counties of states by industries of sectors, with basic tables."""
    told: dict[str, Any] = {"source": "public: a list"}
    (folder / "places.csv").write_text("state,county\n" + "".join(f"{each[:2]},{each}\n" for each in COUNTIES))
    (folder / "kinds.csv").write_text("sector,industry\n" + "".join(f"{each[:2]},{each}\n" for each in INDUSTRIES))
    levels = ["nation", "state", "county"], ["all", "sector", "industry"]
    place = rw.Hierarchy.of("place", folder / "places.csv", levels=levels[0], totals={"nation": "US"}, **told)
    kind = rw.Hierarchy.of("kind", folder / "kinds.csv", levels=levels[1], totals={"all": "00"}, **told)
    chance = np.random.default_rng(1)
    emp = np.floor(chance.pareto(1.2, ROWS) * 10 + 1).clip(max=50_000).astype(np.int64)
    columns = {"county": chance.choice(COUNTIES, ROWS), "industry": chance.choice(INDUSTRIES, ROWS)}
    table = pa.table({"id": np.arange(ROWS), **columns, "emp": emp, "pay": emp * 40})
    asked = rw.query().named("large").levels(*levels[0]).levels(*levels[1])
    asked = asked.at(rw.Keys.crossed(place.keys("county"), kind.keys("industry"))).count(rw.Gaussian(sigma=2))
    asked = asked.sum("emp", rw.Gaussian(sigma=30)).sum("pay", rw.Gaussian(sigma=1200))
    with employers(table, hierarchies=[place, kind], measures={"emp": 1, "pay": 1}) as session:
        return session.run(asked, rng=Seeded(3)).basic(complete=True)


def test_it_is_below_6_mb_and_answers_within_100_ms(chromium: Any, tmp_path: Path) -> None:
    release = made(tmp_path)
    assert sum(each.data.num_rows for each in release.tables) > 350_000
    from recordwise.release.page.page import page_html
    from recordwise.release.page.view import view_of

    page_file = tmp_path / "report.html"
    page_file.write_text(page_html(view_of(release, {})), encoding="utf-8")
    assert page_file.stat().st_size < 6_000_000
    page = chromium.new_context(viewport={"width": 1280, "height": 900}).new_page()
    page.goto(page_file.as_uri())
    page.evaluate("window.recordwise.ready")
    # The least of three: a busy machine may take longer once.
    runs = [page.evaluate(TIMED) for _ in range(3)]
    assert max(min(run[name] for run in runs) for name in runs[0]) < 100
    page.context.close()
