"""Box plots of relative errors by attribute, budget and NAICS level."""

from collections.abc import Sequence
from typing import Any

from experiments.establishments_schemes import BUDGETS
from experiments.establishments_tables import DIGITS
from experiments.frame import COLORS, Picture, new_figure, tidy

Row = dict[str, Any]
FACES = {
    ("top-coding", "Conservative"): "#FBE3D6",
    ("top-coding", "Moderate"): "#F0A26F",
    ("top-coding", "Aggressive"): "#D55E00",
    ("splitting", "Conservative"): "#D3E6F3",
    ("splitting", "Moderate"): "#6FB0DA",
    ("splitting", "Median"): "#0072B2",
}
"""Orange is top-coding, blue is splitting; darker is less noise."""
COUNT_FACES = {"estab": COLORS[2]}
NAMES = {"emp": "EMP", "payann": "PAYANN", "payqtr1": "PAYQTR1"}
FLOOR, CEILING = 1e-5, 30.0


def pictures(rows: Sequence[Row]) -> tuple[Picture, ...]:
    return (
        Picture(
            name="split-fig3",
            figure=figure(rows),
            caption="Relative error of every table. Orange: top-coding under zCDP; blue: splitting, where records of "
            "more than one piece pay more. Lines at 5 % and 20 %.",
            alt="Box plots of relative errors on a log scale by attribute, budget and NAICS level. Splitting at "
            "moderate or median thresholds lies one to three orders of magnitude below top-coding.",
        ),
    )


def figure(rows: Sequence[Row]) -> Any:
    drawn, axes = new_figure(len(BUDGETS), 4, size=(20.0, 10.0), sharey=True)
    for line, budget in zip(axes, BUDGETS):
        here = [row for row in rows if row["budget"] == budget]
        groups = [(row["attribute"], COUNT_FACES[row["attribute"]], row) for row in here if row["family"] == "counts"]
        boxes(line[0], groups, title=f"ESTAB, budget {budget}")
        for axis, (attribute, name) in zip(line[1:], NAMES.items()):
            sums = [row for row in here if row["attribute"] == attribute]
            groups = [
                (key, face, row) for key, face in FACES.items() for row in sums if (row["family"], row["scheme"]) == key
            ]
            boxes(axis, groups, title=f"{name}, budget {budget}")
        line[0].set_ylabel("absolute relative error", fontsize=13)
    legends(drawn, axes)
    return drawn


def boxes(axis: Any, groups: Sequence[tuple[Any, str, Row]], *, title: str) -> None:
    """One cluster for each NAICS level, one box for each scheme: middle half, median, 5 % and 95 %."""
    keys = list(dict.fromkeys(key for key, _, _ in groups))
    width = 0.84 / len(keys)
    for key, face, row in groups:
        at = DIGITS.index(row["digits"]) - 0.42 + width * (keys.index(key) + 0.5)
        stats = {"whislo": "are_05", "q1": "are_25", "med": "are_50", "q3": "are_75", "whishi": "are_95"}
        made = axis.bxp(
            [{name: max(row[column], FLOOR) for name, column in stats.items()}],
            positions=[at],
            widths=width * 0.86,
            showfliers=False,
            patch_artist=True,
            manage_ticks=False,
            medianprops={"color": "black", "linewidth": 1.6},
        )
        made["boxes"][0].set(facecolor=face, linewidth=0.8)
    for level, dash in ((0.05, (0, (5, 2))), (0.20, (0, (1.5, 1.5)))):
        axis.axhline(level, color="#444444", linewidth=1.4, linestyle=dash, zorder=1.5)
    axis.set(yscale="log", ylim=(1e-4, CEILING), xticks=range(len(DIGITS)), xticklabels=DIGITS)
    tidy(axis, title=title, xlabel="NAICS digits", ylabel="")
    axis.grid(axis="x", visible=False)


def legends(drawn: Any, axes: Any) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    edge = {"edgecolor": "black", "linewidth": 0.8}
    schemes = [Patch(facecolor=face, label=f"{family}: {scheme}", **edge) for (family, scheme), face in FACES.items()]
    lines = [
        Line2D([], [], color="#444444", linewidth=1.4, linestyle=dash, label=label)
        for label, dash in (("5 % error", (0, (5, 2))), ("20 % error", (0, (1.5, 1.5))))
    ]
    drawn.legend(handles=[*schemes, *lines], loc="outside lower center", ncols=8, frameon=False, fontsize=12)
    counts = [Patch(facecolor=face, label=name.upper(), **edge) for name, face in COUNT_FACES.items()]
    axes[0][0].legend(handles=counts, frameon=False, fontsize=12, loc="upper left")
