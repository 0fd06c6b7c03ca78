"""Empirical privacy audits: do the files of a release reveal no more about a record than its policy states?"""

from recordwise.audit.audit import Finding, Runs, audit, bound_on_loss
from recordwise.audit.subjects import Subject, sum_subject

__all__ = ["Finding", "Runs", "Subject", "audit", "bound_on_loss", "sum_subject"]
