"""Read policies from their saved form: JSON with a version number.

A form that this version does not know is refused rather than guessed.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from recordwise.errors import ParameterError, UnknownFormError
from recordwise.exact.functions import from_json as function_from_json
from recordwise.exact.numbers import rational, read_fraction
from recordwise.policy.atoms import (
    Additive,
    AdditiveTable,
    Atom,
    CertifiedSum,
    ClampedSquare,
    GaussianTransform,
    LaplaceSum,
    LaplaceTransform,
    One,
    Outside,
    PieceCount,
    Pieces,
    PureOne,
    PurePieces,
    PureTransform,
    SelectionDelta,
    Square,
    Thresholds,
)
from recordwise.policy.bands import BandTable
from recordwise.policy.columns import Measure, Value, column_from_json, literal
from recordwise.policy.conditions import (
    MOST_NESTED,
    NONE,
    Condition,
    Null,
    among,
    both,
    compare,
    either,
    in_band,
)
from recordwise.policy.evaluate.evaluator import Steps
from recordwise.policy.policy import EPSILON, MOST_NESTED_MAXIMA, PURE_VERSION, VERSION, Maximum, Policy, Terms, merged

if TYPE_CHECKING:
    from recordwise.policy.firms import FirmPolicy
    from recordwise.policy.loss_law import LatticePolicy

TIGHT, PAPER, PURE = "tight", "paper", "pure"
"""The policies of a release, by their names in policy.json; the last one where all noise has a pure loss."""
Bands: TypeAlias = Mapping[str, BandTable]
"""Band tables by their digests, by which conditions name them."""


def condition_from_json(form: Any, bands: Bands | None = None) -> Condition:
    """Read a condition back from ``to_json``.

    An unknown form is refused, and so is a band of a table missing from ``bands``.
    """
    return _from_json(form, MOST_NESTED, bands or {})


def bands_from_json(forms: Any) -> Bands:
    """Band tables as they are saved with policies."""
    return {table.digest: table for table in map(BandTable.from_json, forms or ())}


def _from_json(form: Any, depth: int, tables: Bands) -> Condition:
    if depth < 0:
        raise UnknownFormError(what="condition", found="too deeply nested")
    match form:
        case {"in": column, "values": [*values], **rest} if not rest:
            return among(column_from_json(column), [_value_from_json(value) for value in values])
        case {"not in": column, "values": [*values], **rest} if not rest:
            return among(column_from_json(column), [_value_from_json(value) for value in values], inside=False)
        case {"compare": column, "order": str(order), "bound": str(bound), **rest} if not rest:
            return compare(column_from_json(column), order, bound)
        case {"null": column, **rest} if not rest:
            return Null(column_from_json(column))
        case {"not null": column, **rest} if not rest:
            return Null(column_from_json(column), inside=False)
        case {"bands": [*bands], "of": str(digest), **rest} if not rest and all(type(band) is int for band in bands):
            if digest not in tables:
                raise UnknownFormError(what="band table, which is saved with the policy", found=digest[:12])
            return in_band(tables[digest], bands)
        case {"all": [*parts], **rest} if not rest:
            return both(*(_from_json(part, depth - 1, tables) for part in parts))
        case {"any": [*parts], **rest} if not rest:
            return either(*(_from_json(part, depth - 1, tables) for part in parts))
        case _:
            raise UnknownFormError(what="condition", found=form)


def _value_from_json(form: Any) -> Value:
    match form:
        case str() | bool():
            return literal(form)
        case {"number": str(text), **rest} if not rest:
            return literal(rational(text, parameter="value"))
        case _:
            raise UnknownFormError(what="value", found=form)


V = TypeVar("V")


@dataclass(frozen=True, eq=False)
class PolicyFile:
    """What policy.json says: a release's policies and what they are made of.

    Each entry is read when it is first needed. This class alone knows the entries by name.
    """

    form: Mapping[str, Any]

    @classmethod
    def of(
        cls,
        tight: Policy,
        paper: Policy,
        *,
        privacy_label: str,
        firms: "FirmPolicy | None" = None,
        lattice: "LatticePolicy | None" = None,
        values: Any = None,
        all_stages: "PolicyFile | None" = None,
    ) -> "PolicyFile":
        """Write the policies of a release and of all its stages."""
        bands = [table.to_json() for table in tight.bands().values()]
        others = {
            PURE: None if tight.pure_problem() is not None else tight.pure().to_json(),
            "bands": bands or None,
            "firms": None if firms is None else firms.to_json(),
            "lattice": None if lattice is None else lattice.to_json(),
            "values": None if values is None else values.to_json(),
            "all_stages": None if all_stages is None else dict(all_stages.form),
        }
        return cls(
            {"mark": privacy_label, TIGHT: tight.to_json(), PAPER: paper.to_json()}
            | {name: form for name, form in others.items() if form is not None}
        )

    @classmethod
    def load(cls, path: Path) -> "PolicyFile":
        """Read a file, of which nothing is checked yet."""
        return cls(json.loads(path.read_text(encoding="utf-8")))

    @property
    def is_of_release(self) -> bool:
        """Whether it was saved with a release, not as a policy alone."""
        return self.has("mark")

    @property
    def privacy_label(self) -> str:
        """Whether the release is private."""
        return str(self.form["mark"])

    @cached_property
    def bands(self) -> "Bands":
        """The band tables that the policies name."""
        return bands_from_json(self.form.get("bands"))

    @property
    def tight_form(self) -> Any:
        """The tight policy as it is saved, which the ledger charged."""
        return self.form[TIGHT]

    def policy(self, which: str = TIGHT) -> Policy:
        """Return the tight policy, or the one printed in the papers."""
        return self._tight if which == TIGHT else policy_from_json(self.form[which], self.bands)

    @cached_property
    def _tight(self) -> Policy:
        return policy_from_json(self.form[TIGHT], self.bands)

    def has(self, which: str) -> bool:
        """Whether it is the file of a release with this policy, not a policy alone."""
        return isinstance(self.form, dict) and which in self.form

    @property
    def states_pure_losses(self) -> bool:
        """Whether its pure losses, if stated, follow from its tight policy."""
        if not self.has(PURE):
            return True
        tight = self.policy()
        return tight.pure_problem() is None and self.policy(PURE) == tight.pure()

    @property
    def firms(self) -> "FirmPolicy | None":
        """What the establishments of a firm lose together; None in earlier versions."""
        from recordwise.policy.firms import FirmPolicy

        return FirmPolicy.from_json(self.form["firms"], self.bands) if self.has("firms") else None

    @property
    def lattice(self) -> "LatticePolicy | None":
        """The noise on its lattice, where all of it is discrete Gaussian."""
        from recordwise.policy.loss_law import LatticePolicy

        return LatticePolicy.from_json(self.form["lattice"], self.bands) if self.has("lattice") else None

    @property
    def all_stages(self) -> "PolicyFile | None":
        """What a refined release costs with those it refines, else None."""
        return PolicyFile(self.form["all_stages"]) if self.has("all_stages") else None

    @property
    def values_form(self) -> Any:
        """The laws of numbers that depend on measures as they are saved; None in earlier versions."""
        return self.form["values"] if self.has("values") else None


def policy_from_json(form: Any, bands: Bands | None = None) -> Policy:
    """Read a saved policy; malformed or unknown forms raise UnknownFormError."""
    return _policy(form, MOST_NESTED_MAXIMA, bands or {})


def _policy(form: Any, depth: int, bands: Bands) -> Policy:
    version = form.get("recordwise_policy") if isinstance(form, dict) else None
    if type(version) is not int or version not in (VERSION, PURE_VERSION):
        raise UnknownFormError(what="policy version", found=version)
    match form:
        case {"recordwise_policy": 2, "epsilon": [*pure], **rest} if not rest:
            return _check_form("policy", lambda: Policy(_terms(pure, depth, bands), {}, False, EPSILON))
        case {"recordwise_policy": 1, "rho": [*rho], "delta": [*delta], "near_gaussian": bool(gaussian), **rest} if (
            not rest
        ):
            return _check_form(
                "policy", lambda: Policy(_terms(rho, depth, bands), _terms(delta, depth, bands), gaussian)
            )
        case _:
            raise UnknownFormError(what="policy fields", found=", ".join(sorted(map(str, form))))


def _check_form(what: str, build: Callable[[], V]) -> V:
    """Build an object, reporting any refusal as an unknown form."""
    try:
        return build()
    except ParameterError as error:
        raise UnknownFormError(what=f"{what} ({error})", found=error.parameter) from None


def _terms(rows: list[Any], depth: int, bands: Bands) -> Terms:
    terms = []
    for row in rows:
        match row:
            case [str(coefficient), condition, dict(atom)]:
                key = (condition_from_json(condition, bands), atom_from_json(atom, depth, bands))
                value = _coefficient(coefficient)
                terms += [(key, value)] if key[0] != NONE else []
            case _:
                raise UnknownFormError(what="policy term", found=row)
    return merged(terms)


def _coefficient(text: str) -> Fraction:
    value = _fraction(text)
    if value <= 0:
        raise UnknownFormError(what="coefficient", found=text)
    return value


def _fraction(text: Any) -> Fraction:
    try:
        if isinstance(text, str):
            return read_fraction(text)
    except (ValueError, ZeroDivisionError):
        pass
    raise UnknownFormError(what="number", found=text)


def _thresholds(rows: Any) -> Thresholds:
    match rows:
        case [*items] if all(isinstance(item, list) and len(item) in (4, 5) for item in items):
            return tuple((Measure.from_json(item[:-1]), _fraction(item[-1])) for item in items)
        case _:
            raise UnknownFormError(what="thresholds", found=rows)


def _steps(rows: Any) -> Steps:
    match rows:
        case [*items] if all(isinstance(item, list) and len(item) == 2 for item in items):
            return tuple((item[0], _fraction(item[1])) for item in items)
        case _:
            raise UnknownFormError(what="steps", found=rows)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise UnknownFormError(what="text", found=value)
    return value


def _policies(rows: Any, depth: int, bands: Bands) -> tuple[Policy, ...]:
    if not isinstance(rows, list) or not rows or depth <= 0:
        raise UnknownFormError(what="maximum", found=rows if depth > 0 else "too deeply nested")
    return tuple(_policy(row, depth - 1, bands) for row in rows)


READERS: dict[str, Callable[[Any], Any]] = {
    "at": _thresholds,
    "bound": _text,
    "column": _text,
    "function": function_from_json,
    "grid": _fraction,
    "knots": _steps,
    "less": _fraction,
    "measure": Measure.from_json,
    "row_epsilon": _fraction,
    "row_rho": _fraction,
    "scale": _fraction,
    "steps": _steps,
    "to": _fraction,
}
KINDS: dict[str, tuple[type[Atom], frozenset[str]]] = {
    kind.kind: (kind, frozenset(field.name for field in fields(kind)))
    for kind in (
        One,
        Outside,
        Pieces,
        PieceCount,
        PureOne,
        PurePieces,
        Square,
        ClampedSquare,
        Additive,
        AdditiveTable,
        CertifiedSum,
        LaplaceSum,
        GaussianTransform,
        LaplaceTransform,
        PureTransform,
        SelectionDelta,
        Maximum,
    )
}


def atom_from_json(form: dict[str, Any], depth: int, bands: Bands) -> Atom:
    """One atom, checked like one built in code."""
    name = form.get("kind")
    kind, expected = KINDS.get(name if isinstance(name, str) else "", (None, frozenset()))
    if kind is None or set(form) - {"kind"} != expected:
        raise UnknownFormError(what="policy node", found=name)
    if kind is Maximum:
        return _check_form("maximum", lambda: Maximum(_policies(form["policies"], depth, bands)))
    try:
        text = json.dumps(form)
    except (TypeError, ValueError, RecursionError):
        # No text of a file: what is wrong with it is found below.
        return _atom(form)
    return _known_atom(text)


@lru_cache(maxsize=1024)
def _known_atom(text: str) -> Atom:
    """Read an atom of a known kind once: the policies of a release repeat the same few."""
    return _atom(json.loads(text))


def _atom(form: Mapping[str, Any]) -> Atom:
    given = {field: value for field, value in form.items() if field != "kind"}
    kind = KINDS[form["kind"]][0]
    return _check_form(
        f"policy node '{form['kind']}'",
        lambda: kind(**{field: READERS[field](value) for field, value in given.items()}),
    )
