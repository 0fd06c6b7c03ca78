"""Every erratum with its evidence; ``python -m experiments.errata NAME`` shows one."""

from dataclasses import asdict

from experiments.errata import own, slow, splitting, uncertain
from experiments.errata.evidence import Evidence, Show
from experiments.frame import Reproduction, Tell

RUNS = 1
SHOWN: tuple[Show, ...] = (*splitting.SHOWN, *slow.SHOWN, *uncertain.SHOWN, *own.SHOWN)
STEPS = len(SHOWN)
SETTING = (
    "Each line is one statement of a paper (or of our notes) that did not hold when it was implemented, with its place and a "
    "computation that shows it. 'Does not agree' means: the numbers contradict the printed statement.",
    "Statements are given in our words, from the texts themselves; of [F] the text is that of its authors' slides.",
)


def collected(tell: Tell) -> list[Evidence]:
    found = []
    for show in SHOWN:
        tell(show.__name__.replace("_", " "))
        found.append(show())
    return found


def reproduce(*, runs: int, seed: int, tell: Tell) -> Reproduction:
    found = collected(tell)
    return Reproduction(
        name="errata",
        title="Errata of the papers, with evidence",
        source="[S] Seeman et al. (2024), [F] Finley et al. (2024), [A] Abowd et al. (2021), and our own notes",
        setting=SETTING,
        data="No data: worked examples.",
        runs=runs,
        seed=seed,
        claims=[each.claim() for each in found],
        tables={"errata": [asdict(each) for each in found]},
        numbers={"borne_out": sum(each.holds for each in found), "of": len(found)},
    )
