"""Draw the pictures of docs/mechanisms.md anew: python docs/gallery/draw.py (synthetic establishments, about a minute)."""

from pathlib import Path
from typing import Any

import recordwise as rw
from recordwise.planning import (
    Evaluation,
    Goal,
    MultiplicativeNoise,
    PercentRule,
    compare,
    evaluate,
    families,
    recommend,
)
from recordwise.planning.plots import (
    plot_cell_errors,
    plot_errors,
    plot_fitness,
    plot_loss_shares,
    plot_losses,
    plot_sweep,
)
from recordwise.synthetic import establishments, public_keys

HERE = Path(__file__).parent
ROWS = 200_000
VARIANCE, AT_TOTAL = 400, 1000


def session(rows: int) -> rw.Session:
    return rw.Session(
        establishments(rows),
        unit="estab_id",
        firm="firm_id",
        measures={"emp": 1, "payann": 1},
        columns={"county": "text", "naics": "text"},
        tuned_on="synthetic",
    )


def evaluated(opened: rw.Session, cells: rw.Query) -> Evaluation:
    """A plan that clamps and fits, beside unit splitting and two older rules."""
    split = cells.sum("emp", rw.UnitSplit(at=20, rho="0.2"), alias="emp")
    return evaluate(
        opened,
        cells.sum("emp", rw.Clamped(to=100, rho="0.5"), alias="emp"),
        metric="off_by_a_tenth",
        by="size",
        baselines={
            "unit splitting": split,
            "multiplicative noise": MultiplicativeNoise(),
            "p%-rule (rest exact)": PercentRule(),
        },
        fit=lambda release: release.consistent(draws=40),
        draws=10,
        data="synthetic",
    )


def main(folder: Path = HERE, rows: int = ROWS) -> None:
    """Draw every picture of the gallery into a folder."""
    import matplotlib

    def save(name: str, figure: Any) -> None:
        figure.savefig(folder / f"{name}.svg", metadata={"Date": None})

    # Words stay words: smaller files, and a reader can search them.
    matplotlib.rcParams |= {"svg.hashsalt": "recordwise", "svg.fonttype": "none"}
    cells = rw.query().group_by(rw.prefix("county", 2), rw.prefix("naics", 3), keys=rw.Keys.of(public_keys()))
    with session(rows) as opened:
        found = compare(
            opened,
            families(),
            measure="emp",
            query=cells,
            variance=VARIANCE,
            at_total=AT_TOTAL,
            firms=True,
            data="synthetic",
        )
        tuned = {each.name: each.mechanism for each in found.candidates}
        save("losses", plot_losses(tuned, "emp", largest=1e5, title="What a record pays, all at variance 400"))
        save(
            "errors", plot_errors(tuned, "emp", relative=True, title="Error of a total, all at variance 400 for 1,000")
        )
        save(
            "shares",
            plot_loss_shares(found.curves(), privacy_label=found.privacy_label, title="How many records lose how much"),
        )
        firms = {each.name: each.firms.rho.curve() for each in found.candidates if each.firms is not None}
        save(
            "firms",
            plot_loss_shares(
                firms, privacy_label=found.privacy_label, of="firms", title="How many firms lose how much"
            ),
        )
        errors = {each.name: each.errors for each in found.candidates}
        save("cells", plot_cell_errors(found.totals, errors, measure="emp", privacy_label=found.privacy_label))
        grid = compare(
            opened,
            measure="emp",
            query=cells,
            thresholds=[2, 5, 10, 20, 50, 100, 500],
            rhos=["0.01", "0.1", 1, 10],
            data="synthetic",
        )
        save("sweep", plot_sweep(grid.curves(), measure="emp", privacy_label=grid.privacy_label))
        goal = Goal("emp", cells, within="0.1", share="0.9", at_least=100)
        smallest = recommend(opened, goal, candidates=families(), keep_offsets=True, data="synthetic")
        title = "Losses of the smallest policies that meet a goal"
        save("fitness", plot_loss_shares(smallest.curves(), privacy_label=found.privacy_label, title=title))
        advice = recommend(opened, goal, data="synthetic")
        ranking = advice.ranking()
        quantiles = {
            "median": [each.losses.rho.quantile(0.5) for each in ranking],
            "99th percentile": [each.losses.rho.quantile(0.99) for each in ranking],
            "maximum": [each.losses.rho.maximum for each in ranking],
        }
        save("ranking", plot_fitness([each.name for each in ranking], quantiles, privacy_label=advice.privacy_label))
        save("evaluation", evaluated(opened, cells).plot())
        print(advice.summary())
        print(found.rules.sentences() if found.rules else "")


if __name__ == "__main__":
    main()
