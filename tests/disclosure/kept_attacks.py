"""What attacks on described tables find, with all their words, and what wrong descriptions are refused with."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from cli.test_attack_command import CELLS, DIMENSIONS, TABLE
from disclosure.small_publications import contributions, made_cells, two_trees
from recordwise.disclosure import attack, feasible_intervals, largest_contributor, read_description
from recordwise.disclosure.bounds import blocks, tighten
from recordwise.disclosure.cells import Dimension
from recordwise.disclosure.rules import Coarsening, PercentRule, Ranges, Rounding, Suppression, ThresholdRule
from recordwise.errors import RecordwiseError

Told = Iterator[tuple[str, Any]]
COUNTIES = "state,county\n01,01001\n01,01003\n02,02001\n"
ABSENT = 'absent = "unknown"\n'
DESCRIPTIONS = {
    "plain": ABSENT + DIMENSIONS + TABLE,
    "zero": DIMENSIONS + TABLE,
    "nothing absent": 'absent = "zero"\n' + DIMENSIONS + TABLE,
    "rounded": ABSENT + DIMENSIONS + TABLE + "rounded_to = 10\n",
    "rounded to 3": ABSENT + "percent = 5\n" + DIMENSIONS + TABLE + "rounded_to = 3\n",
    "contributors": ABSENT + DIMENSIONS + TABLE + 'number = "est"\n',
    "near": ABSENT + "percent = 80\n" + DIMENSIONS + TABLE + "rounded_to = 40\nnumber = 'est'\n",
    "flagged": ABSENT + DIMENSIONS + TABLE + 'withheld = ["D", "S"]\n',
    "wrong flag": ABSENT + DIMENSIONS + TABLE + 'withheld = ["S"]\n',
    "no percent": ABSENT + "percent = 0\n" + DIMENSIONS + TABLE,
    "rounded to nothing": ABSENT + DIMENSIONS + TABLE + "rounded_to = 0\n",
    "no table": ABSENT + DIMENSIONS,
    "no dimension": ABSENT + TABLE,
    "two tables": ABSENT + DIMENSIONS + TABLE + TABLE.replace("emp.csv", "other.csv"),
}


def of_descriptions() -> Told:
    with TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "counties.csv").write_text(COUNTIES)
        (folder / "industries.csv").write_text("sector,naics\n31,311\n44,441\n")
        (folder / "emp.csv").write_text(CELLS)
        (folder / "other.csv").write_text("fips,code,emp,est\n02,31,D,3\n02,44,150,17\n02001,44,150,17\n")
        for name, text in DESCRIPTIONS.items():
            (folder / "tables.toml").write_text(text)
            try:
                read = read_description(folder / "tables.toml")
                found = attack(read)
            except RecordwiseError as refused:
                yield name, f"{type(refused).__name__}: {refused}"
                continue
            yield name, [found.rows(), found.summary(), found.counts(), found.assumptions, found.percent]
            yield f"{name}, read", [read.low, read.high, read.withheld, read.number, read.absent, read.cells.codes]
            saved = found.save(folder / f"{name}.csv")
            yield f"{name}, saved", saved.read_text().splitlines()
            yield f"{name}, mode", oct(saved.stat().st_mode & 0o777)


def of_methods() -> Told:
    """Older rules on random tables, at and next to their limits."""
    for seed in range(3):
        rng = np.random.default_rng(900 + seed)
        cells = made_cells(two_trees(rng, 3, 3))
        found = contributions(rng, cells, most=4)
        rules = (PercentRule(20), ThresholdRule(2))
        for at in (0, 1, 2, 3, 4):
            rule = told(ThresholdRule, at)
            yield (
                f"{seed}, fewer than {at}",
                rule if isinstance(rule, str) else [rule.sensitive(found), rule.protection(found)],
            )
        for percent in (0, 1, 50, 100, 101):
            rule = told(PercentRule, percent)
            yield (
                f"{seed}, {percent} percent",
                rule if isinstance(rule, str) else [rule.sensitive(found), rule.protection(found)],
            )
        methods: dict[str, Any] = {
            "suppressed": Suppression(rules),
            "coarser": Coarsening(rules),
            "rounded": Rounding(3),
            "at random": Rounding(3, at_random=True),
            "ranges": Ranges(rules, edges=(1.0, 5.0, 25.0)),
        }
        for name, method in methods.items():
            published = method.publish(cells, found, seed=seed)
            yield f"{seed}, {name}", [published.value, published.low, published.high, published.withheld]
            for zero in (True, False):
                system = cells.system(published.low, published.high, absent_is_zero=zero)
                tight = tighten(system)
                sizes = [len(each.columns) if hasattr(each, "columns") else str(type(each)) for each in blocks(tight)]
                yield f"{seed}, {name}, {zero}, tight", [tight.low, tight.high, sizes]
                ends = feasible_intervals(system, np.arange(0, len(cells), 2))
                yield f"{seed}, {name}, {zero}, ends", [[f"{each:.6g}" for each in end] for end in ends]
    for name, low, high, number in (("one", 30.0, 30.0, 1.0), ("two", 10.0, 30.0, 2.0), ("none", 0.0, 0.0, 0.0)):
        given = (np.array([low]), np.array([high]), np.array([number]), np.array([4.0]))
        yield f"largest of {name}", told(largest_contributor, *given)
    tree = Dimension.from_levels("place", [("a", "a1"), ("a", "a2"), ("b", "b1")])
    yield "tree", [tree.codes, [list(each) for each in tree.trees], tree.depth, tree.positions(["a1", "b"])]
    yield "parents", told(Dimension.from_parents, "place", {"a": "", "b": "a", "c": "b"})


def told(ask: Any, *given: Any) -> Any:
    try:
        return ask(*given)
    except (RecordwiseError, TypeError) as refused:
        return f"{type(refused).__name__}: {refused}"


SUBJECTS = {"descriptions": of_descriptions, "methods": of_methods}
