"""The firm section and the epsilon of the policy page: what its script computes is what Python computes."""

import json
from typing import Any

import numpy as np
import pytest
import quickjs

import recordwise as rw
from recordwise.errors import SourceError
from recordwise.release.page.page import model_js, page_html
from recordwise.release.page.view import payload, view_of
from report_releases import COUNTIES, INDUSTRIES, by_industry, five_levels, only_counts, opened, private_keys


def script(release: rw.Release) -> Any:
    context = quickjs.Context()
    context.eval(f"const model = {model_js(release.policy, release.parts, None, release.firms)};")
    return context


def random_firm(rng: np.random.Generator, size: int) -> dict[str, Any]:
    emp = np.floor(10 ** rng.uniform(-0.5, 4, size)).astype(int)
    return {
        "emp": emp,
        "pay": np.floor(10 ** rng.uniform(0, 6, size)),
        "head": emp // 3,
        "industry": rng.choice(INDUSTRIES[:2], size),
        "county": rng.choice(COUNTIES, size),
        "naics": rng.choice(["110000", "110001", "250000"], size),
    }


def as_typed(units: dict[str, Any], places: tuple[str, ...]) -> list[dict[str, Any]]:
    rows = [dict(zip(units, row)) for row in zip(*(column.tolist() for column in units.values()))]
    return [{"record": row, "place": {name: row[name] for name in places}} for row in rows]


def pure_external() -> rw.Release:
    with opened() as session:
        return session.run_external(len, split={"emp": 50, "pay": 10**4}, epsilon="0.3")


@pytest.mark.theorem("T-CELLS")
@pytest.mark.parametrize("release", [by_industry, private_keys, five_levels, only_counts, pure_external])
@pytest.mark.costly
def test_a_firm_loses_on_the_page_what_it_loses_in_python(release: Any) -> None:
    made = release()
    context, rng = script(made), np.random.default_rng(6)
    for size in (1, 2, 7, 30):
        for places in (made.firms.columns(), _without_county(made)):
            units = random_firm(rng, size)
            typed = json.dumps(as_typed(units, places))
            found = json.loads(context.eval(f"JSON.stringify(model.firm({typed}))"))
            told = {name: column for name, column in units.items() if name != "county" or name in places}
            known = made.firms.loss(told)
            assert found["rho"] == pytest.approx(known.rho, rel=1e-9)
            assert found["delta"] == pytest.approx(known.delta, rel=1e-9)
            assert known.delta > 0 or release is not private_keys


def _without_county(made: rw.Release) -> tuple[str, ...]:
    return tuple(name for name in made.firms.columns() if name != "county")


def test_an_empty_place_is_not_known() -> None:
    made = by_industry()
    context = script(made)
    units = random_firm(np.random.default_rng(1), 3)
    typed = as_typed(units, made.firms.columns())
    typed[1]["place"]["county"] = "  "
    found = json.loads(context.eval(f"JSON.stringify(model.firm({json.dumps(typed)}))"))
    known = made.firms.loss({name: column for name, column in units.items() if name != "county"})
    assert found["rho"] == pytest.approx(known.rho, rel=1e-9)


def page_numbers(release: rw.Release) -> Any:
    """The page's own script: its table looked up as the browser does."""
    view = view_of(release, {})
    text = page_html(view_of(release, {}))
    start = text.index("const lookedUp = ")
    return view, payload(view), text[start : text.index("const groupLoss")]


def all_gaussian() -> rw.Release:
    asked = rw.query().group_by("county", keys=rw.Keys.of({"county": COUNTIES})).count(rw.Gaussian(rho="0.05"))
    asked = asked.sum("emp", rw.Gaussian(sigma=40)).sum("pay", rw.LogTransform(offset=100, sigma="0.5"))
    with opened() as session:
        return session.run(asked)


@pytest.mark.theorem("T-LOSS-LAW")
@pytest.mark.costly
def test_epsilon_on_the_page_is_that_of_python_rounded_up_to_the_next_entry() -> None:
    release = all_gaussian()
    assert release.lattice is not None
    view, told, source = page_numbers(release)
    assert view.meaning is not None
    context = quickjs.Context()
    model = model_js(release.policy, release.parts, None, release.firms)
    known = "const epsilon = () => 1e9, power = () => 1, withPure = known => known;"
    context.eval(f"const model = {model}; const data = {json.dumps(told)}; {known} {source}")
    for emp, pay in ((1, 0), (0, 50), (40, 100), (100, 3000), (10, 2000)):
        record = {"emp": emp, "pay": pay}
        exact = release.lattice.meaning(record)
        text = f"JSON.stringify(lookedUp({json.dumps(record)}, {{rho: {exact.rho}, delta: 0}}))"
        shown = json.loads(context.eval(text))
        assert exact.epsilon <= shown["epsilon"] <= 1.03 * exact.epsilon
        assert exact.power <= shown["power"] <= 1.03 * exact.power
    assert by_industry().lattice is None
    assert private_keys().lattice is None


def test_a_folder_whose_firms_or_noise_do_not_add_up_is_refused(tmp_path: Any) -> None:
    release = all_gaussian()
    release.save(tmp_path / "out")
    again = rw.read(tmp_path / "out")
    assert again.firms == release.firms
    assert again.lattice == release.lattice
    policies = json.loads((tmp_path / "out" / "policy.json").read_text())
    for name, changed in (("firms", {"parts": [], "policies": []}), ("lattice", [])):
        (tmp_path / "out" / "policy.json").write_text(json.dumps(policies | {name: changed}))
        with pytest.raises(SourceError, match="add up"):
            rw.read(tmp_path / "out")
    without = {name: value for name, value in policies.items() if name not in ("firms", "lattice")}
    (tmp_path / "out" / "policy.json").write_text(json.dumps(without))
    assert rw.read(tmp_path / "out").firms is None
