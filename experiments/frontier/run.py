"""The frontier of the county release of some states, or of the nation, on records made from public tables."""

import tempfile
from pathlib import Path

import recordwise as rw
from experiments.county_release import FILES, counties, write_inputs
from experiments.frame import Claim, Picture, Reproduction, Tell, data_folder, data_note
from recordwise.planning import frontier
from recordwise.planning.plots import plot_frontier
from recordwise.synthetic import establishments, public_keys

NATION = 51
RUNS, STEPS = NATION, 2
"""The number of states; 51 or more stand for the nation."""
FIRST = ("10", "44", "06", "48")
GENERATED = 50_000
CANDIDATES = {
    "Gaussian": rw.Gaussian(sigma=1),
    "square root": rw.RootTransform(degree=2, offset=100, sigma=1),
    "logarithm": rw.LogTransform(offset=100, sigma=1),
}
SETTING = (
    "Establishments, employment and two payrolls by nation, state and county and by total, sector and three-digit industry; a cell "
    "is reliable if its standard error is at most 16.5 % of its value.",
    "Plans are those recommended for the reliability of half and of nine tenths of the cells, with more and less noise, ranked by "
    "the median loss. The setting is ours; --runs is the number of states, and 51 or more stand for the nation.",
)


def states(data: Path, runs: int) -> tuple[str, ...]:
    """The codes of so many states; none for all."""
    listed = sorted({*counties(data)["state"].to_pylist()} - {*FIRST})
    return () if runs >= NATION else (*FIRST, *listed)[:runs]


def of_counties(data: Path, runs: int) -> rw.planning.Frontier:
    """The frontier of the plan of the county release."""
    with tempfile.TemporaryDirectory() as folder:
        file = rw.load_plan(write_inputs(Path(folder), data, states(data, runs)))
        with rw.Session.from_plan(file, data="public") as session:
            return frontier(session, file, candidates=CANDIDATES, data="public")


def of_generated() -> rw.planning.Frontier:
    """The same for generated establishments by state, where the public files are missing."""
    query = (
        rw.query()
        .group_by(rw.prefix("county", 2))
        .levels(rw.prefix("naics", [2, 3]), share=["0.4", "0.6"], keys=rw.Keys.of(public_keys()))
        .count(rw.Gaussian(rho="0.5"), alias="est")
        .sum("emp", rw.UnitSplit(at=20, rho="0.5"), alias="emp")
    )
    columns = {"county": "text", "naics": "text"}
    roles = {"unit": "estab_id", "measures": {"emp": 1}, "columns": columns, "max_outside": "accept"}
    with rw.Session(establishments(GENERATED), tuned_on="synthetic", **roles) as session:
        return frontier(session, query, candidates=CANDIDATES, data="synthetic")


def claims(found: rw.planning.Frontier) -> list[Claim]:
    """What a decision maker is told."""
    today = found.today
    assert today is not None
    loss, share = today.loss("median"), today.reliable.share
    better, cheaper = found.at_loss(loss), found.at_share(share)
    missed = "the plan is as good as the best that was found"
    return [
        Claim(
            statement="At the same median loss more cells can be reliable than in the plan as it stands (ours)",
            paper="ours, not from a paper",
            ours=f"{better:.1%} instead of {share:.1%}",
            agrees=better > share,
            why="" if better > share else missed,
        ),
        Claim(
            statement="The same share of reliable cells can be had at half of the median loss or less (ours)",
            paper="ours, not from a paper",
            ours=f"{cheaper:.3g} instead of {loss:.3g}",
            agrees=cheaper <= loss / 2,
            why="" if cheaper <= loss / 2 else missed,
        ),
    ]


def reproduce(*, runs: int, seed: int, tell: Tell) -> Reproduction:
    """The frontier, as a table and a figure."""
    data = data_folder(*FILES)
    tell("making plans and measuring them")
    found = of_generated() if data is None else of_counties(data, runs)
    tell("drawing")
    headers, rows = found.rows()
    where = "the nation" if runs >= NATION else f"{runs} states"
    alt = "The share of reliable cells rises with the median loss; a dot marks the plan as it stands."
    return Reproduction(
        name="frontier",
        title=f"The county release of {where}: what accuracy costs",
        source="ours, of no paper",
        setting=SETTING,
        data=data_note(f"Records made from public County Business Patterns tables of 2017, of {where}.", *FILES),
        runs=runs,
        seed=seed,
        claims=claims(found),
        tables={"frontier": [dict(zip(headers, row)) for row in rows]},
        pictures=[
            Picture(
                name="frontier",
                figure=plot_frontier(found, title="The county release: what accuracy costs"),
                caption=found.summary(),
                alt=alt,
            )
        ],
        shown=("frontier",),
    )
