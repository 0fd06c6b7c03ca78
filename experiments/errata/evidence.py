"""One erratum with its evidence."""

from collections.abc import Callable
from dataclasses import dataclass

from experiments.frame import Claim


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What a paper prints, what a computation gives, and whether that bears the erratum out."""

    name: str
    """As the command spells it."""
    source: str
    """[S], [F] or [A] of the paper map and the place in its text, or ours."""
    printed: str
    """The statement in question, in our words."""
    shown: str
    """The numbers."""
    holds: bool
    """Whether the numbers contradict the statement."""
    correction: str
    """What holds instead."""

    def claim(self) -> Claim:
        """A printed statement that the numbers contradict does not agree; one that they do not contradict is no erratum."""
        return Claim(
            statement=f"{self.name} {self.source}",
            paper=self.printed,
            ours=self.shown,
            agrees=not self.holds,
            why=self.correction if self.holds else "The erratum is not borne out: a defect of this page.",
        )

    def text(self) -> str:
        verdict = "the numbers contradict it" if self.holds else "NOT BORNE OUT"
        found = f"  printed: {self.printed}\n  found:   {self.shown} ({verdict})"
        return f"{self.name} {self.source}\n{found}\n  so:      {self.correction}"


Show = Callable[[], Evidence]
