"""Distribution functions of the least losses."""

from collections.abc import Sequence
from typing import Any

from experiments.establishments_schemes import SPLITTING
from experiments.frame import COLORS, DASHES, Picture, new_figure, tidy
from experiments.split_fig4.fitness import FULL, GOALS

Row = dict[str, Any]


def pictures(curves: Sequence[Row]) -> tuple[Picture, ...]:
    return (
        Picture(
            name="split-fig4",
            figure=figure(curves),
            caption="How the least losses are distributed over establishments, for relative error goals on 95 % of "
            "each table.",
            alt="Distribution functions of losses on a log scale: one curve for each goal, for each policy, for each "
            "attribute. Stricter goals move the curve to the right by a factor of four for each halving.",
        ),
    )


def panels() -> dict[str, list[tuple[dict[str, str], str]]]:
    """By title the lines of a panel: which curve, and its label."""
    by_goal = [(curve(goal=goal), f"{float(goal):.0%} error") for goal in GOALS]
    by_policy = [(curve(), "tight: x²/(2σ²)")]
    by_policy += [(curve(policy=name), f"pieces, {name} split") for name in reversed(SPLITTING)]
    parts = {"counts": "ESTAB", "emp": "EMP", "payann": "PAYANN", "payqtr1": "PAYQTR1"}
    return {
        "By goal (tight policy)": by_goal,
        "By policy (10 % error)": by_policy,
        "By attribute (10 % error, tight policy)": [(curve(part=part), label) for part, label in parts.items()],
    }


def curve(goal: str = "0.10", policy: str = FULL, part: str = "all") -> dict[str, str]:
    return {"goal": goal, "policy": policy, "part": part}


def figure(curves: Sequence[Row]) -> Any:
    drawn, axes = new_figure(1, 3, size=(18.0, 6.2), sharey=True)
    for axis, (title, lines) in zip(axes[0], panels().items()):
        for (wanted, label), color, dash in zip(lines, COLORS, DASHES):
            chosen = [row for row in curves if all(row[name] == value for name, value in wanted.items())]
            x, y = ([row[name] for row in chosen] for name in ("loss", "share_at_most"))
            axis.plot(x, y, color=color, linestyle=dash, linewidth=2.4, label=label)
        axis.axvline(1.0, color="#777777", linewidth=1.2, linestyle=":", zorder=1)
        axis.set(xscale="log", xlim=(1e-3, 1e7), ylim=(0, 1.02))
        tidy(axis, title=title, xlabel="privacy loss ρ of the establishment", ylabel="")
        axis.legend(framealpha=0.95, edgecolor="none", fontsize=12, loc="lower right")
    axes[0][0].set_ylabel("share of establishments with at most this loss", fontsize=12)
    return drawn
