"""Five years by one plan with a parameter: the ledger of the series, the published levels, and the changes between them."""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import recordwise as rw
from experiments.frame import COLORS, Claim, Picture, Reproduction, Tell, new_figure, tidy
from experiments.years import carried
from experiments.years.panel import COUNTIES, first_year, next_year, table_of
from recordwise.policy import history_losses

RUNS, FEWEST = 20_000, 1_000
"""Establishments in the first year, and the fewest that fill the counties."""
YEARS = tuple(range(2022, 2027))
STEPS = len(YEARS) + 1 + 2 * len(carried.TEN_YEARS)
LEVEL = 0.95
FALSE_ALARM = 1e-6
HISTORIES = 200
PLAN = f"""\
dataset = "generated establishments ${{year}}"
source = "estabs_${{year}}.parquet"
ledger = "years.ledger"
tuned_on = "synthetic"

[series]
name = "generated establishments"
period = "${{year}}"

[schema]
unit = "id"
measures.emp = 1
columns.county = "text"

[[budget]]
rho = 1

[[budget]]
rho = 1
at = {{ emp = 50 }}

[keys.counties]
rows = {{ county = [{", ".join(f'"{code}"' for code in COUNTIES)}] }}

[[queries]]
name = "counties"
group_by = ["county"]
keys = "counties"
count = {{ kind = "Gaussian", rho = 0.05, as = "n" }}
sum.emp = {{ kind = "UnitSplit", at = 50, rho = 0.1, as = "emp" }}
"""
SIZED = f"""
[keys.sized]
rows = {{ county = [{", ".join(f'"{code}"' for code in COUNTIES)}] }}
size = {{ release = "released_${{before}}", column = "emp" }}

[[queries]]
name = "sized"
group_by = ["county"]
keys = "sized"
sum.emp = {{ kind = "Sized", floor = 5000, mechanism = {{ kind = "Gaussian", sigma = 0.02 }}, as = "emp_sized" }}
"""
"""What the plan also publishes from its second year on: noise of 2 % of what was published the year before."""
SETTING = (
    "Every year 9 % of the establishments enter, 8 % leave and 1 % move to another county; log employment grows with sd .25, with "
    "heavier tails below 20 employees. 60 counties of very different sizes.",
    "One plan with the parameter year: counts with rho .05, employment split at 50 with rho .1, every year; drawn from the secure "
    "source, so that numbers differ from run to run.",
    "From the second year on employment is also published with noise of 2 % of the employment published the year before, or of "
    "5,000 where that is more: the sizes are those of the release of the year before.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """What was published and what is true."""

    tables: Mapping[int, pa.Table]
    releases: Mapping[int, rw.Release]
    policies: Mapping[str, rw.Policy]


def published(establishments: int, seed: int, tell: Tell, folder: Path) -> Series:
    """Five releases of one plan, into one ledger."""
    chance = np.random.default_rng(seed)
    (folder / "first.toml").write_text(PLAN)
    (folder / "plan.toml").write_text(PLAN + SIZED)
    units, tables, releases = first_year(establishments, chance), {}, {}
    for year in YEARS:
        tell(f"year {year}")
        tables[year] = table_of(units)
        pq.write_table(tables[year], folder / f"estabs_{year}.parquet")
        first = year == YEARS[0]
        parameters = {"year": year} | ({} if first else {"before": year - 1})
        file = rw.load_plan(folder / ("first.toml" if first else "plan.toml"), parameters=parameters)
        with rw.Session.from_plan(file) as session:
            releases[year] = session.run(*file.plan.queries, refuse_repeat=True)
        releases[year].save(folder / f"released_{year}")
        units = next_year(units, chance)
    policies = {str(year): release.policy for year, release in releases.items()}
    return Series(tables=tables, releases=releases, policies=policies)


def losses_by_unit(series: Series) -> dict[int, Any]:
    """The loss of every unit in every year, 0 where it has no record; units by their ids."""
    most = max(int(table.column("id").to_numpy().max()) for table in series.tables.values()) + 1
    found = {}
    for year, table in series.tables.items():
        losses = np.zeros(most)
        losses[table.column("id").to_numpy()] = series.policies[str(year)].loss(record_of(table))
        found[year] = losses
    return found


def record_of(table: pa.Table) -> dict[str, Any]:
    """What losses depend on."""
    county = table.column("county").to_numpy(zero_copy_only=False).astype(str)
    return {"emp": table.column("emp").to_numpy(), "county": county}


def sized_rows(series: Series) -> list[dict[str, object]]:
    """One noise for all counties beside noise sized by the year before: losses of the records and errors of the counties."""
    rows: list[dict[str, object]] = []
    for year in YEARS[1:]:
        release, table = series.releases[year], series.tables[year]
        exact, record = truth_of(table, "emp"), record_of(table)
        for name, published in (("emp", release["counties"]), ("emp_sized", release["sized"])):
            (part,) = (each for each in release.parts if each.statistic == name)
            losses = part.policy.loss(record)
            error = np.array(published.column(f"{name}_sd").to_pylist()) / np.maximum(exact, 1)
            shown = [*np.quantile(losses, (0.5, 0.99)), losses.max(), *np.quantile(error, (0.5, 0.9))]
            names = ("median_loss", "p99_loss", "largest_loss", "median_sd_share", "p90_sd_share")
            rows.append({"year": year, "variable": name} | {key: float(f"{x:.3g}") for key, x in zip(names, shown)})
    return rows


def loss_rows(losses: Mapping[int, Any]) -> list[dict[str, object]]:
    """Losses of the year's records, and of all units so far."""
    rows: list[dict[str, object]] = []
    total = np.zeros_like(next(iter(losses.values())))
    for year, own in losses.items():
        total = total + own
        here, ever = own[own > 0], total[total > 0]
        quantiles = [
            float(f"{value:.4g}") for part in (here, ever) for value in (*np.quantile(part, (0.5, 0.99)), part.max())
        ]
        names = ("median", "p99", "largest", "median_so_far", "p99_so_far", "largest_so_far")
        rows.append({"year": year, "records": len(here), **dict(zip(names, quantiles))})
    return rows


def truth_of(table: pa.Table, name: str) -> Any:
    """The exact numbers of every county."""
    places = np.searchsorted(COUNTIES, table.column("county").to_numpy(zero_copy_only=False).astype(str))
    weights = None if name == "n" else table.column("emp").to_numpy().astype(float)
    return np.bincount(places, weights=weights, minlength=len(COUNTIES))


def error_rows(series: Series) -> tuple[list[dict[str, object]], dict[str, list[int]]]:
    """Errors of levels and of changes, and how many intervals hold: hits and tries by kind."""
    rows: list[dict[str, object]] = []
    held: dict[str, list[int]] = {"level": [0, 0], "change": [0, 0], "percent": [0, 0]}
    for year, release in series.releases.items():
        now = release["counties"].to_pydict()
        earlier = series.releases.get(year - 1)
        changes = None if earlier is None else release.change(earlier)["counties"].to_pydict()
        for name in ("n", "emp"):
            exact = truth_of(series.tables[year], name)
            _count(held["level"], now[f"{name}_low"], now[f"{name}_high"], exact)
            row: dict[str, object] = {
                "year": year,
                "variable": name,
                "level_error": _median(now[name], exact, np.maximum(exact, 1)),
            }
            row |= {"change_error": "", "percent_points_error": ""}
            if changes is not None:
                before = truth_of(series.tables[year - 1], name)
                # A percentage is stated given that there was something before; NaN is no try.
                moved = exact - before
                share = np.where(before > 0, 100 * (exact / np.maximum(before, 1) - 1), np.nan)
                _count(held["change"], changes[f"{name}_change_low"], changes[f"{name}_change_high"], moved)
                _count(held["percent"], changes[f"{name}_percent_low"], changes[f"{name}_percent_high"], share)
                row["change_error"] = _median(changes[f"{name}_change"], moved, np.ones_like(before))
                row["percent_points_error"] = _median(changes[f"{name}_percent"], share, np.ones_like(before))
            rows.append(row)
    return rows, held


def _median(found: Sequence[Any], exact: Any, unit: Any) -> float:
    return float(f"{np.nanmedian(np.abs(np.array(found, float) - exact) / unit):.4g}")


def _count(held: list[int], low: Sequence[Any], high: Sequence[Any], exact: Any) -> None:
    ends = np.array(low, float), np.array(high, float)
    held[0] += int(np.sum((ends[0] <= exact) & (exact <= ends[1])))
    held[1] += int(np.sum(~np.isnan(np.asarray(exact, float))))


def claims(series: Series, losses: Mapping[int, Any], held: Mapping[str, list[int]]) -> list[Claim]:
    from scipy import stats

    found = [_adds_up(series, losses)]
    for kind, (hits, tries) in held.items():
        chance = float(stats.binom.cdf(hits, tries, LEVEL))
        found.append(
            Claim(
                statement=f"Intervals of every {kind} hold the exact number in at least {LEVEL:.0%} of the cells",
                paper="our promise",
                ours=f"{hits} of {tries} ({hits / tries:.3f})",
                agrees=chance >= FALSE_ALARM,
                why="" if chance >= FALSE_ALARM else f"so few would have the chance {chance:.1g}",
            )
        )
    return found


def _adds_up(series: Series, losses: Mapping[int, Any]) -> Claim:
    """The losses of histories from the ledger, unit by unit, beside those of the tables of all units."""
    total = sum(losses.values())
    ids = np.argsort(total)[-HISTORIES:]
    histories: dict[int, dict[str, dict[str, Any]]] = {int(each): {} for each in ids}
    for year, table in series.tables.items():
        columns = [table.column(name).to_pylist() for name in ("emp", "county")]
        known = dict(zip(table.column("id").to_pylist(), zip(*columns)))
        for each, history in histories.items():
            if each in known:
                history[str(year)] = dict(zip(("emp", "county"), known[each]))
    off = max(
        abs(sum(history_losses(series.policies, history).values()) / total[each] - 1)
        for each, history in histories.items()
    )
    return Claim(
        statement="The loss of a history is the sum of the losses of its years",
        paper="our promise (T-SEQ)",
        ours=f"{len(histories)} histories with the largest losses: off by at most {off:.1g}",
        agrees=bool(off < 1e-12),
        why="" if off < 1e-12 else "the ledger and the records disagree",
    )


def picture(series: Series) -> Picture:
    """One county over the years, with its intervals and the exact numbers."""
    place = int(np.argsort(truth_of(series.tables[YEARS[0]], "emp"))[len(COUNTIES) // 2])
    rows = [series.releases[year]["counties"].to_pylist()[place] for year in YEARS]
    exact = [truth_of(series.tables[year], "emp")[place] for year in YEARS]
    figure, ((axes,),) = new_figure()
    middle = [(row["emp_low"] + row["emp_high"]) / 2 for row in rows]
    half = [(row["emp_high"] - row["emp_low"]) / 2 for row in rows]
    axes.errorbar(YEARS, middle, yerr=half, fmt="none", capsize=4, color=COLORS[0], label="95 % interval")
    axes.plot(YEARS, [row["emp"] for row in rows], "o", color=COLORS[0], label="published")
    axes.plot(YEARS, exact, "x", color=COLORS[1], label="exact")
    axes.set_xticks(YEARS)
    axes.legend(frameon=False)
    tidy(axes, title=f"Employment of county {COUNTIES[place]}", xlabel="year", ylabel="employees")
    caption = "The county of median size: what was published every year, with its interval, and the exact number."
    return Picture(name="county", figure=figure, caption=caption, alt=caption)


def reproduce(*, runs: int, seed: int, tell: Tell) -> Reproduction:
    runs = max(runs, FEWEST)
    with tempfile.TemporaryDirectory(prefix="recordwise-years-") as folder:
        series = published(runs, seed, tell, Path(folder))
        decade = carried.ten_years(runs, seed, tell, Path(folder))
    tell("losses and errors")
    losses = losses_by_unit(series)
    errors, held = error_rows(series)
    kinds, known = carried.rows(decade)
    return Reproduction(
        name="years",
        title="Five years of establishments from one plan, and ten with carried noise",
        source="Ours: docs/production.md",
        setting=(*SETTING, carried.SETTING),
        data="No data: generated establishments.",
        runs=runs,
        seed=seed,
        claims=[*claims(series, losses, held), *carried.claims(known)],
        tables={"losses": loss_rows(losses), "errors": errors, "sized": sized_rows(series), "carried": kinds},
        pictures=(picture(series), carried.picture(kinds)),
        shown=("losses", "errors", "sized", "carried"),
    )
