"""Loss and error against size, for all mechanisms at variance 2."""

from dataclasses import asdict

from experiments.frame import Reproduction, Tell
from experiments.slow_mechanisms import SOURCE, Entry
from experiments.slow_table.catalogue import catalogue
from experiments.slow_table.claims import claims, losses
from experiments.slow_table.measuring import measured
from experiments.slow_table.pictures import pictures
from experiments.slow_table.reference import RECORDS

RUNS = 100_000
STEPS = 15
SETTING = (
    "Every mechanism at noise variance 2, transformations at a total of 2, as on the slides; offsets and rates are ours and are "
    "named. The slides have no table of losses: this one is ours.",
    "Losses are the policies' own, for a measure of step 1. Errors are by formula, and from draws by the library's own samplers "
    "with a seeded generator.",
)


def reproduce(*, runs: int, seed: int, tell: Tell) -> Reproduction:
    found = {each.key: each for each in catalogue()}
    lines = measured(runs=runs, seed=seed, tell=tell)
    tell("drawing the picture")
    return Reproduction(
        name="slow-table",
        title="Loss against record size, error against total",
        source=SOURCE,
        setting=SETTING,
        data="No data: a policy and an error are functions of a record's value and of a total.",
        runs=runs,
        seed=seed,
        claims=claims(found, lines),
        tables={"losses": [loss_row(each) for each in found.values()], "errors": [asdict(line) for line in lines]},
        pictures=pictures(found, lines),
        shown=("losses", "errors"),
    )


def loss_row(each: Entry) -> dict[str, object]:
    records = (*RECORDS, 100_000, 1_000_000)
    return {"mechanism": each.label, "order": each.order, "kind": each.kind} | {
        f"x={record}": loss for record, loss in zip(records, losses(each, records))
    }
