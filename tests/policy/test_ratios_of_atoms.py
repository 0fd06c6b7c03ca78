"""A term of a policy never exceeds what T-COVER says of it in multiples of another: every pair of atoms, over many records."""

from fractions import Fraction
from itertools import product
from typing import Any

import pytest

from recordwise.exact.functions import x
from recordwise.policy import Measure, Policy
from recordwise.policy.atoms import (
    Additive,
    Atom,
    ClampedSquare,
    LaplaceSum,
    One,
    PieceCount,
    Pieces,
    PurePieces,
    Square,
)
from recordwise.policy.conditions import EVERY
from recordwise.policy.dominance.prove import ratio_upper

EMP, PAY = Measure("emp"), Measure("pay", step=Fraction(1, 2))
RECORDS = [
    {"emp": emp, "pay": pay}
    for emp, pay in product(
        [0, 1, 2, 3, 4, 5, 7, 9, 10, 11, 20, 31, 500], [Fraction(n, 2) for n in (0, 1, 2, 5, 6, 7, 14, 40, 999)]
    )
]


def pieces(**at: int) -> tuple[tuple[Measure, Fraction], ...]:
    return tuple(({"emp": EMP, "pay": PAY}[name], Fraction(threshold)) for name, threshold in at.items())


ATOMS: dict[str, Atom] = {
    "one": One(),
    "emp": Square(EMP),
    "pay": Square(PAY),
    "emp to 3": ClampedSquare(EMP, Fraction(3)),
    "emp to 10": ClampedSquare(EMP, Fraction(10)),
    "pay to 7": ClampedSquare(PAY, Fraction(7)),
    "pieces of emp at 4": Pieces(pieces(emp=4)),
    "pieces of emp at 10": Pieces(pieces(emp=10)),
    "pieces of pay at 3": Pieces(pieces(pay=3)),
    "pieces of both": Pieces(pieces(emp=4, pay=3)),
    "count of pieces of emp at 4": PieceCount(pieces(emp=4)),
    "count of pieces of both": PieceCount(pieces(emp=10, pay=3)),
    "pure pieces of emp at 5": PurePieces(pieces(emp=5), Fraction(1, 2), Fraction(1, 8)),
    "laplace noise for emp": LaplaceSum(EMP, Fraction(1), Fraction(6)),
    "wider laplace noise for emp": LaplaceSum(EMP, Fraction(1), Fraction(9)),
    "finer laplace noise for emp": LaplaceSum(EMP, Fraction(1, 4), Fraction(6)),
    "narrower laplace noise for emp": LaplaceSum(EMP, Fraction(1, 4), Fraction(2)),
    "emp in sixths": Additive(EMP, x / 6, "pure"),
    "emp in sixths, tanh": Additive(EMP, x / 6, "tanh"),
}


def losses(atom: Atom) -> list[float]:
    policy = Policy({(EVERY, atom): Fraction(1)})
    return [float(policy.loss(record)) for record in RECORDS]


LOSSES = {name: losses(atom) for name, atom in ATOMS.items()}


@pytest.mark.theorem("T-COVER")
@pytest.mark.parametrize("name", ATOMS)
def test_no_atom_exceeds_its_multiple_of_another(name: str) -> None:
    for payer, atom in ATOMS.items():
        ratio = ratio_upper(ATOMS[name], atom)
        if ratio is not None:
            most = [float(ratio) * loss * (1 + 1e-9) for loss in LOSSES[payer]]
            assert all(own <= paid for own, paid in zip(LOSSES[name], most, strict=True)), payer


EXACT: dict[tuple[str, str], Any] = {
    ("one", "pieces of emp at 4"): 1,
    ("emp to 3", "one"): 9,
    ("emp to 3", "emp to 10"): 1,
    ("emp to 10", "emp to 3"): Fraction(100, 9),
    ("emp to 3", "emp"): 1,
    ("emp to 3", "pieces of emp at 4"): 9,
    ("emp to 10", "pieces of emp at 4"): 16,
    ("emp to 10", "pieces of pay at 3"): 100,
    ("emp to 10", "count of pieces of both"): 100,
    ("pay", "pieces of pay at 3"): 9,
    ("pay", "pieces of emp at 4"): None,
    ("pay", "pay to 7"): None,
    ("wider laplace noise for emp", "laplace noise for emp"): Fraction(2, 3),
    ("laplace noise for emp", "wider laplace noise for emp"): None,
    ("finer laplace noise for emp", "laplace noise for emp"): 1,
    ("laplace noise for emp", "finer laplace noise for emp"): None,
    ("laplace noise for emp", "narrower laplace noise for emp"): None,
    ("finer laplace noise for emp", "narrower laplace noise for emp"): Fraction(1, 3),
}


@pytest.mark.parametrize(("atom", "payer"), EXACT)
def test_the_multiple_is_the_least_that_is_known(atom: str, payer: str) -> None:
    assert ratio_upper(ATOMS[atom], ATOMS[payer]) == EXACT[atom, payer]


def test_enough_pairs_have_a_multiple() -> None:
    """A check of nothing would pass as well."""
    assert sum(ratio_upper(*pair) is not None for pair in product(ATOMS.values(), repeat=2)) > 60
