"""Figure 3 of [S] beside ours."""

from experiments import establishments
from experiments.establishments_schemes import DIVISION
from experiments.establishments_tables import LEAST, tables
from experiments.frame import Reproduction, Tell, data_note
from experiments.split_fig3.claims import claims
from experiments.split_fig3.drawing import pictures
from experiments.split_fig3.measuring import error_rows
from recordwise.noise import Seeded

RUNS = 20
STEPS = 4
SETTING = (
    f"Queries: county x industry at NAICS levels 2 to 6, cells with at least {LEAST} establishments; ESTAB, EMP, "
    "PAYANN, PAYQTR1 as in Table 6. The text also speaks of FIRM once; the table does not.",
    "Top-coding cuts every value at its bound and adds Gaussian noise under zCDP; splitting adds Gaussian noise for its "
    "threshold to the exact total. Bounds are those of Table 7, thresholds those of Table 8.",
    DIVISION,
    "Boxes hold the middle half of all queries and runs, whiskers 5 % and 95 %. Queries with a total of zero have no "
    "relative error.",
)


def beside_generator(records: establishments.Records) -> list[dict[str, object]]:
    """Percentiles of the paper, of the records used, and of the generator alone."""
    generated = establishments.generated_records().percentiles()
    return [{**row, "generator": other["ours"]} for row, other in zip(records.percentiles(), generated)]


def reproduce(*, runs: int, seed: int, tell: Tell) -> Reproduction:
    tell("establishments")
    records = establishments.records()
    percentiles = beside_generator(records)
    tell("exact tables")
    made = tables(records)
    tell("noise")
    rows = error_rows(made, runs, Seeded(seed))
    tell("figure")
    return Reproduction(
        name="split-fig3",
        title="Tables of establishments: top-coding against splitting",
        source="[S] Seeman, Sexton, Pujol, Machanavajjhala, section 6.4, Figure 3 and Tables 6 to 8",
        setting=SETTING,
        data=data_note(establishments.REAL, establishments.FILE),
        runs=runs,
        seed=seed,
        claims=claims(rows, percentiles),
        tables={"errors": rows, "percentiles": percentiles},
        shown=("percentiles",),
        pictures=pictures(rows),
        numbers={
            "establishments": len(records),
            "queries": {str(level.digits): level.queries for level in made.levels},
        },
    )
