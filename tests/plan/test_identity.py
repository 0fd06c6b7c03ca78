"""What makes a release another one: every field of a plan file either changes the digest of what is charged, or never does.

The walk over a plan with one of everything fails when a class has a field that is in neither list, so none can be forgotten.
"""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recordwise as rw
from plan.every_field import CHANGES, COUNTIES, KEEPS, MECHANISMS, PARTS, PLAN, SIZES
from recordwise.mechanisms.base import Mechanism, Parameter
from recordwise.mechanisms.registry import BUILT_IN
from recordwise.plan.cost import plan_policy
from recordwise.plan.describe import release_identity, unrecognizable
from recordwise.plan.file import load_plan
from recordwise.plan.file.read import PlanFile
from recordwise.plan.keys.cells import MOST_DIGESTED, Domain
from recordwise.plan.plan import Plan
from recordwise.plan.schema import Measure, Schema
from recordwise.plan.statistics import KINDS
from recordwise.policy.series import Series


def identity(plan: Plan, series: Series | None = None) -> str:
    return release_identity(plan, [], plan_policy(plan), series).digest


def loaded(folder: Path, *changes: tuple[str, str]) -> PlanFile:
    """The plan with texts of its files replaced, each of which must be in one of them and exactly once."""
    files = {"plan.toml": PLAN, "counties.csv": COUNTIES, "sizes.csv": SIZES}
    for old, new in changes:
        ((name, text),) = [(name, text) for name, text in files.items() if old in text]
        assert text.count(old) == 1, old
        files[name] = text.replace(old, new)
    for name, text in files.items():
        (folder / name).write_text(text)
    return load_plan(folder / "plan.toml")


def of(folder: Path, *changes: tuple[str, str]) -> str:
    file = loaded(folder, *changes)
    return identity(file.plan, file.series)


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> str:
    return of(tmp_path_factory.mktemp("before"))


def reached(value: Any) -> Iterator[str]:
    """Every field of every dataclass in a value, except below those that change nothing."""
    if is_dataclass(value):
        for each in fields(value):
            name = f"{type(value).__name__}.{each.name}"
            yield name
            if name not in KEEPS:
                yield from reached(getattr(value, each.name))
    elif isinstance(value, dict | tuple | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from reached(part)


def test_every_field_of_a_plan_either_changes_what_is_charged_or_never_does(tmp_path):
    known = [*CHANGES, *KEEPS, *PARTS]
    assert len(known) == len(set(known))
    assert sorted(set(reached(loaded(tmp_path)))) == sorted(known)


def test_every_kind_of_statistic_and_mechanism_is_asked_for():
    listed = {name.partition(".")[0] for name in CHANGES}
    assert {kind.__name__ for kind in KINDS} <= listed
    assert set(BUILT_IN) == set(MECHANISMS)
    for name, (_, changes) in MECHANISMS.items():
        assert {each.name for each in fields(BUILT_IN[name])} == set(changes), name


@pytest.mark.parametrize("name, changes", [(name, one) for name, listed in CHANGES.items() for one in listed])
@pytest.mark.costly
def test_what_is_drawn_changes_the_digest(name, changes, before, tmp_path):
    assert of(tmp_path, *changes) != before


@pytest.mark.parametrize("name, changes", [(name, one) for name, listed in KEEPS.items() for one in listed])
@pytest.mark.costly
def test_words_places_and_what_is_done_with_the_numbers_afterwards_keep_the_digest(name, changes, before, tmp_path):
    assert of(tmp_path, *changes) == before


@pytest.mark.parametrize("kind", sorted(MECHANISMS))
@pytest.mark.costly
def test_every_parameter_of_a_mechanism_changes_the_digest(kind):
    given, changes = MECHANISMS[kind]
    keys = rw.Keys.of({"county": ["1", "2"], "size": [5, 5000]}, size="size", sized_on="public: made up")

    def asked(parameters: dict[str, Any]) -> str:
        made, measure = BUILT_IN[kind](**parameters), Measure.of("emp", signed=parameters.get("signed", False))
        schema = Schema.of(unit="id", measures={"emp": measure}, columns={"county": "text", "region": "text"})
        if isinstance(made, rw.TreeQuantile):
            query = rw.query().quantile("emp", p="0.5", grid=made.grid, rho=made.rho)
        else:
            query = rw.query().sum("emp", made)
        return identity(Plan(schema=schema, queries=(query.group_by("county", keys=keys),)))

    found = [asked(given), *(asked(changed) for changed in changes.values())]
    assert len(set(found)) == len(found)


def test_a_firm_counts_where_firms_are_counted(tmp_path):
    of_units = ("count_distinct.id = {", "count_distinct.firm = {")
    other = [('firm = "firm"', 'firm = "owner"'), ('firm = "same"', 'owner = "same"')]
    assert of(tmp_path, of_units) != of(tmp_path, ("count_distinct.id = {", "count_distinct.owner = {"), *other)


def test_a_list_of_codes_counts_where_only_a_condition_looks_at_it(tmp_path):
    only = 'where = "state = \'01\'"\ngroup_by = ["naics"]\nkeys = { rows = { naics = ["111"] } }\ncount = '
    head, tail = PLAN.split("[[queries]]", 1)[0], '{ kind = "Gaussian", rho = 0.5 }\n'
    (tmp_path / "sizes.csv").write_text(SIZES)
    found = []
    for codes in (COUNTIES, COUNTIES.replace("01,01002", "02,01002"), COUNTIES.replace("Adams", "Adam")):
        (tmp_path / "counties.csv").write_text(codes)
        (tmp_path / "plan.toml").write_text(f"{head}[[queries]]\n{only}{tail}")
        found.append(identity(load_plan(tmp_path / "plan.toml").plan))
    assert found[0] != found[1]
    assert found[0] == found[2]


def by_functions(letters: str, *, lost: str = "") -> Domain:
    """The cells of one letter, given by functions made anew each time, so that they are at another place in memory."""
    return Domain(
        columns=("county",),
        size=len(letters),
        keys=lambda positions: {"county": np.array(list(letters))[positions]},
        positions=lambda cells: [-1 if each in lost else letters.find(each) for each in cells["county"].to_pylist()],
    )


def selected(domain: Any) -> Plan:
    schema = Schema.of(unit="id", measures={"emp": 1}, columns={"county": "text"})
    keys = rw.Keys.select_from(domain, rho="0.5", threshold=5)
    return Plan(schema=schema, queries=(rw.query().group_by("county", keys=keys).count(rw.Gaussian(rho="0.1")),))


def test_a_domain_given_by_functions_is_the_cells_they_name_and_find():
    plans = [selected(by_functions("abc")), selected(by_functions("abc"))]
    assert identity(plans[0]) == identity(plans[1])
    others = [selected(by_functions("abd")), selected(by_functions("ab")), selected(by_functions("abc", lost="b"))]
    assert len({identity(plan) for plan in [plans[0], *others]}) == 4


def test_the_order_of_listed_values_is_no_part_of_a_domain():
    one, other = (selected({"county": values}) for values in (["a", "b"], ["b", "a"]))
    assert identity(one) == identity(other)
    listed = (selected(rw.Keys.of({"county": values})) for values in (["a", "b"], ["b", "a"]))
    assert len({identity(plan) for plan in listed}) == 1


def test_functions_with_too_many_cells_to_list_cannot_be_recognized():
    large = replace(by_functions("abc"), size=MOST_DIGESTED + 1)
    assert "given by functions" in str(unrecognizable(selected(large)))
    assert unrecognizable(selected(by_functions("abc"))) is None


class Listed(Mechanism):
    """A mechanism of somebody else that is no dataclass, but lists its parameters."""

    parameters = (Parameter("sigma", "noise"),)
    signed = False

    def __init__(self, sigma: Any) -> None:
        self.sigma = sigma

    def policy(self, measure: Any, *, tight: bool = True) -> Any:
        return rw.Gaussian(sigma=5).policy(measure, tight=tight)

    def shared(self, share: Any) -> "Listed":
        return self


class Unlisted(Listed):
    """The same without saying which parameters it has."""

    parameters = ()  # type: ignore[assignment]


def summed(mechanism: Any) -> Plan:
    schema = Schema.of(unit="id", measures={"emp": 1}, columns={"county": "text"})
    return Plan(schema=schema, queries=(rw.query().sum("emp", mechanism),))


def test_a_mechanism_whose_parameters_have_no_value_that_can_be_written_down_is_not_recognized():
    assert unrecognizable(summed(Listed(5))) is None
    assert identity(summed(Listed(5))) == identity(summed(Listed(5)))
    assert identity(summed(Listed(5))) != identity(summed(Listed(6)))
    assert "Unlisted" in str(unrecognizable(summed(Unlisted(5))))
    assert "object" in str(unrecognizable(summed(Listed(object()))))
    assert "function" in str(unrecognizable(summed(Listed(lambda: 5))))
