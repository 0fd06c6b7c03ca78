"""Distribution functions of the least losses."""

from collections.abc import Sequence
from typing import Any

from experiments.establishments_schemes import SPLITTING
from experiments.frame import COLOURS, DASHES, new_figure, tidy
from experiments.split_fig4.fitness import FULL, GOALS

Row = dict[str, Any]


def figure(curves: Sequence[Row]) -> Any:
    drawn, axes = new_figure(1, 3, size=(18.0, 6.2), sharey=True)
    panels = (
        (
            "By goal (tight policy)",
            [({"goal": goal, "policy": FULL, "part": "all"}, f"{float(goal):.0%} error") for goal in GOALS],
        ),
        (
            "By policy (10 % error)",
            [({"goal": "0.10", "policy": FULL, "part": "all"}, "tight: x²/(2σ²)")]
            + [
                ({"goal": "0.10", "policy": name, "part": "all"}, f"pieces, {name} split")
                for name in reversed(SPLITTING)
            ],
        ),
        (
            "By attribute (10 % error, tight policy)",
            [
                ({"goal": "0.10", "policy": FULL, "part": part}, label)
                for part, label in (
                    ("counts", "ESTAB and FIRM"),
                    ("emp", "EMP"),
                    ("payann", "PAYANN"),
                    ("payqtr1", "PAYQTR1"),
                )
            ],
        ),
    )
    for axis, (title, lines) in zip(axes[0], panels):
        for (wanted, label), colour, dash in zip(lines, COLOURS, DASHES):
            chosen = [row for row in curves if all(row[name] == value for name, value in wanted.items())]
            axis.plot(
                [row["loss"] for row in chosen],
                [row["share_at_most"] for row in chosen],
                color=colour,
                linestyle=dash,
                linewidth=2.4,
                label=label,
            )
        axis.axvline(1.0, color="#777777", linewidth=1.2, linestyle=":", zorder=1)
        axis.set(xscale="log", xlim=(1e-3, 1e7), ylim=(0, 1.02))
        tidy(axis, title=title, xlabel="privacy loss ρ of the establishment", ylabel="")
        axis.legend(framealpha=0.95, edgecolor="none", fontsize=12, loc="lower right")
    axes[0][0].set_ylabel("share of establishments with at most this loss", fontsize=12)
    return drawn
