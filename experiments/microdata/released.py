"""The five methods of [A] through ``Session.run`` and ``release.records`` (``python -m experiments.microdata.released``)."""

import argparse

import numpy as np
import pyarrow as pa

import recordwise as rw
from experiments.microdata import paper
from experiments.microdata.comparing import beside_paper, report
from experiments.microdata.measuring import Line
from experiments.microdata.tables import all_tables
from recordwise.noise import Seeded

EPSILON = "1/2"
SCALE = 2
"""Of the whole query: its four tables share epsilon = 1/2, so that each has Laplace noise of scale 8."""
RUNS = 100


def records_table(table: np.ndarray) -> pa.Table:
    """A person for each count of a histogram."""
    rows, columns = (np.repeat(each.ravel(), table.ravel().astype(int)) for each in np.indices(table.shape))
    return pa.table({"id": np.arange(len(rows)), "race": rows, "origin": columns})


def asked(shape: tuple[int, ...]) -> rw.Query:
    """Sum, rows, columns and cells, in one query."""
    keys = rw.Keys.product(race=list(range(shape[0])), origin=list(range(shape[1])))
    laplace = rw.GeneralizedGaussian(shape=1, scale=SCALE)
    return rw.query().levels((), "race", keys=keys).levels((), "origin").count(laplace)


def cells_of(release: rw.Release, method: str, shape: tuple[int, ...]) -> tuple[np.ndarray, float]:
    """The cells of the records, and the residual of their fit; least squares has negative cells and no records."""
    if method == "ols":
        fitted = release.consistent(method="ols", complete=True)
        note = fitted.published.fit
        assert note is not None
        found = fitted["race_by_origin"]
        place = found["race"].to_numpy() * shape[1] + found["origin"].to_numpy()
        weights, residual = found["count_fit"].to_numpy(), note.fits["q1:count"].kkt
    else:
        made = release.records(weighted=True, method=method, complete=True)
        place = made.data["race"].to_numpy() * shape[1] + made.data["origin"].to_numpy()
        weights, residual = made.data["weight"].to_numpy(), made.about["kkt"]
    cells = np.zeros(shape[0] * shape[1])
    cells[place] = weights
    return cells, residual


def measured(name: str, table: np.ndarray, runs: int, seed: int) -> list[Line]:
    """Squared errors of every method on the same releases."""
    kept: dict[str, list[np.ndarray]] = {method: [] for method in paper.METHODS}
    residuals = dict.fromkeys(paper.METHODS, 0.0)
    with rw.Session(records_table(table), unit="id", tuned_on="public", ledger=None) as session:
        for run in range(runs):
            release = session.run(asked(table.shape), rng=Seeded(seed + run))
            for method in paper.METHODS:
                cells, residual = cells_of(release, method, table.shape)
                kept[method].append(cells - table.ravel())
                residuals[method] = max(residuals[method], residual)
    lines = []
    for method, errors in kept.items():
        each = np.stack(errors)
        for group, squared in (("sum", each.sum(axis=1, keepdims=True) ** 2), ("cells", each**2)):
            lines.append(_line(name, method, group, squared, residuals[method]))
    return lines


def _line(name: str, method: str, group: str, squared: np.ndarray, residual: float) -> Line:
    total, means, root = squared.sum(axis=1), squared.mean(axis=0), np.sqrt(len(squared))
    worst = int(np.argmax(means))
    return Line(
        table=name,
        noise="laplace",
        parameter=0.5,
        method=method,
        group=group,
        total=float(total.mean()),
        total_se=float(total.std(ddof=1) / root),
        largest=float(means[worst]),
        largest_se=float(squared[:, worst].std(ddof=1) / root),
        runs=len(squared),
        failures=int(residual > 1e-8),
        worst_kkt=residual,
        worst_primal=0.0,
    )


def main(runs: int = RUNS, seed: int = 1) -> list[dict[str, object]]:
    """Print Tables 1 and 2 beside what records of releases have."""
    tables, missing = all_tables()
    lines: list[Line] = []
    for name in (each for each in tables if each in paper.TABLE_1):
        lines += measured(name, tables[name], runs, seed)
    rows = beside_paper(lines)
    print(report(rows))
    print(f"{runs} releases of each table, epsilon {EPSILON}; missing: {', '.join(missing) or 'none'}.")
    return rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=RUNS)
    main(parser.parse_args().runs)
