"""Fitted tables as records: with positive weights, or as integer counts by controlled rounding."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from recordwise.errors import ParameterError
from recordwise.postprocess.rounding import controlled_rounding
from recordwise.postprocess.solvers.boxed import FloatArray, IntArray
from recordwise.postprocess.workload import Workload

WEIGHT = "weight"


def to_weighted_records(x: ArrayLike, domain: Mapping[str, Sequence[Any]]) -> Any:
    """One weighted record for each nonempty cell, as an Arrow table.

    ``domain`` lists the values of each column; the cells are their combinations in C order. With as many values in every column as
    there are cells, the columns are read row by row instead.
    """
    import pyarrow

    weights = read_table(x)
    columns = columns_of(domain, len(weights))
    kept = np.flatnonzero(weights > 0)
    made = {name: pyarrow.array([values[k] for k in places[kept]]) for name, (values, places) in columns.items()}
    return pyarrow.table(made | {WEIGHT: weights[kept]})


def to_integer_records(workload: Workload, x: ArrayLike, domain: Mapping[str, Sequence[Any]]) -> Any:
    """Whole records: every cell and every sum of the workload is rounded up or down, and all still add up (T-ROUND).

    Possible when the groups are two families of nested ones, such as regions by levels and industries by levels; refused otherwise.
    """
    import pyarrow

    counts = controlled_rounding(workload, read_table(x))
    columns = columns_of(domain, len(counts))
    cells = np.repeat(np.arange(len(counts)), counts)
    return pyarrow.table(
        {name: pyarrow.array([values[k] for k in places[cells]]) for name, (values, places) in columns.items()}
    )


def save_records(records: Any, path: str | Path) -> None:
    """Write records as Parquet or CSV, according to the file extension."""
    from pyarrow import csv, parquet

    ending = Path(path).suffix.lower()
    if ending == ".parquet":
        parquet.write_table(records, path)
    elif ending == ".csv":
        csv.write_csv(records, path)
    else:
        raise ParameterError(parameter="path", problem=f"must end in .parquet or .csv, not '{ending}'")


def read_table(x: ArrayLike) -> FloatArray:
    """One fitted table: finite and not negative."""
    values = np.asarray(x, dtype=np.float64)
    if values.ndim != 1 or not np.all(np.isfinite(values)):
        raise ParameterError(parameter="x", problem="must be one table of finite cells", advice="Choose a draw.")
    if np.any(values < 0):
        raise ParameterError(
            parameter="x",
            problem="has negative cells, which cannot become records",
            advice="Fit it with nnls or another such method.",
        )
    return values


def columns_of(domain: Mapping[str, Sequence[Any]], cells: int) -> dict[str, tuple[Sequence[Any], IntArray]]:
    """For each column its values and which of them each cell has."""
    if not domain or WEIGHT in domain:
        raise ParameterError(parameter="domain", problem=f"must name at least one column, none of them '{WEIGHT}'")
    shape = tuple(len(values) for values in domain.values())
    if int(np.prod(shape)) == cells:
        places = np.indices(shape).reshape(len(shape), cells)
        return {name: (values, places[k]) for k, (name, values) in enumerate(domain.items())}
    if all(length == cells for length in shape):
        return {name: (values, np.arange(cells)) for name, values in domain.items()}
    raise ParameterError(
        parameter="domain", problem=f"has {' x '.join(map(str, shape))} combinations, the table {cells} cells"
    )
