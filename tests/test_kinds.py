"""Arguments of the wrong kind are refused by our own error, which names the argument and what it must be."""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol

import numpy as np
import pytest

import recordwise as rw
from build import employers
from recordwise.errors import KindError, RecordwiseError, own_argument_errors
from recordwise.exact.numbers import Number
from recordwise.kinds import fits, kind_wanted, wrong_kind
from recordwise.mechanisms import Grid


class Shown(Protocol):
    def show(self) -> str: ...


FITTING: list[tuple[Any, list[Any], list[Any]]] = [
    (Any, [None, 3, object()], []),
    (None, [None], [0, ""]),
    (str, ["", "x"], [None, b"x", 3, str]),
    (int, [3, np.int64(3)], [True, 3.0, "3"]),
    (float, [3, 0.5, np.float32(1), Fraction(1, 2)], [True, "3", None]),
    (bool, [True], [1, None]),
    (str | None, ["x", None], [3]),
    (Number, [3, "1/2", Fraction(1), 0.5], [None, object(), [1]]),
    (Literal["a", 1], ["a", 1], ["b", True, 1.0]),
    (Annotated[int, "how many"], [1], ["1"]),
    (Callable[[int], int], [len, lambda: 1], [3, None]),
    (Mapping[str, int], [{}, {"a": 1}], [[], [("a", 1)], {"a": "b"}, {1: 1}]),
    (dict, [{}], [[]]),
    (tuple[int, ...], [(), (1, 2), [1]], [3, ("a",), {1}]),
    (tuple[str, int], [("a", 1)], [("a",), ("a", "b"), ("a", 1, 1)]),
    (Sequence[str], [[], ["a"], ("a",), np.array(["a"])], ["a", b"a", [1], 3, {1: "a"}]),
    (Iterable[float], [iter("a"), {1.0}], [None, {"a"}]),
    (list[int], [[1]], [["a"], 1]),
    (type[Exception], [ValueError, 3], []),
    (Shown, [object(), 3], []),
    (rw.Gaussian, [rw.Gaussian(rho=1)], [rw.Gaussian, "Gaussian", None]),
    ("Unknown", [None, 3], []),
    (inspect.Parameter.empty, [None, 3], []),
]


@pytest.mark.parametrize(("wanted", "good", "bad"), FITTING, ids=[str(row[0])[:40] for row in FITTING])
def test_only_what_surely_does_not_fit_is_refused(wanted: Any, good: list[Any], bad: list[Any]) -> None:
    assert [each for each in good if not fits(each, wanted)] == []
    assert [each for each in bad if fits(each, wanted)] == []


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        (str, "text"),
        (int, "a whole number"),
        (str | Path, "text or a path"),
        (Number, "a number"),
        (Number | None, "a number or None"),
        (None | Number | Mapping[str, Number], "a number or a mapping or None"),
        (rw.Policy | Sequence[rw.Policy], "a Policy or a list of Policy"),
        (Sequence[str], "a list of text"),
        (Sequence[Number], "a list of number"),
        (Sequence[tuple[str, int]], "a list of tuple"),
        (Callable[[], None], "a function"),
        (Literal["a", "b"], "'a' or 'b'"),
        (Annotated[int, "how many"], "a whole number"),
        (ArithmeticError, "an ArithmeticError"),
    ],
)
def test_annotations_in_words(wanted: Any, told: str) -> None:
    assert kind_wanted(wanted) == told


@own_argument_errors
def added(first: int, *others: float, named: str = "", **more: int) -> float:
    if named == "broken":
        raise ValueError("a record")
    return first + sum(others) + len(named) + sum(more.values())


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: added("1"), "first must be a whole number, not str."),
        (lambda: added(1, 2.0, None), "others must be a number, not NoneType."),
        (lambda: added(1, named=3), "named must be text, not int."),
        (lambda: added(1, odd=[2]), "odd must be a whole number, not list of int."),
        (lambda: added(1, odd={"a": 2}), "odd must be a whole number, not dict of int."),
    ],
)
def test_a_failed_call_names_the_first_argument_of_the_wrong_kind(call: Callable[[], Any], told: str) -> None:
    with pytest.raises(KindError) as refused:
        call()
    assert str(refused.value) == told
    assert refused.value.__cause__ is None
    assert refused.value.__context__ is None


def test_a_call_that_works_is_not_looked_at_and_other_errors_stay_what_they_are() -> None:
    assert added(1.5, np.float64(2)) == 3.5
    with pytest.raises(ValueError, match=r"^a record$"):
        added(1, named="broken")
    assert wrong_kind(added, (1, 2), {"named": "x"}) is None


ODD: list[Any] = [None, 3, "x", object(), [], [None], {"a": None}, rw.Gaussian, rw.query(), len, float("nan"), True]


def public_calls(folder: Path) -> Iterator[tuple[str, Callable[..., Any], dict[str, Any]]]:
    """Yield public functions with arguments that are accepted, while a session is open."""
    table = {"id": [1, 2, 3], "county": ["001", "001", "003"], "emp": [4, 20, 900]}
    with employers(table, "county") as session:
        yield from calls_of(session, folder)
    for name in ("maximum", "group_loss", "group_pair", "constant", "split", "meaning", "gaussian_sum"):
        yield name, getattr(rw.policy, name), {}
    for made in (
        rw.Gaussian,
        rw.UnitSplit,
        rw.Clamped,
        rw.Polylog,
        rw.LogTransform,
        rw.RootTransform,
        rw.Sized,
        rw.ByGroup,
    ):
        yield made.__name__, made, {}


def calls_of(session: rw.Session, folder: Path) -> Iterator[tuple[str, Callable[..., Any], dict[str, Any]]]:
    one = rw.Gaussian(sigma=1)
    asked = rw.query().group_by("county", keys=["001", "003"]).count(one).sum("emp", one)
    release, other = session.run(asked), session.run(asked)
    read = rw.read(release.save(folder / "saved"))
    goal = rw.planning.Goal("emp", asked, within="0.1")
    yield "recommend", rw.planning.recommend, {"session": session, "goals": goal, "plan": asked, "data": "synthetic"}
    yield (
        "compare",
        rw.planning.compare,
        {"session": session, "query": asked, "mechanisms": {"a": one}, "data": "synthetic"},
    )
    yield "sum", rw.query().sum, {"measure": "emp", "mechanism": one}
    yield "avg", rw.query().avg, {"measure": "emp", "mechanism": one}
    yield "ratio", asked.ratio, {"of": "sum_emp", "to": "count"}
    yield "quantile", rw.query().quantile, {"measure": "emp", "p": "1/2", "grid": Grid.linear(0, 64, bits=4), "rho": 1}
    yield "where", rw.query().where, {"condition": "emp > 1"}
    yield "total", read.total, {"name": "emp"}
    yield "share", read.share, {"name": "emp"}
    yield "change", release.change, {"previous": other}
    yield "consistent", release.consistent, {}
    yield "export", release.export, {"file": folder / "saved", "format": "csv"}
    yield "loss", session.policy_of(asked).loss, {"record": {"emp": 3}}


def odd_arguments(function: Callable[..., Any]) -> Iterator[tuple[str, Any]]:
    """Yield parameters with what does not fit them; what fits may be computed, which takes long. Anything is true or false."""
    several = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    for name, each in inspect.signature(function).parameters.items():
        if each.kind not in several and each.annotation not in (bool, bool | None):
            known = each.annotation not in (Any, inspect.Parameter.empty) and not isinstance(each.annotation, str)
            yield from ((name, odd) for odd in ODD if not (known and fits(odd, each.annotation)))


@pytest.mark.costly
def test_no_public_function_answers_an_odd_argument_with_an_error_of_pythons_own(tmp_path: Path) -> None:
    foreign = []
    for label, function, good in public_calls(tmp_path):
        for name, odd in odd_arguments(function):
            try:
                function(**{**good, name: odd})
            except RecordwiseError:
                pass
            except Exception as error:
                foreign.append((label, name, type(odd).__name__, repr(error)))
    assert foreign == []
