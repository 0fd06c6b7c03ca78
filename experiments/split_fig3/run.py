"""Figure 3 of [S] beside ours."""

from experiments import establishments
from experiments.establishments_schemes import DIVISION
from experiments.establishments_tables import LEAST, tables
from experiments.frame import Picture, Reproduction, Tell, data_note
from experiments.split_fig3.claims import claims
from experiments.split_fig3.drawing import figure
from experiments.split_fig3.measuring import error_rows
from recordwise.noise import Seeded

RUNS = 20
STEPS = 4
SETTING = (
    f"Queries: county x industry at NAICS levels 2 to 6, cells with at least {LEAST} establishments; ESTAB, FIRM, "
    "EMP, PAYANN, PAYQTR1.",
    "Top-coding cuts every value at its bound and adds Gaussian noise under zCDP; splitting adds Gaussian noise "
    "for its threshold to "
    "the exact total. Bounds and thresholds are the paper's.",
    DIVISION,
    "Boxes hold the middle half of all queries and runs, whiskers 5 % and 95 %. Queries with a total of zero "
    "have no relative error.",
)


def reproduce(*, runs: int, seed: int, tell: Tell) -> Reproduction:
    tell("establishments")
    records = establishments.records()
    percentiles = records.percentiles()
    tell("exact tables")
    made = tables(records)
    tell("noise")
    rows = error_rows(made, runs, Seeded(seed))
    tell("figure")
    return Reproduction(
        name="split-fig3",
        title="Tables of establishments: top-coding against splitting",
        source="Seeman, Sexton, Pujol, Machanavajjhala (VLDB 2024), Figure 3",
        setting=SETTING,
        data=data_note(establishments.REAL, establishments.FILE),
        runs=runs,
        seed=seed,
        claims=claims(rows, percentiles),
        tables={"errors": rows, "percentiles": percentiles},
        shown=("percentiles",),
        pictures=(
            Picture(
                name="split-fig3",
                figure=figure(rows),
                caption="Relative error of every table. Orange: top-coding under zCDP; blue: splitting, where "
                "records of more than one "
                "piece pay more. Lines at 5 % and 20 %.",
                alt="Box plots of relative errors on a log scale by attribute, budget and NAICS level. Splitting "
                "at moderate or median "
                "thresholds lies one to three orders of magnitude below top-coding.",
            ),
        ),
        numbers={
            "establishments": len(records),
            "queries": {str(level.digits): level.queries for level in made.levels},
        },
    )
