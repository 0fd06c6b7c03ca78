"""The schemes of figures 3 to 5 and how a total budget is divided among the tables."""

from fractions import Fraction

import recordwise as rw
from experiments.establishments import MEASURES
from experiments.establishments_tables import ATTRIBUTES, DIGITS

TOP_CODING = {
    "Conservative": {"emp": 1_000, "payann": 100_000, "payqtr1": 25_000},
    "Moderate": {"emp": 300, "payann": 10_000, "payqtr1": 2_500},
    "Aggressive": {"emp": 100, "payann": 1_000, "payqtr1": 250},
}
"""Bounds at which every value is cut under zCDP; payroll in $1,000. Table 7."""
SPLITTING = {
    "Conservative": {"emp": 100, "payann": 10_000, "payqtr1": 2_500},
    "Moderate": {"emp": 5, "payann": 500, "payqtr1": 125},
    "Median": {"emp": 2, "payann": 104, "payqtr1": 24},
}
"""Thresholds at which records are split. Table 8."""
BUDGETS = (1, 10)
"""Totals for a record of one piece. 1 is that of the paper's Figure 4; 10 is ours."""
DIVISION = (
    "The total budget is divided equally among the 20 tables (the four attributes of Table 6 at five NAICS levels). The division "
    "is ours."
)


def share(budget: int) -> Fraction:
    """What one table may cost a record of one piece."""
    return Fraction(budget, len(ATTRIBUTES) * len(DIGITS))


def split_policy(scheme: str, budget: int, *, tight: bool) -> rw.Policy:
    """What an establishment pays for all tables: the paper's, by the pieces of joint splitting, or the tight one.

    The counts of establishments are taken before splitting and cost their share whatever the size.
    """
    part, thresholds = share(budget), SPLITTING[scheme]
    counts = rw.Gaussian(rho=part).policy_of_count() * len(DIGITS)
    sums = (rw.UnitSplit(at=thresholds, rho=part).policy(name, tight=tight) for name in MEASURES)
    return sum((each * len(DIGITS) for each in sums), counts)
