"""A saved policy: whatever is accepted says the same after a round trip, and its losses are those of an independent reading."""

import json
from pathlib import Path
from random import Random
from tempfile import mkdtemp
from typing import Any
from zlib import crc32

import mpmath

import reference_loss
from fuzz.mutation import mutated, mutated_tree
from fuzz.target import ACCEPTED, WrongError
from random_policies import DERIVED, random_policy
from recordwise.cli.loss import read_policy
from recordwise.errors import RecordError
from recordwise.policy import Policy
from recordwise.policy.policy import constants_of

WORDS = [b'"rho"', b'"delta"', b'"near_gaussian"', b'"kind"', b'"one"', b'"pieces"', b'"maximum"', b'"policies"', b"null", b"true",
         b'"recordwise_policy":1', b'["1",{"all":[]},{"kind":"one"}]', b'{"any":[]}', b'"1/3"', b'{"number":"1"}']  # fmt: skip
SLACK = mpmath.mpf(10) ** -9


class PolicyJson:
    def __init__(self) -> None:
        self._path = Path(mkdtemp()) / "policy.json"

    def seeds(self) -> list[bytes]:
        return [self.fresh(Random(f"seed {number}")) for number in range(40)]

    def fresh(self, rng: Random) -> bytes:
        return json.dumps(random_policy(rng, measures=DERIVED).to_json()).encode()

    def mutate(self, rng: Random, data: bytes, other: bytes) -> bytes:
        return mutated_tree(rng, data, other) if rng.random() < 0.4 else mutated(rng, data, other, WORDS)

    def check(self, data: bytes) -> str:
        self._path.write_bytes(data)
        policy = read_policy(self._path, "tight")
        rng = Random(crc32(data))
        again = Policy.from_json(json.loads(json.dumps(policy.to_json())))
        if again != policy or again.to_json() != policy.to_json():
            raise WrongError("a policy is another one after a round trip")
        if rng.random() < 0.6:
            return ACCEPTED
        record = some_record(rng, policy)
        try:
            loss, delta = float(policy.loss(record)), float(policy.delta(record))
        except RecordError:
            return ACCEPTED
        if (loss, delta) != (float(again.loss(record)), float(again.delta(record))):
            raise WrongError("a loss is another one after a round trip")
        if rng.random() < 0.2:
            compare(policy, record, loss, delta)
        if rng.random() < 0.05:
            show(policy)
        return ACCEPTED


def some_record(rng: Random, policy: Policy) -> dict[str, Any]:
    """A record the policy speaks of: multiples of the steps, and the constants its conditions compare with."""
    record: dict[str, Any] = {}
    for column in sorted(policy.columns(), key=str):
        known = [*constants_of(policy, column.name), None]
        record[column.name] = rng.choice(known)
    for measure in policy.inputs():
        steps = rng.choice([0, 1, 2, 49, 50, 51, rng.randrange(10**6), rng.randrange(2**53)])
        record[measure.name] = measure.step * steps * (rng.choice((1, -1)) if measure.signed else 1)
    return record


def compare(policy: Policy, record: dict[str, Any], loss: float, delta: float) -> None:
    """The independent reading: not above ours, and not far below."""
    form = policy.to_json()
    if '"outside"' in json.dumps(form):
        return
    for name, ours in (("rho", loss), ("delta", delta)):
        known = reference_loss.loss(form[name], record)
        if mpmath.isinf(ours):
            if known < mpmath.mpf(10) ** 300:
                raise WrongError(f"{name} is without end where it should be {mpmath.nstr(known, 5)}")
        elif ours < known * (1 - mpmath.mpf(10) ** -40) or ours > known * (1 + SLACK) + mpmath.mpf(10) ** -250:
            raise WrongError(f"{name} differs from the independent reading")


def show(policy: Policy) -> None:
    """Everything a policy can be printed as."""
    policy.to_latex()
    policy.in_words()
    policy.to_javascript()
    policy.to_sql()
    policy.minimum()
    if policy.dominates(policy, seconds=1.0).answer == "no":
        raise WrongError("a policy exceeds itself")
