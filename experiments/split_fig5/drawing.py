"""Distribution functions of losses over establishments and over firms."""

from collections.abc import Sequence
from typing import Any

from experiments.frame import COLOURS, DASHES, new_figure, tidy

Row = dict[str, Any]
LINES = {
    "establishment": ("policy, pieces", "policy, tight", "realised"),
    "firm": ("pieces, simple", "pieces, advanced", "pieces, tight", "tight, tight", "realised"),
    "chain": ("pieces, simple", "pieces, advanced", "pieces, tight", "tight, tight", "realised"),
}
TITLES = {"establishment": "establishments", "firm": "firms", "chain": "firms with several establishments"}
LABELS = {
    "policy, pieces": "policy, by pieces",
    "policy, tight": "policy, tight",
    "realised": "realised",
    "pieces, simple": "pieces, simple bound (Lemma 4)",
    "pieces, advanced": "pieces, advanced bound (Lemma 5)",
    "pieces, tight": "pieces, tight bound (sum of roots)",
    "tight, tight": "tight policy, tight bound",
}


def figure(curves: Sequence[Row], schemes: Sequence[str]) -> Any:
    drawn, axes = new_figure(len(LINES), len(schemes), size=(17.0, 13.5), sharex=True, sharey=True)
    for line, (unit, kinds) in zip(axes, LINES.items()):
        for axis, scheme in zip(line, schemes):
            for kind in kinds:
                place = list(LABELS).index(kind)
                chosen = [
                    row for row in curves if row["unit"] == unit and row["scheme"] == scheme and row["kind"] == kind
                ]
                axis.plot(
                    [row["loss"] for row in chosen],
                    [row["share_at_most"] for row in chosen],
                    color=COLOURS[place],
                    linestyle=DASHES[place],
                    linewidth=2.3,
                    label=LABELS[kind],
                )
            axis.axvline(1.0, color="#777777", linewidth=1.2, linestyle=":", zorder=1)
            axis.set(xscale="log", xlim=(1e-4, 1e9), ylim=(0, 1.02))
            tidy(axis, title=f"{scheme}: {TITLES[unit]}", xlabel="", ylabel="")
        line[0].set_ylabel("share with at most this loss", fontsize=12)
        if unit != "chain":  # The third row has the lines of the second.
            line[-1].legend(framealpha=0.95, edgecolor="none", fontsize=10.5, loc="lower right")
    for axis in axes[-1]:
        axis.set_xlabel("privacy loss ρ at total budget 1", fontsize=12)
    return drawn
