"""One session used by several threads: each gets the answer to its own question, whatever the others ask meanwhile."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import recordwise as rw
from build import employers
from recordwise.errors import RecordwiseError
from recordwise.mechanisms.quantile import Grid
from recordwise.policy import Policy, constant, gaussian_sum

pytestmark = pytest.mark.filterwarnings("ignore::recordwise.errors.UnkeptLedgerWarning")
THREADS = 8
GROUPS = [f"g{number}" for number in range(THREADS)]
CELLS = ["a", "b", "c"]
SIGMA = "1/100"
"""Noise of this size on whole numbers is never anything but 0: 1 - P(0) is below 1e-2000."""


def records() -> pa.Table:
    """Group i holds totals of its own size in every cell, so that an answer tells whose it is."""
    rows = [(group, cell, firm) for group in range(THREADS) for cell in range(3) for firm in range(4)]
    return pa.table(
        {
            "id": np.arange(len(rows)),
            "firm": [100 * group + firm % (group + 1) for group, _, firm in rows],
            "which": [GROUPS[group] for group, _, _ in rows],
            "cell": [CELLS[cell] for _, cell, _ in rows],
            "emp": [1000 ** (group % 3) * (7 * group + cell + 1) for group, cell, _ in rows],
        }
    )


def opened(**how: Any) -> rw.Session:
    return employers(records(), "which", "cell", firm="firm", tuning_reason="a test", max_outside="accept", **how)


def exact() -> rw.Gaussian:
    return rw.Gaussian(sigma=SIGMA)


def question(group: int) -> Any:
    """Each group asks at keys of its own order and number, some with firms."""
    keys = rw.Keys.of({"cell": CELLS[: 1 + group % 3]})
    asked = rw.query().where(f"which = '{GROUPS[group]}'").group_by("cell", keys=keys)
    asked = asked.count(exact(), alias="n").sum("emp", exact(), alias="jobs")
    return asked.count_distinct("firm", exact(), alias="firms") if group % 2 else asked


def right(group: int) -> dict[str, list[Any]]:
    cells = range(1 + group % 3)
    told: dict[str, list[Any]] = {
        "cell": [CELLS[cell] for cell in cells],
        "n": [4 for _ in cells],
        "jobs": [4 * 1000 ** (group % 3) * (7 * group + cell + 1) for cell in cells],
    }
    return told | ({"firms": [min(4, group + 1) for _ in cells]} if group % 2 else {})


def told(release: rw.Release, group: int) -> dict[str, list[Any]]:
    (table,) = release.tables
    return {name: table.data.column(name).to_pylist() for name in right(group)}


def at_once(tasks: list[Callable[[], None]]) -> None:
    """Run tasks in threads that start together; the first failure of any is raised."""
    together = threading.Barrier(len(tasks))

    def started(task: Callable[[], None]) -> None:
        together.wait(60)
        task()

    with ThreadPoolExecutor(len(tasks)) as pool:
        for each in [pool.submit(started, task) for task in tasks]:
            each.result()


def each_gets_its_own(session: rw.Session, runs: int) -> None:
    def asking(group: int) -> Callable[[], None]:
        def ask() -> None:
            for _ in range(runs):
                assert told(session.run(question(group)), group) == right(group)

        return ask

    at_once([asking(group) for group in range(THREADS)])
    kinds = [event.kind for event in session.history()]
    assert kinds.count("charged") == kinds.count("released") == THREADS * runs


@pytest.mark.costly
def test_eight_threads_get_their_own_answers(opens) -> None:
    with opened(**opens.session_options()) as session:
        each_gets_its_own(session, 3 if opens.name == "duckdb" else 1)


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_eight_threads_get_their_own_answers_a_hundred_times(opens) -> None:
    with opened(**opens.session_options()) as session:
        each_gets_its_own(session, 100)


def test_the_owner_looks_while_others_publish(opens) -> None:
    """Histograms, contributors and totals beside releases: every way into an engine takes its turn."""
    policy = gaussian_sum("emp", sigma=1000)
    by_cell = rw.query().group_by("cell", keys=rw.Keys.of({"cell": CELLS})).sum("emp", exact(), alias="jobs")
    with opened(**opens.session_options()) as session:
        view, rows = session.owner.view(), records().num_rows
        whole = view.contributors(by_cell, "emp").total.tolist()

        def summarize() -> None:
            assert session.owner.loss_summary(policy).counts.sum() == rows
            assert session.owner.firm_loss_summary(policy).counts.sum() == len(set(records()["firm"].to_pylist()))

        def look() -> None:
            assert view.contributors(by_cell, "emp").total.tolist() == whole
            assert view.loss_bins([policy])[0].counts.sum() == rows

        def publish() -> None:
            for group in (1, 2):
                assert told(session.run(question(group)), group) == right(group)

        at_once([summarize, look, publish, session.validate])


@pytest.mark.costly
def test_threads_that_use_arb_get_the_same_numbers_as_one_alone() -> None:
    """Losses, noise tables and intervals are computed with Arb, whose precision belongs to the process."""
    mechanisms = [
        rw.LogTransform(offset=10 + number, sigma="0.2") if number % 2 else rw.GeneralizedGaussian(shape=1, scale=3)
        for number in range(2)
    ]
    asked = [
        rw.query()
        .where("which = 'g1'")
        .sum("emp", each)
        .quantile("emp", p="0.5", grid=Grid.log(1, 10**6, bits=4), rho=1)
        for each in mechanisms
    ]

    def published(session: rw.Session, query: Any) -> tuple[Any, Policy]:
        done = session.run(query, rng=rw.noise.Seeded(3))
        return done.tables[0].data.to_pydict(), done.policy

    with opened() as alone:
        wanted = [published(alone, each) for each in asked]
    with opened() as session:

        def compare(number: int) -> None:
            for _ in range(2):
                assert published(session, asked[number]) == wanted[number]

        at_once([partial(compare, number) for number in (0, 1, 0, 1)])


def test_threads_never_spend_more_than_the_budget_together() -> None:
    """A budget for 3 of 8 counts: three are published, five are refused."""
    budget = constant(3) + gaussian_sum("emp", sigma=1) * 0
    asked = rw.query().count(rw.Gaussian(rho=1), alias="n")
    with opened(budget=budget) as session:
        done: list[str] = []

        def ask() -> None:
            try:
                session.run(asked)
                done.append("published")
            except RecordwiseError as refused:
                done.append(type(refused).__name__)

        at_once([ask] * THREADS)
    assert sorted(done) == ["BudgetError"] * 5 + ["published"] * 3


def test_closing_waits_for_a_pass_and_later_runs_are_refused() -> None:
    session = opened()
    inside, closing = threading.Event(), threading.Event()
    passes = session._engine._passes
    original = type(passes).totals

    def slow(each: Any, plan: Any, tables: Any = None) -> Any:
        inside.set()
        assert not closing.wait(0.2)
        return original(each, plan, tables)

    def close() -> None:
        inside.wait(10)
        session._engine.close()
        closing.set()

    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(1) as pool:
        patch.setattr(type(passes), "totals", slow)
        closed = pool.submit(close)
        assert told(session.run(question(1)), 1) == right(1)
        closed.result(10)
    with pytest.raises(RecordwiseError):
        session.run(question(1))
    session.close()
