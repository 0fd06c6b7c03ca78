"""The one place where plan, engine, ledger and noise meet, and where what came from records is opened."""

from recordwise.session.session import Session

__all__ = ["Session"]
