"""What the page shows, read back."""


def read(text: str) -> float:
    """A number as the page writes it."""
    raised = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
    digits, _, power_of_ten = text.replace(",", "").partition(" × 10")
    return float(digits) * 10.0 ** int(power_of_ten.translate(raised) or 0)
