"""Draw the picture of the README, docs/assets/loss.svg: python docs/assets/draw.py

What two mechanisms cost an establishment, at the same noise variance; no records are needed.
"""

from pathlib import Path
from typing import Any

import recordwise as rw
from recordwise.planning.plots import plot_losses

OUT = Path(__file__).parent / "loss.svg"
MECHANISMS = {
    "unit splitting": rw.UnitSplit(at=20, rho="0.5"),
    "fat-tailed noise": rw.Polylog(power=2, rate=1, offset=3, variance=400),
}
EXAMPLES = {"corner shop": 4, "restaurant": 20, "factory": 400, "giant": 20_000}
TITLE = "The same error in every table, two ways to pay for it"


def picture() -> Any:
    """The two policies, and where four establishments lie on the slower one."""
    figure = plot_losses(MECHANISMS, "emp", largest=1e5, most=1e6, title=TITLE)
    axes = figure.axes[0]
    axes.set(xlabel="employees of the establishment", ylabel="privacy loss ρ of the establishment")
    policy = MECHANISMS["fat-tailed noise"].policy("emp")
    for name, employees in EXAMPLES.items():
        loss = float(policy.loss({"emp": employees}))
        axes.plot([employees], [loss], marker="o", color="#333333", markersize=5, linestyle="none")
        place = {"xytext": (-4, 8), "ha": "right"} if employees < 100 else {"xytext": (4, -15), "ha": "left"}
        axes.annotate(name, (employees, loss), textcoords="offset points", fontsize=10, **place)
    axes.set_xlim(left=0.4)
    return figure


def main() -> None:
    """Write the picture, with words that stay words."""
    import matplotlib

    matplotlib.rcParams |= {"svg.hashsalt": "recordwise", "svg.fonttype": "none"}
    picture().savefig(OUT, metadata={"Date": None})


if __name__ == "__main__":
    main()
