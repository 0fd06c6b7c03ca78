"""Generated establishments, every column of them."""

from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from recordwise.synthetic import county_tables, establishments
from recordwise.synthetic.county_tables import scale_to_totals
from recordwise.synthetic.establishments import (
    batches,
    cells,
    employment,
    figures,
    firm,
    payroll,
    public_keys,
    scrambled_ids,
    uniforms,
)
from recordwise.synthetic.states import public_sizes, state_establishments, states

Told = Iterator[tuple[str, Any]]


def of_tables() -> Told:
    made = {
        "by default": establishments(300),
        "of a seed": establishments(301, seed=7),
        "one": establishments(1),
        "states": state_establishments(300),
        "a year later": state_establishments(300, year=1, seed=3),
        "two years later": state_establishments(300, year=2, seed=3),
        "few sizes": public_sizes(300),
        "sizes": public_sizes(5000),
        "keys": public_keys().slice(0, 200),
    }
    for name, table in made.items():
        for column in table.column_names:
            yield f"{name}, {column}", table[column].to_pylist()
        yield f"{name}, types", [str(field.type) for field in table.schema]
    yield "batches", [batch.num_rows for batch in batches(500)]
    known = figures(), cells(), states()
    for at, each in enumerate(known):
        for field in fields(each):
            held = getattr(each, field.name)
            some = held.slice(0, 30) if isinstance(held, pa.Table) else np.asarray(held)[:: 1 + len(held) // 150]
            yield f"figures {at}, {field.name}", [len(held), some]


def of_parts() -> Told:
    chance = np.linspace(0.001, 0.999, 25)
    steps = np.cumsum(np.array([[0.5, 0.2, 0.1, 0.08, 0.05, 0.04, 0.02, 0.007, 0.003]]).repeat(25, axis=0), axis=1)
    emp = told(employment, steps, chance, chance[::-1])
    yield "employment", emp
    yield "payroll", told(payroll, np.arange(25.0), np.full(25, 45.0), chance, chance[::-1])
    number = np.arange(25)
    yield "firms", [told(firm, number, 25, chance, chance[::-1]), told(firm, number, 1, chance, chance)]
    yield "ids", scrambled_ids(number)
    yield "uniforms", [uniforms(seed, stream, start, 9) for seed in (1, 2) for stream in (0, 5) for start in (0, 3)]
    bounds, counts = np.array([0, 3, 5]), np.array([3, 2, 4])
    values = np.array([1.0, 2, 3, 0, 0, 1, 1, 1, 9])
    for totals in ([12.0, 90, 400], [0.0, 20, 4]):
        yield f"scaled to {totals}", told(scale_to_totals, values, bounds, counts, np.array(totals))


def of_counties() -> Told:
    """Cells as a county table has them, one of an industry that is not known and one of zeros, in several batches."""
    table = pa.table(
        {
            "fips": pa.array(["02013", "01001", "01001", "01001"]),
            "naics": pa.array(["722511", "722511", "441110", "999999"]),
            "digits": [6, 6, 6, 6],
            "establishments": [5, 4, 3, 9],
            "employees": [40, 0, 17, 900],
            "payroll_1000usd": [900, 0, 333, 40_000],
        }
    )
    coarse = table.slice(0, 1).set_column(2, "digits", pa.array([5]))
    with TemporaryDirectory() as place:
        pq.write_table(pa.concat_tables([table, coarse]), Path(place) / county_tables.FILE)
        found = county_tables.CountyTable.read(place)
    yield "cells", [found.keys(), found.establishments, found.employees, found.payroll]
    for name, size in {"one batch": county_tables.BATCH, "several": 7}.items():
        for seed in (1, 2):
            with patch.object(county_tables, "BATCH", size):
                yield f"{name}, {seed}", batched(found, seed)
    yield "by default", [each.to_pydict() for each in found.batches()]


def batched(found: Any, seed: int) -> list[Any]:
    return [each.to_pydict() for each in found.batches(seed=seed)]


def told(ask: Any, *given: Any) -> Any:
    """What a part gives; one that does not fit its argument says so."""
    try:
        return ask(*given)
    except (ValueError, IndexError) as refused:
        return type(refused).__name__


SUBJECTS = {"tables": of_tables, "parts": of_parts, "counties": of_counties}
