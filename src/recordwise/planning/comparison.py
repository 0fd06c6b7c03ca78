"""What a comparison of mechanisms found: losses of the records, errors of the cells, table by table."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from recordwise.exact.arithmetic import FloatArray
from recordwise.exact.text import formula_text, share_text
from recordwise.mechanisms.described import mechanism_text
from recordwise.planning.disclosure import Disclosure
from recordwise.planning.losses import Losses, LossPair
from recordwise.planning.origin import figure, html_table, mark_of


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Candidate:
    """One mechanism of a comparison."""

    name: str
    mechanism: Any
    """None where statistics have different ones."""
    losses: LossPair
    """Policy losses of the records, from everything that is compared."""
    firms: LossPair | None
    """What firms lose together, by cell (T-CELLS); upper ends of bins."""
    realized: LossPair | None
    """What the records would actually lose given the rest of their cells; upper ends of bins."""
    errors: FloatArray
    """The bound that the error of each cell stays below, with the confidence of the comparison."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class ComparedTable:
    """One statistic of one table."""

    name: str
    statistic: str
    measure: str
    cells: slice
    """Where its cells are among all cells of the comparison."""
    rules: Disclosure | None
    """What suppression or multiplicative noise would do instead, in the table of each measure with the most cells."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Comparison:
    """Mechanisms compared on the tables of a plan; confidential if its records are."""

    data: str
    confidence: float
    above: tuple[float, ...]
    totals: FloatArray
    """The exact total of each cell, table by table."""
    tables: tuple[ComparedTable, ...]
    candidates: tuple[Candidate, ...]

    @property
    def measure(self) -> str:
        """What is summed, in words."""
        return ", ".join(dict.fromkeys(each.measure for each in self.tables))

    @property
    def rules(self) -> Disclosure | None:
        """The older rules in the first table they apply to; None for counts."""
        return next((each.rules for each in self.tables if each.rules is not None), None)

    def rule_sentences(self) -> Iterator[tuple[str, str]]:
        """The tables the older rules are shown for, each with what they would do."""
        for each in self.tables:
            if each.rules is not None:
                yield each.name, each.rules.sentences()

    @property
    def privacy_label(self) -> str:
        """What the records are that it was computed from."""
        return mark_of(self.data)

    def __getitem__(self, name: str) -> Candidate:
        return next(each for each in self.candidates if each.name == name)

    def relative_errors(self, name: str, table: str | None = None) -> FloatArray:
        """The error of each cell with a total above 0, as a share of that total.

        Args:
            name: The name of a mechanism.
            table: The name of one of ``tables``; the cells of all tables unless given.

        Returns:
            A share for each cell.
        """
        cells = slice(None) if table is None else next(each.cells for each in self.tables if each.name == table)
        totals, errors = self.totals[cells], self[name].errors[cells]
        return np.asarray(errors[totals > 0] / totals[totals > 0])

    def curves(self) -> dict[str, tuple[FloatArray, FloatArray]]:
        """For each mechanism, losses and the share of the records with at most each loss."""
        return {each.name: each.losses.rho.curve() for each in self.candidates}

    def to_json(self) -> dict[str, Any]:
        """The numbers, for JSON."""
        return {
            "privacy_label": self.privacy_label,
            "measure": self.measure,
            "confidence": self.confidence,
            "cells": len(self.totals),
            "mechanisms": [self._candidate_json(each) for each in self.candidates],
            "tables": [self._table_json(each) for each in self.tables],
            "instead": None if self.rules is None else self.rules.to_json(),
        }

    def _table_json(self, table: ComparedTable) -> dict[str, Any]:
        errors = {each.name: _error_json(self.relative_errors(each.name, table.name)) for each in self.candidates}
        return {"name": table.name, "cells": table.cells.stop - table.cells.start, "relative_error": errors}

    def _candidate_json(self, each: Candidate) -> dict[str, Any]:
        relative = self.relative_errors(each.name)
        found: dict[str, Any] = {"name": each.name, "losses": each.losses.rho.to_json()}
        found["mechanism"] = None if each.mechanism is None else mechanism_text(each.mechanism)
        found["share_above"] = {f"{formula_text(loss)}": each.losses.rho.share_above(loss) for loss in self.above}
        found["relative_error"] = _error_json(relative)
        parts: dict[str, Losses | None] = {
            "delta": each.losses.delta,
            "firm_losses": each.firms.rho if each.firms else None,
            "firm_delta": each.firms.delta if each.firms else None,
            "realized_losses": each.realized.rho if each.realized else None,
            "realized_delta": each.realized.delta if each.realized else None,
        }
        return found | {name: part.to_json() for name, part in parts.items() if part is not None}

    def rows(self) -> tuple[list[str], list[list[str]]]:
        """A table for a reader: headers and rows."""
        above = [f"above {formula_text(loss)}" for loss in self.above]
        more = [
            name
            for name, held in (("firm p99", "firms"), ("realized p99", "realized"))
            if getattr(self.candidates[0], held)
        ]
        headers = ["mechanism", "median", "p99", "maximum", *above, *more, "median error", "p90 error"]
        return headers, [self._row(each) for each in self.candidates]

    def _row(self, each: Candidate) -> list[str]:
        rho, relative = each.losses.rho, self.relative_errors(each.name)
        numbers = [figure(rho.quantile(0.5)), figure(rho.quantile(0.99)), figure(rho.maximum)]
        numbers += [f"{share_text(rho.share_above(loss), 2)}" for loss in self.above]
        numbers += [figure(each.firms.rho.quantile(0.99))] if each.firms else []
        numbers += [figure(each.realized.rho.quantile(0.99))] if each.realized else []
        return [each.name, *numbers, *_error_words(relative)]

    def table_rows(self) -> tuple[list[str], list[list[str]]]:
        """The errors table by table: headers and rows."""
        headers = ["table", "cells", "mechanism", "median error", "p90 error"]
        rows = []
        for table in self.tables:
            first = [table.name, f"{table.cells.stop - table.cells.start:,}"]
            for each in self.candidates:
                rows.append([*first, each.name, *_error_words(self.relative_errors(each.name, table.name))])
                first = ["", ""]
        return headers, rows

    def __repr__(self) -> str:
        return f"<Comparison of {len(self.candidates)} mechanisms for '{self.measure}': {self.privacy_label}>"

    def _repr_html_(self) -> str:
        notes = "\n".join(f"{name}: {told}" if len(self.tables) > 1 else told for name, told in self.rule_sentences())
        title = f"Losses of the records and {share_text(self.confidence)} errors of the cells: {self.measure}"
        return html_table(title, *self.rows(), privacy_label=self.privacy_label, notes=notes)


def _error_json(relative: FloatArray) -> dict[str, float | None]:
    known = len(relative) > 0
    return {
        "median": float(np.median(relative)) if known else None,
        "p90": float(np.quantile(relative, 0.9)) if known else None,
    }


def _error_words(relative: FloatArray) -> list[str]:
    errors = [np.median(relative), np.quantile(relative, 0.9)] if len(relative) else [np.nan, np.nan]
    return [share_text(error, 1) for error in errors]
