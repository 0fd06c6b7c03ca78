"""What release.json and the files say about fitted columns: what each is, where its intervals come from, which are biased."""

from typing import Any

from recordwise.release.fit_spread import BOOTSTRAP, MOVED, RAW, FittedColumn
from recordwise.release.tables import BEST, FITTED

BIASED = "biased: fitted to be nonnegative, which raises small cells; NAME is unbiased, and so is NAME_best"
NEARLY = "nearly unbiased: the weights of the fit depend on the fitted totals"
UNCHANGED = (
    "The public keys are not declared complete and no rest is published, so coarser cells may contain records of no finer cell: "
    "the best linear estimate of every cell is its own noisy answer."
)
MEASURED = (
    "on average over the cells of a tree such intervals held in 92 to 98 of 100 at .95 and in 88 to 95 at .9 (docs/consistent.md), "
    "but in cells of one size in far fewer (docs/coverage.md)"
)

MEASURED_MOVED = (
    "when measured, such intervals held in 94 to 99 of 100 cells of every size at .95 (docs/consistent.md); where the relative "
    "error is above a half the interval is that of NAME itself, made to contain NAME_best"
)


def flags_of(name: str, *, biased: bool, best: FittedColumn) -> dict[str, str]:
    """The fitted columns of a variable that are not unbiased, and why."""
    found = {name + FITTED: BIASED.replace("NAME", name)} if biased else {}
    return found | ({name + BEST: NEARLY} if best.how in (BOOTSTRAP, MOVED) else {})


def spread_json(fit: FittedColumn, best: FittedColumn) -> dict[str, Any]:
    """Where the intervals of a variable's fitted columns come from, and of how many draws."""
    return {"fit": _how(fit), "best": _how(best), **({"note": UNCHANGED} if best.how == RAW else {})}


def _how(column: FittedColumn) -> dict[str, Any]:
    found: dict[str, Any] = {"intervals": column.how}
    found |= {"draws": column.draws} if column.draws else {}
    told = {BOOTSTRAP: MEASURED, MOVED: MEASURED_MOVED}
    return found | ({"accuracy": told[column.how]} if column.how in told else {})


def columns_json(method: str) -> dict[str, str]:
    """A description of every kind of column that is added."""
    kind = (
        "fitted by least squares" if method == "ols" else f"fitted to be nonnegative ({method}), biased in small cells"
    )
    return {
        f"NAME{FITTED}": f"the value of NAME {kind}; finer cells add up to coarser ones",
        f"NAME{FITTED}_sd": f"its standard error: the root mean squared error of NAME{FITTED}",
        f"NAME{FITTED}_low": "the lower end of its interval",
        f"NAME{FITTED}_high": "the upper end of its interval",
        f"NAME{BEST}": "the best linear unbiased estimate from all tables of the query; it may be negative",
        f"NAME{BEST}_sd": "its standard error",
        f"NAME{BEST}_low": "the lower end of its interval",
        f"NAME{BEST}_high": "the upper end of its interval",
    }
