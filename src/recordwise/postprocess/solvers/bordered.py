"""A system with a few more queries, each a sum of cells that varies by draw: the low sums of ReWeighted on large tables."""

from dataclasses import dataclass, replace

import numpy as np

from recordwise.postprocess.solvers.boxed import FloatArray, IntArray, Solver, System


@dataclass(frozen=True, kw_only=True, eq=False)
class BorderedSystem:
    """``base`` and below it the extra queries; ``member`` is draws x extras x cells."""

    base: System
    member: FloatArray

    @property
    def exact(self) -> bool:
        return self.base.exact

    @property
    def queries(self) -> int:
        return self.base.queries + int(self.member.shape[1])

    def sums(self, x: FloatArray, /) -> FloatArray:
        return np.hstack([self.base.sums(x), np.einsum("dec,dc->de", self.member, x)])

    def spread(self, y: FloatArray, /) -> FloatArray:
        extra = np.einsum("dec,de->dc", self.member, y[:, self.base.queries :])
        return np.asarray(self.base.spread(y[:, : self.base.queries]) + extra)

    def powers(self, exponent: int, /) -> "BorderedSystem":
        return replace(self, base=self.base.powers(exponent))

    def take(self, chosen: IntArray, /) -> "BorderedSystem":
        return BorderedSystem(base=self.base.take(chosen), member=self.member[chosen])

    def solver(self, response: FloatArray, diagonal: FloatArray, /) -> Solver:
        """Eliminate the base: as many of its solutions as there are extra queries, from one factorisation a draw."""
        split = self.base.queries
        parts = []
        for draw in range(len(response)):
            one = self.base.take(np.array([draw])).solver(response[[draw]], diagonal[[draw], :split])
            seen = self.member[draw] * response[draw]
            border = self.base.take(np.full(len(seen), draw)).sums(seen)
            through = np.concatenate([one(row[None]) for row in border])
            corner = seen @ self.member[draw].T + np.diag(diagonal[draw, split:]) - border @ through.T
            parts.append((one, through, corner))

        def solve(right: FloatArray) -> FloatArray:
            result = np.empty_like(right)
            for draw, (one, through, corner) in enumerate(parts):
                extra = np.linalg.solve(corner, right[draw, split:] - through @ right[draw, :split])
                result[draw, :split] = one(right[[draw], :split])[0] - extra @ through
                result[draw, split:] = extra
            return result

        return solve
