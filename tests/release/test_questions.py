"""What the page asks for: everything the policy depends on, each in a way that can be answered, and the record it starts with."""

import json
import math
import re
from fractions import Fraction
from random import Random

import pytest
import quickjs

from build import few
from random_policies import DERIVED, random_policy
from recordwise.exact.text import number_text, size_text
from recordwise.policy import ConditionColumn, Measure, Policy, among, by, compare, constant, gaussian_sum, split
from recordwise.policy.render.html import LogAxis, element, join_markup, ladder, log_spaced
from recordwise.release.page import charts
from recordwise.release.page.page import script_json
from recordwise.release.page.questions import (
    ANOTHER,
    loss_or_infinity,
    losses_along,
    questions_of,
    reach_of,
    size_at_loss,
    start_record,
)


def kinds(policy: Policy) -> dict[str, str]:
    return {field.name: field.kind for field in questions_of(policy, {})}


def test_each_column_is_asked_for_in_the_way_its_conditions_look_at_it() -> None:
    assert kinds(gaussian_sum("emp", sigma=3)) == {"emp": "amount"}
    assert kinds(constant(1).where(among("state", ["06", "36"]))) == {"state": "choice"}
    assert kinds(constant(1).where(compare("area", "<", 5))) == {"area": "number"}
    assert kinds(constant(1).where(among("area", [2**53 - 1, 5]))) == {"area": "choice"}
    # Browsers cannot tell the number from its neighbors, so the page refuses it where it is typed.
    assert kinds(constant(1).where(among("area", [2**53, 5]))) == {"area": "number"}
    assert kinds(constant(1).where(among("area", [-(2**53), 5]))) == {"area": "number"}
    lengths = among(ConditionColumn("naics", 2), ["11"]) | among(ConditionColumn("naics", 3), ["212"])
    assert kinds(constant(1).where(lengths)) == {"naics": "text"}
    assert kinds(gaussian_sum("emp", sigma=3).where(compare("emp", "<", 5))) == {"emp": "amount"}


def test_a_list_offers_every_case_a_value_outside_of_them_and_missing_only_where_it_may_be() -> None:
    policy = split(1, {"emp": by("industry", {"Mining": 5, "~": 7}, default=10)})
    (_, industry) = questions_of(policy, {"industry": "trade", "industry=Mining": "Digging"})
    assert industry.label == "trade"
    assert [option.label for option in industry.options] == ["Digging (Mining)", "~", ANOTHER]
    other = industry.options[-1].value
    assert policy.loss({"emp": 100, "industry": other}) == 100
    (_, missing) = questions_of(policy, {}, {"industry"})
    assert [option.value for option in missing.options][-1] is None
    (truth,) = questions_of(constant(1).where(among("flag", [True])), {})
    assert [(option.label, option.value) for option in truth.options] == [("yes", True), (ANOTHER, False)]
    (codes,) = questions_of(constant(1).where(among("size", [1, 2])), {})
    assert [option.value for option in codes.options] == [1.0, 2.0, 3.0]


@pytest.mark.parametrize("seed", few(range(3), 1))
@pytest.mark.costly
def test_the_record_a_page_starts_with_answers_every_question_of_any_policy(seed: int) -> None:
    rng = Random(seed)
    for _ in range(60):
        policy = random_policy(rng, measures=DERIVED)
        fields = questions_of(policy, {})
        record = start_record(policy, fields)
        assert set(record) == {measure.name for measure in policy.inputs()} | {c.name for c in policy.columns()}
        if any(field.kind == "text" for field in fields):
            continue
        loss = loss_or_infinity(policy, record)
        context = quickjs.Context()
        found = context.eval(f"({policy.to_javascript()})({script_json(record)}).rho")
        assert found == pytest.approx(loss, rel=1e-9) or found == loss


def test_no_number_can_be_typed_that_a_browser_cannot_tell_from_its_neighbors() -> None:
    largest = {
        field.name: field.to_json()["bound"]
        for policy in (
            constant(1).where(compare("area", ">=", 2**53)),
            constant(1).where(among("code", [1, 2**53 - 1])),
        )
        for field in questions_of(policy, {})
    }
    assert largest == {"area": 2**53 - 1, "code": None}
    assert quickjs.Context().eval(f"Math.abs(Number('{2**53 - 1}')) <= {largest['area']}")
    for neighbor in (2**53, 2**53 + 1, -(2**53) - 1):
        assert not quickjs.Context().eval(f"Math.abs(Number('{neighbor}')) <= {largest['area']}")
    (listed,) = questions_of(constant(1).where(among("code", [1, 2**53 - 1])), {})
    assert [option.value for option in listed.options] == [1.0, 2**53 - 1, 2**53]


def test_losses_along_a_measure_are_those_of_single_records() -> None:
    policy = gaussian_sum("emp", sigma=30) + constant("0.1").where(among("state", ["06"]))
    sizes = [0.0, 1.0, 7.0, 1e6]
    found = losses_along(policy, {"emp": 3, "state": "06"}, "emp", sizes)
    assert found == pytest.approx([policy.loss({"emp": size, "state": "06"}) for size in sizes], rel=1e-12)
    outside = split(1, {"emp": by("industry", {"Mining": 5})})
    assert losses_along(outside, {"emp": 3, "industry": "?"}, "emp", sizes) == [math.inf] * 4


def test_a_chart_reaches_a_thousand_times_the_size_that_costs_1() -> None:
    emp = Measure("emp")
    policy = gaussian_sum(emp, sigma=30)
    size = size_at_loss(policy, emp, {}, 1.0)
    assert policy.loss({"emp": size}) > 1.0 > policy.loss({"emp": size / 1.2})
    assert reach_of(policy, emp, {}, 2.0**53) == 10**5
    assert reach_of(policy, emp, {}, 500.0) == 500.0
    cents = Measure("pay", Fraction(1, 100))
    assert size_at_loss(constant(1) + gaussian_sum(cents, sigma=30) * 0, cents, {}, 1.0) == 1.0


def test_markup_escapes_what_it_holds_but_not_what_is_markup_already() -> None:
    assert element("p", "<b>", element("i", "&"), title='"x"') == '<p title="&quot;x&quot;">&lt;b&gt;<i>&amp;</i></p>'
    assert element("input", class_="a", disabled=True, hidden=False, value=None) == '<input class="a" disabled>'
    assert join_markup([None, 1.50, "a<"]) == "1.5a&lt;"
    assert json.loads(script_json("</script>&\u2028")) == "</script>&\u2028"
    assert not set("<>&\u2028") & set(script_json("</script>&\u2028"))


def test_axes_place_values_by_their_logarithm_and_numbers_are_read_by_people() -> None:
    axis = LogAxis(low=1, high=10**6, start=0, end=60)
    assert [axis.position(value) for value in (1, 1000, 10**6)] == pytest.approx([0, 30, 60])
    assert axis.position(10**30) == pytest.approx(72)
    assert axis.position(0) == pytest.approx(-12)
    assert axis.decades(4) == [1, 100, 10_000, 1_000_000]
    assert [number_text(value) for value in (0.0, 0.35417, 13.824, 1234.6, 1e-7, math.inf)] == [
        "0",
        "0.3542",
        "13.82",
        "1,235",
        "1e-07",
        "without limit",
    ]
    assert [size_text(value) for value in (0.01, 1000, 10**6, 2.5e9)] == ["0.01", "1,000", "1 million", "2.5 billion"]
    points = log_spaced(0.01, 100, 20)
    assert points[0] == 0.01
    assert points[-1] == pytest.approx(100)
    assert ladder(points) == pytest.approx([0.01, 0.1, 1, 10, 100])


def test_labels_of_sizes_do_not_touch_and_curves_end_at_the_axes() -> None:
    across = LogAxis(low=1, high=1.5e8, start=charts.LEFT, end=charts.RIGHT)
    found = [re.sub("<.*?>", "", label) for label in charts._size_labels(across)]
    assert found == ["1", "100", "10,000", "1 million"]
    short = LogAxis(low=1, high=1e4, start=charts.LEFT, end=charts.RIGHT)
    assert [re.sub("<.*?>", "", label) for label in charts._size_labels(short)] == ["1", "10", "100", "1,000", "10,000"]
    one = charts.Figure(measure=Measure("emp"), label="emp", sizes=(1.0, 10.0), losses=(0.1, 1e9), noises=())
    drawn = charts.draw(one, 0)
    assert re.findall(r'<line [^>]*y1="(\d+)"[^>]*y2="(\d+)"[^>]*class="cursor"', drawn) == [
        ("26", "206"),
        ("270", "408"),
    ]
    clipped = re.search(r'<svg x="0" y="26" width="440" height="180"[^>]*>(.*?)</svg>', drawn)
    assert clipped is not None
    assert 'class="loss"' in clipped[1]
