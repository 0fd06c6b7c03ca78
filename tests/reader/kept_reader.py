"""Answers to readers with all their sentences: totals, shares, growth, ranks, slopes, replicates, and refusals."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import recordwise as rw
from kept.kept_publications import REGIONS, released
from recordwise.errors import RecordwiseError
from recordwise.reader import ReaderRelease
from release.rich_releases import plain, rich, selected

Told = Iterator[tuple[str, Any]]


def private(release: rw.Release) -> ReaderRelease:
    """As its readers would have it; noise from a seed serves as well here."""
    return ReaderRelease.of(replace(release, private=True))


@cache
def releases() -> dict[str, ReaderRelease]:
    return {
        "rich": private(rich()),
        "plain": private(plain()),
        "plain later": private(plain(2)),
        "selected": ReaderRelease.of(selected()),
        "normal": private(released(1, "crossed")),
        "normal later": private(released(2, "crossed")),
        "tree": private(released(1, "tree")),
        "heavy": private(released(1, "crossed", True)),
    }


def answered(ask: Callable[..., Any], *given: Any, **named: Any) -> Any:
    """The whole answer, or the words of the refusal."""
    try:
        found = ask(*given, **named)
    except RecordwiseError as refused:
        return f"{type(refused).__name__}: {refused}"
    parts: dict[str, Any] = {"repr": repr(found), "citation": found.citation}
    if hasattr(found, "to_json"):
        parts["json"] = found.to_json()
    for name in ("method", "texts", "codes", "left_out", "normal", "clipped", "moments", "percent", "wides", "halves"):
        parts[name] = getattr(found, name, "")
    if hasattr(found, "_repr_html_"):
        parts["html"] = found._repr_html_()
    parts["table"] = found.table
    return parts


CONDITIONS: dict[str, dict[str, Any]] = {
    "all": {},
    "a state": {"where": {"state": "01"}},
    "states": {"where": {"state": ["01", "13"]}, "confidence": 0.6},
    "by county": {"by": "county"},
    "by state in a sector": {"by": "state", "where": "sector = '31-33'", "confidence": 0.95},
    "by industry": {"by": "naics", "where": {"state": "02"}, "complete": True},
    "by sector": {"by": "sector", "complete": False},
    "condition": {"where": "not state = '13' and (naics in ('311', '332') or sector = '11')", "complete": True},
    "not negative": {"by": "county", "nonnegative": True},
    "first query": {"query": 1, "by": "state"},
    "third query": {"query": 3},
    "by kind": {"by": "kind"},
    "shared regions": {
        "regions": {
            "county": ["01001", "0103", "0103", "02013"],
            "region": ["a", "a", "b", "b"],
            "share": [1, 0.25, 0.75, 1],
        }
    },
    "regions with an unknown code": {"regions": {"code": ["01001", "77"], "region": ["a", "b"]}, "by": "county"},
    "unknown column": {"by": "nothing"},
    "unknown code": {"where": {"state": "99"}},
    "unknown query": {"query": 9},
    "too certain": {"confidence": 1.0},
    "not certain": {"confidence": 0.0},
}


def of_totals() -> Told:
    for name in ("rich", "plain", "selected"):
        release = releases()[name]
        for variable in ("n", "emp", "sum_pay", "net", "count", "staff", "nothing"):
            for told, how in CONDITIONS.items():
                if variable in ("n", "emp") or told in ("all", "by county", "by sector", "not negative", "by kind"):
                    yield f"{name}, {variable}, {told}", answered(release.total, variable, **how)
        yield f"{name}, about", [release.names, release.title, release.labels, repr(release), release._repr_html_()]


def of_derived() -> Told:
    """What is computed from totals."""
    for name in ("plain", "normal", "heavy", "tree"):
        release = releases()[name]
        level = {"plain": "county", "tree": "county"}.get(name, "county5")
        emp, count = ("emp", "n") if name == "plain" else ("emp", "count") if name == "tree" else ("sum_emp", "count")
        totals, counts = release.total(emp, by=level), release.total(count, by=level)
        labels = totals.labels
        for first, second in ((labels[0], labels[1]), (labels[2], labels[0]), (labels[1], labels[1]), ("?", labels[0])):
            for ask in ("difference", "ratio", "share", "compare"):
                if ask == "compare":
                    told: Any = str(told_or(totals.compare, first, second))
                else:
                    told = answered(getattr(totals, ask), first, second)
                yield f"{name}, {ask} of {first} and {second}", told
        yield f"{name}, shares", answered(totals.shares)
        yield f"{name}, shares of the whole", answered(totals.shares, of="the whole")
        yield f"{name}, shares of each", answered(totals.shares, each=True)
        yield f"{name}, per", answered(totals.per, counts)
        yield f"{name}, per itself", answered(totals.per, totals)
        yield f"{name}, reliability", [told_or(totals.reliability), told_or(counts.reliability)]
        ranked = told_or(totals.rank)
        yield f"{name}, ranks", answered(totals.rank)
        if not isinstance(ranked, str):
            yield f"{name}, top", [told_or(ranked.top, at) for at in (0, 1, 2, 5, 6)]
            yield f"{name}, sentences", [told_or(ranked.sentence, at) for at in (1, 3, 10)]
        for told_of, noisy, weights in (
            ("one", {"count": counts}, None),
            ("weighted", {"count": counts}, [1, 2, 3, 1, 2]),
            ("numbers", {"x": [1.0, 2.0, 4.0, 8.0, 5.0]}, None),
            ("both", {"count": counts, "x": [1.0, 2.0, 4.0, 8.0, 5.0]}, [2, 1, 1, 1, 3]),
            ("few", {"x": [1.0]}, None),
            ("weight 0", {"x": [1.0, 2.0, 4.0, 8.0, 5.0]}, [0, 1, 1, 1, 1]),
        ):
            yield f"{name}, slopes on {told_of}", answered(totals.regress, noisy, weights=weights)
        yield f"{name}, replicates", answered(totals.replicates, 20)
        yield f"{name}, too few replicates", answered(totals.replicates, 19)
        cut = release.total(emp, by=level, nonnegative=True)
        for ask in ("rank", "reliability", "replicates", "shares"):
            yield f"{name}, {ask} of cut values", str(told_or(getattr(cut, ask)))


def of_releases() -> Told:
    """Questions to releases that give no totals."""
    normal, later, plain_now, plain_later = (
        releases()[each] for each in ("normal", "normal later", "plain", "plain later")
    )
    for told, how in {
        "all": {},
        "by county": {"by": "county5"},
        "by state": {"by": "county2", "where": "naics2 = '31'", "confidence": 0.8},
        "regions": {"regions": REGIONS},
        "crosswalk": {"by": "county5", "crosswalk": {"county5": {"01001": "01003", "34001": "34001"}}},
    }.items():
        for variable in ("sum_emp", "count", "sum_pay"):
            yield f"growth of {variable}, {told}", answered(later.growth, variable, normal, **how)
    yield "growth without an earlier one", answered(later.growth, "count")
    yield "growth since itself", answered(later.growth, "count", later, by="county2")
    yield "growth of plain", answered(plain_later.growth, "n", plain_now, by="state")
    for told, share in {
        "state": {"where": {"state": "01"}},
        "by state": {"where": {"sector": "31-33"}, "by": "state"},
        "each state": {"where": {"sector": "31-33"}, "by": "state", "each": True},
        "of a sector": {"where": {"naics": "311"}, "of": {"sector": "31-33"}, "confidence": 0.8, "complete": True},
    }.items():
        for variable in ("n", "emp"):
            yield f"share of {variable}, {told}", answered(plain_now.share, variable, **share)
    yield "rank", answered(plain_now.rank, "emp", by="county")
    yield "regress", answered(plain_now.regress, "emp", "n", by="county")
    yield "regress on two", answered(plain_now.regress, "emp", ["n", "net"], {"sector": "31-33"}, by="county")
    yield "replicates", answered(plain_now.replicates, "n", count=20, by="state")
    with TemporaryDirectory() as place:
        path = plain_now.replicates("n", count=20, by="state").save(Path(place) / "replicates.csv")
        yield "saved replicates", path.read_text(encoding="utf-8").splitlines()


def told_or(ask: Callable[..., Any], *given: Any) -> Any:
    try:
        return ask(*given)
    except RecordwiseError as refused:
        return f"{type(refused).__name__}: {refused}"


SUBJECTS = {"totals": of_totals, "derived": of_derived, "questions": of_releases}
