"""The frontier of the county release: ``python -m experiments.county_frontier OUT [--states 10 44]`` writes its table and figure.

Reads the public files as ``experiments.county_release`` does and makes its records anew.
"""

import argparse
import csv
import tempfile
import time
from pathlib import Path

import recordwise as rw
from experiments.county_release import FILES, write_inputs
from experiments.frame import data_folder
from recordwise.planning import Frontier, frontier
from recordwise.planning.frontier_plot import plot_frontier

CANDIDATES = {
    "Gaussian": rw.Gaussian(sigma=1),
    "square root": rw.RootTransform(degree=2, offset=100, sigma=1),
    "logarithm": rw.LogTransform(offset=100, sigma=1),
}


def found(plan: Path) -> Frontier:
    """The frontier of a plan file on records made from public tables."""
    file = rw.load_plan(plan)
    with rw.Session.from_plan(file, data="public") as session:
        return frontier(session, file, rank_by="median", candidates=CANDIDATES, data="public")


def main() -> None:
    """Write frontier.svg and frontier.csv."""
    import matplotlib

    matplotlib.rcParams |= {"svg.hashsalt": "recordwise", "svg.fonttype": "none"}
    parser = argparse.ArgumentParser(description="The frontier of the county release.")
    parser.add_argument("out", type=Path)
    parser.add_argument("--states", nargs="*", default=())
    given = parser.parse_args()
    data = data_folder(*FILES)
    if data is None:
        raise SystemExit("The public files were not found: name their folder in RECORDWISE_DATA.")
    given.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        plan = write_inputs(Path(folder), data, given.states)
        started = time.perf_counter()
        shown = found(plan)
        print(f"{time.perf_counter() - started:.0f} s")
    headers, rows = shown.rows()
    with (given.out / "frontier.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([headers, *rows])
    plot_frontier(shown, title="The county release: what accuracy costs").savefig(
        given.out / "frontier.svg", metadata={"Date": None}
    )
    print(shown.words())


if __name__ == "__main__":
    main()
