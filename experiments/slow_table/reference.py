"""Losses at variance 2, worked out by hand and by integration from the formulas before the code existed. The slides print none."""

RECORDS = (1, 2, 10, 100, 1000, 10_000)

PRINTED = {
    "gaussian": ("0.25", "1", "25", "2500", "2.5e5", "2.5e7"),
    "identity": ("0.25", "1", "25", "2500", "2.5e5", "2.5e7"),
    "general": ("2.78", "3.94", "8.80", "27.8", "88.0", "278.3"),
    "polylog": ("1.31", "2.45", "8.32", "26.4", "55.6", "95.5"),
    "root": ("12.8", "18.1", "40.4", "127.8", "404", "1278"),
    "root_offset": ("0.789", "2.201", "14.86", "103.8", "471", "1785"),
    "log": ("1.197", "3.007", "14.33", "53.1", "118.9", "211.4"),
    "log_laplace": ("1.61", "3.03", "7.76", "15.9", "24.2", "32.6"),
    "root_laplace": ("1.05", "2.21", "7.24", "20.8", "45.4", "89.3"),
}
"""The formulas of [F] (and, with Laplace noise, of Calmon et al.), by record size."""
CERTIFIED = {
    "general_tight": ("0.972", "1.953", "6.780", "25.83", "86.01", "276.3"),
    "polylog_tight": ("0.502", "1.392", "7.166", "25.26", "54.46", "94.38"),
}
"""The continuous tight losses; the certified ones lie above, by at most the step of their tables."""


def unit(printed: str) -> float:
    """What the last printed digit is worth."""
    digits, _, power = printed.partition("e")
    decimals = len(digits.partition(".")[2])
    return float(10 ** (int(power or 0) - decimals))


def matches(value: float, printed: str) -> bool:
    """Whether a number rounds to what is printed; a hundredth of a digit is left to the grid step, which rounds losses up."""
    return abs(value - float(printed)) <= 0.51 * unit(printed)
