"""Distribution functions of losses over establishments and over firms."""

from collections.abc import Sequence
from typing import Any

from experiments.establishments_schemes import SPLITTING
from experiments.frame import COLORS, DASHES, Picture, new_figure, tidy

Row = dict[str, Any]
LINES = {
    "establishment": ("policy, pieces", "policy, tight", "realized"),
    "firm": ("pieces, simple", "pieces, advanced", "pieces, tight", "tight, tight", "realized"),
    "chain": ("pieces, simple", "pieces, advanced", "pieces, tight", "tight, tight", "realized"),
}
TITLES = {"establishment": "establishments", "firm": "firms", "chain": "firms with several establishments"}
LABELS = {
    "policy, pieces": "policy, by pieces",
    "policy, tight": "policy, tight",
    "realized": "realized",
    "pieces, simple": "pieces, simple bound (Lemma 4)",
    "pieces, advanced": "pieces, advanced bound (Lemma 5)",
    "pieces, tight": "pieces, tight bound (sum of roots)",
    "tight, tight": "tight policy, tight bound",
}


def pictures(curves: Sequence[Row]) -> tuple[Picture, ...]:
    return (
        Picture(
            name="split-fig5",
            figure=figure(curves),
            caption="Distribution of losses over establishments, over all firms, and over firms with several "
            "establishments, under three splitting schemes at total budget 1.",
            alt="Nine panels of distribution functions of losses on a log scale. Realized losses lie left of the "
            "tight policy and that left of the policy by pieces; for firms with several establishments the tight "
            "bound is the smallest of the three.",
        ),
    )


def figure(curves: Sequence[Row]) -> Any:
    drawn, axes = new_figure(len(LINES), len(SPLITTING), size=(17.0, 13.5), sharex=True, sharey=True)
    for line, (unit, kinds) in zip(axes, LINES.items()):
        for axis, scheme in zip(line, SPLITTING):
            here = [row for row in curves if row["unit"] == unit and row["scheme"] == scheme]
            for kind in kinds:
                draw_line(axis, [row for row in here if row["kind"] == kind], kind)
            axis.axvline(1.0, color="#777777", linewidth=1.2, linestyle=":", zorder=1)
            axis.set(xscale="log", xlim=(1e-4, 1e9), ylim=(0, 1.02))
            tidy(axis, title=f"{scheme}: {TITLES[unit]}", xlabel="", ylabel="")
        line[0].set_ylabel("share with at most this loss", fontsize=12)
        if unit != "chain":  # The third row has the lines of the second.
            line[-1].legend(framealpha=0.95, edgecolor="none", fontsize=10.5, loc="lower right")
    for axis in axes[-1]:
        axis.set_xlabel("privacy loss ρ at total budget 1", fontsize=12)
    return drawn


def draw_line(axis: Any, rows: Sequence[Row], kind: str) -> None:
    place = list(LABELS).index(kind)
    x, y = ([row[name] for row in rows] for name in ("loss", "share_at_most"))
    axis.plot(x, y, color=COLORS[place], linestyle=DASHES[place], linewidth=2.3, label=LABELS[kind])
