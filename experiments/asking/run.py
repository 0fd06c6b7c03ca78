"""Fifty real regions of several counties asked of a release of county tables, and the coverage of every kind of interval."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pv
import pyarrow.parquet as pq

import recordwise as rw
from experiments.asking.coverage import LEVEL, Row, covered, ranks, slopes
from experiments.frame import COLORS, NO_DATA, Claim, Picture, Reproduction, Tell, data_folder, new_figure, tidy
from recordwise.noise import Seeded
from recordwise.reader import ReaderRelease

RUNS = 2000
STEPS = 24
CELLS, DISTRICTS = "cbp_county_2017.parquet", "nass_county_milk_cows_2022.csv.gz"
REGIONS, FEWEST = 50, 3
SIGMA = 100
BELOW, ERRORS = 0.01, 4
"""How far below the confidence a coverage may be before it is reported: a point, and so many standard errors."""
SETTING = (
    "County Business Patterns 2017, sectors by county, each published cell a record: nation, states and counties crossed with all "
    f"industries and sectors, six tables, Gaussian noise of sigma {SIGMA} for all of them together.",
    "Regions: agricultural districts of the Census of Agriculture with at least three counties in the tables.",
    "Coverage: states that are all alike with four counties each, one release of a small tree each; slopes by simulation.",
)


def county_cells(folder: Any) -> pa.Table:
    """Employment by county and sector."""
    cells = pq.read_table(folder / CELLS, columns=["fips", "naics", "employees", "digits"])
    cells = cells.filter(pc.equal(cells["digits"], 2))
    return pa.table(
        {
            "id": np.arange(cells.num_rows),
            "county": pc.cast(cells["fips"], pa.string()),
            "sector": pc.cast(cells["naics"], pa.string()),
            "emp": pc.cast(cells["employees"], pa.int64()),
        }
    )


def district_regions(folder: Any, counties: set[str]) -> dict[str, list[str]]:
    """Districts of at least three counties that the tables have, evenly over all of them."""
    texts = {name: pa.string() for name in ("State ANSI", "County ANSI", "Ag District Code", "State", "Ag District")}
    options = pv.ConvertOptions(column_types=texts, include_columns=list(texts))
    found: dict[str, set[str]] = {}
    for row in pv.read_csv(folder / DISTRICTS, convert_options=options).to_pylist():
        code = f"{row['State ANSI'] or ''}{row['County ANSI'] or ''}"
        if code in counties:
            found.setdefault(f"{row['State']}, {row['Ag District']}", set()).add(code)
    large = sorted(name for name, codes in found.items() if len(codes) >= FEWEST)
    chosen = [large[at] for at in np.linspace(0, len(large) - 1, min(REGIONS, len(large))).astype(int)]
    pairs = [(code, name) for name in chosen for code in sorted(found[name])]
    return {"county5": [code for code, _ in pairs], "region": [name for _, name in pairs]}


def region_rows(folder: Any, seed: int) -> list[Row]:
    """Each region's truth, its total and the errors that readers have computed otherwise."""
    cells = county_cells(folder)
    counties, sectors = sorted(set(cells["county"].to_pylist())), sorted(set(cells["sector"].to_pylist()))
    zones = district_regions(folder, set(counties))
    keys = rw.Keys.product(county=counties, sector=sectors)
    asked = rw.query().levels((), rw.prefix("county", [2, 5])).levels((), "sector", keys=keys)
    with rw.Session(cells, unit="id", measures={"emp": 1}, tuned_on="public", dataset="county patterns") as session:
        release = ReaderRelease.of(session.run(asked.sum("emp", rw.Gaussian(sigma=SIGMA)), rng=Seeded(seed)))
    totals = release.total("emp", regions=zones, complete=True)
    plain = release.total("emp", regions=zones)
    fitted = release.consistent(complete=True, method="ols")["county5_by_sector"]
    squares = sums_by(fitted["county5"].to_pylist(), np.asarray(fitted["sum_emp_best_sd"]) ** 2)
    truth = sums_by(cells["county"].to_pylist(), np.asarray(cells["emp"]))
    members: dict[str, list[str]] = {}
    for code, name in zip(*zones.values()):
        members.setdefault(name, []).append(code)
    return [
        {
            "region": name,
            "counties": len(members[name]),
            "truth": int(sum(truth[code] for code in members[name])),
            "total": round(float(totals.values[at]), 1),
            "sd": round(float(totals.sds[at]), 1),
            "county_table_sd": round(float(plain.sds[at]), 1),
            "root_of_squares": round(float(np.sqrt(sum(squares[code] for code in members[name]))), 1),
        }
        for at, name in enumerate(totals.labels)
    ]


def sums_by(codes: Sequence[str], values: Any) -> dict[str, float]:
    names, place = np.unique(codes, return_inverse=True)
    return dict(zip(names.tolist(), np.bincount(place, values).tolist()))


def picture(rows: Sequence[Row]) -> Picture:
    """Standard errors by three ways, and the errors there really are."""
    order = sorted(rows, key=lambda row: float(str(row["root_of_squares"])))
    place = np.arange(len(order))
    figure, ((axes,),) = new_figure()
    ways = (("root_of_squares", "root of squares of fitted cells"), ("county_table_sd", "sum of the county table"))
    for color, (name, label) in zip(COLORS[1:], (*ways, ("sd", "total"))):
        axes.plot(place, [row[name] for row in order], "-", color=color, label=f"standard error: {label}")
    errors = [abs(float(str(row["total"])) - float(str(row["truth"]))) for row in order]
    axes.plot(place, errors, "o", color=COLORS[0], label="error of total")
    axes.set_yscale("log")
    axes.set_ylim(bottom=1)
    axes.legend(frameon=False)
    tidy(axes, title="Fifty regions of several counties", xlabel="region", ylabel="employees")
    caption = "Standard errors of regional employment by three ways, and the true errors of total, for 50 agricultural districts."
    return Picture(name="regions", figure=figure, caption=caption, alt=caption)


def region_claims(rows: Sequence[Row]) -> list[Claim]:
    scores = np.array([(float(str(r["total"])) - float(str(r["truth"]))) / float(str(r["sd"])) for r in rows])
    wide = np.median([float(str(r["root_of_squares"])) / float(str(r["sd"])) for r in rows])
    size, held = float(np.sqrt(np.mean(scores**2))), int(np.sum(np.abs(scores) <= 1.96))
    good = bool(0.6 < size < 1.5)
    return [
        Claim(
            statement="Errors of regional totals are as large as their standard errors say",
            paper="our promise (T-ASK)",
            ours=f"root mean square {size:.2f} standard errors; {held} of {len(rows)} within 1.96",
            agrees=good,
            why="" if good else "errors and standard errors differ by more than chance allows in 50 regions",
        ),
        Claim(
            statement="The root of squares of fitted cells is not the error of their sum",
            paper="the issue: 13 times too wide for seven counties",
            ours=f"{wide:.1f} times the standard error of total (median)",
            agrees=bool(wide > 1),
            why="" if wide > 1 else "fitted cells are hardly correlated here",
        ),
    ]


def coverage_claim(rows: Sequence[Row]) -> Claim:
    def short(row: Row) -> float:
        return (LEVEL - float(row["coverage"])) / float(np.sqrt(LEVEL * (1 - LEVEL) / int(row["of"])))

    worst = max(rows, key=short)
    good = (
        float(worst["coverage"]) >= LEVEL - BELOW or short({**worst, "coverage": worst["coverage"] + BELOW}) <= ERRORS
    )
    return Claim(
        statement=f"Every kind of interval holds with {LEVEL:g}, to {BELOW:g} and {ERRORS} standard errors",
        paper="our promise",
        ours=f"least {worst['coverage']}: {worst['kind']}, {worst['size']}, of {worst['of']}",
        agrees=good,
        why="" if good else f"{worst['kind']} of size {worst['size']} holds less often",
    )


def reproduce(*, runs: int, seed: int, tell: Tell) -> Reproduction:
    folder = data_folder(CELLS, DISTRICTS)
    tell("fifty regions")
    regions = [] if folder is None else region_rows(folder, seed)
    coverage, ranked = covered(runs, seed, tell), ranks(runs, seed, tell)
    return Reproduction(
        name="asking",
        title="Totals of regions and the coverage of answers",
        source="Ours: docs/using-tables.md",
        setting=SETTING,
        data=NO_DATA
        if folder is None
        else "County Business Patterns 2017 and districts of the Census of Agriculture 2022.",
        runs=runs,
        seed=seed,
        claims=[*(region_claims(regions) if regions else ()), coverage_claim([*coverage, *ranked])],
        tables={
            "coverage": coverage,
            "ranks": ranked,
            "slopes": slopes(runs, seed, tell),
            **({"regions": regions} if regions else {}),
        },
        pictures=(picture(regions),) if regions else (),
        shown=("coverage", "ranks", "slopes"),
    )
