"""A statement of a paper beside what we find."""

from dataclasses import dataclass
from typing import Any

from recordwise.errors import ParameterError

VERDICTS = {True: "agrees", False: "does not agree", None: "cannot be told"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What the paper says, what we measured, whether they agree, and why not. A disagreement is reported, never hidden."""

    statement: str
    """The claim in our words; where the setting is ours and not the paper's, it says so."""
    paper: str
    """The paper's number or words, or where the claim comes from if not from a paper."""
    ours: str
    """Our number, with its standard error where it is random."""
    agrees: bool | None
    """None where our set-up cannot tell."""
    why: str = ""
    """Why not; required unless it agrees. May say what the comparison rests on where it does."""

    def __post_init__(self) -> None:
        if self.agrees is not True and not self.why:
            raise ParameterError(parameter="why", problem="is missing: a claim that does not agree has a reason")

    @property
    def verdict(self) -> str:
        return VERDICTS[self.agrees]

    def to_json(self) -> dict[str, Any]:
        return {
            "statement": self.statement,
            "paper": self.paper,
            "ours": self.ours,
            "agrees": self.agrees,
            "why": self.why,
        }
