"""Where sentences for readers name things and where they count them, and the least and most that can be asked."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from reader.kept_reader import releases
from reader.test_reader_derived import made
from recordwise.errors import KindError, ParameterError
from recordwise.reader import asking, derived, questions
from recordwise.reader.answers import MOST_NAMED, Answer
from recordwise.reader.derived import Noisy
from recordwise.reader.reading import MOST_CERTAIN, ReaderRelease


def test_codes_are_named_up_to_eight_and_counted_beyond() -> None:
    codes = [str(at) for at in range(questions.MOST_CODES + 1)]
    assert questions._codes_text("a", codes[:-1], {"a=1": "One"}) == "0, One (1), 2, 3, 4, 5, 6, 7"
    assert questions._codes_text("a", codes, {}).startswith("one of 9 codes (list ")


def test_tables_are_named_up_to_four_and_counted_beyond() -> None:
    names = [f"t{at}" for at in range(asking.MOST_NAMED + 1)]
    assert asking.table_names(names[:-1]) == "t0, t1, t2, t3"
    assert asking.table_names(names) == "5 tables (t0 to t4)"


def test_ratios_that_are_left_out_are_named_up_to_eight() -> None:
    labels = [str(at) for at in range(MOST_NAMED + 2)]
    for gone, end in ((MOST_NAMED, "7)."), (MOST_NAMED + 1, "7 ...).")):
        (said,) = Answer._unclear(labels, np.arange(gone, len(labels)))
        assert said.endswith(f": {gone} (0, 1, 2, 3, 4, 5, 6, {end}")
    assert Answer._unclear(labels, np.arange(len(labels))) == ()


@pytest.mark.costly
def test_cells_are_named_up_to_four_and_counted_beyond() -> None:
    (table,) = (each for each in releases()["rich"].tables if each.name == "patterns_state_by_naics")
    named = asking._cells_text(table, np.arange(4), {"state=01": "Alabama"})
    assert named == ["Alabama / 111, Alabama / 311, Alabama / 3121, Alabama / 332 (patterns_state_by_naics)"]
    assert asking._cells_text(table, np.arange(5), {}) == ["5 cells of patterns_state_by_naics"]
    assert asking._cells_text(table, np.arange(0), {}) == []


def test_the_most_certain_interval_is_asked_for_and_none_beyond() -> None:
    release = releases()["plain"]
    assert release.total("n", confidence=MOST_CERTAIN).sd > 0
    for level in (0, 1, np.nextafter(MOST_CERTAIN, 2)):
        with pytest.raises(ParameterError, match="confidence must be between 0 and 1"):
            release.total("n", confidence=level)


def test_two_values_have_ranks_and_one_has_none() -> None:
    values = np.array([9.0, 1.0])
    drawn: dict[str, Any] = {"errors": lambda draws, _: np.random.default_rng(1).normal(size=(draws, 2))}
    assert made(values, np.eye(2), **drawn).rank().best.tolist() == [1, 2]
    with pytest.raises(ParameterError, match="needs at least two values"):
        made(values[:1], np.eye(1), errors=lambda draws, _: np.zeros((draws, 1))).rank()


def test_many_values_are_ranked_by_their_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.array([9.0, 1.0, 4.0])
    drawn: dict[str, Any] = {"errors": lambda draws, _: np.random.default_rng(1).normal(size=(draws, 3))}
    for most, how in ((3, "all pairs"), (2, "simultaneous intervals")):
        monkeypatch.setattr(derived, "MOST_PAIRED", most)
        assert how in made(values, np.eye(3), **drawn).rank().method


class Scored(Noisy):
    """Scores that are given, for the set of slopes alone."""

    __slots__ = ("given",)
    given: Any

    def scores(self) -> Any:
        return self.given

    @property
    def products(self) -> Any:
        return np.array([6.0])


@pytest.mark.parametrize(("none", "one", "two"), [(2.0, 0.5, 1.0), (3.0, -0.75, 0.25), (1.0, 0.0, 0.0)])
def test_slopes_are_those_whose_scores_are_small(none: float, one: float, two: float) -> None:
    """The sum of scores at a slope b is 6 - 3 b, and that of their squares none - 2 one b + two b^2."""
    model = object.__new__(Scored)
    object.__setattr__(model, "given", (none, one, two))
    low, high, said = derived._slope_set(model, 3.0, 1.5)
    assert said == ""
    assert low < 2 < high
    for slope in (low, high):
        squares = none - 2 * one * slope + two * slope**2
        assert abs(6 - 3 * slope) == pytest.approx(1.5 * np.sqrt(squares), rel=1e-9)


@pytest.mark.parametrize("title, told", [("Establishments of 2026", "Establishments of 2026"), ("", "cbp")])
def test_a_release_is_called_by_its_title_or_else_by_its_dataset(title: str, told: str) -> None:
    words = SimpleNamespace(publication=SimpleNamespace(title=title))
    release: Any = SimpleNamespace(words=words, published=SimpleNamespace(dataset="cbp"))
    named: Any = ReaderRelease.title
    assert named.fget(release) == told


@pytest.mark.parametrize("count", ["3", -3, 0, 2.5, True])
def test_the_largest_are_counted_in_whole_numbers(count: Any) -> None:
    drawn: dict[str, Any] = {"errors": lambda draws, _: np.random.default_rng(1).normal(size=(draws, 2))}
    found = made(np.array([9.0, 1.0]), np.eye(2), **drawn).rank()
    assert "top 1:" in found.sentence(1)
    with pytest.raises(ParameterError, match="count must be a whole number of at least 1"):
        found.sentence(count)


@pytest.mark.parametrize("count", [19, 10_001, 10**9, "30", 30.5])
def test_replicates_are_between_twenty_and_ten_thousand(count: Any) -> None:
    with pytest.raises(ParameterError, match=r"count must be (at least 20|at most 10,000|a whole number)"):
        releases()["plain"].replicates("n", count=count)


@pytest.mark.parametrize(
    ("asked", "flag"),
    [
        ("total", "complete"),
        ("total", "nonnegative"),
        ("share", "each"),
        ("share", "complete"),
        ("rank", "complete"),
        ("replicates", "nonnegative"),
    ],
)
def test_flags_are_true_or_false(asked: str, flag: str) -> None:
    given: dict[str, Any] = {flag: "no"}
    with pytest.raises(KindError, match=f"{flag} must be True or False, not str"):
        getattr(releases()["plain"], asked)("n", **given)


def test_an_unknown_query_is_refused_with_those_that_have_the_name() -> None:
    with pytest.raises(ParameterError, match=r"^query 7 has no 'n'\. Queries that have it: 1(, \d)*\.$"):
        releases()["plain"].total("n", query=7)
