"""Audit releases empirically: do their files reveal more than the policy states?

Takes subjects (a query and made-up neighboring records), returns findings. Imports the session and everything below it.

In reading order:

- ``audit``: run an audit, from records to files, samples and a bound that is compared with the policy
- ``bound``: the statistics: a lower bound on the loss behind two samples, with its false-alarm rate
- ``checks``: what must be refused or kept apart: inputs, types, labels, threads, periods
- ``forking``: two processes forked from one must not share their noise
- ``subjects``: the queries and records that an audit tries
"""

from recordwise.audit.audit import Finding, Runs, audit, bound_on_loss
from recordwise.audit.subjects import Subject, sum_subject

__all__ = ["Finding", "Runs", "Subject", "audit", "bound_on_loss", "sum_subject"]
