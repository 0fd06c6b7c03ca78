"""One thread for heavy work: what it does can be watched and canceled."""

import asyncio
import itertools
import traceback
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Event, Lock
from typing import Any

from recordwise import progress
from recordwise.errors import RecordwiseError

WAITING, RUNNING, DONE, FAILED, CANCELED = "waiting", "running", "done", "failed", "canceled"
UNEXPECTED = "An unexpected error; the terminal shows where it happened."
ENDED = frozenset({DONE, FAILED, CANCELED})


class Canceled(Exception):  # noqa: N818 - not an error: somebody asked for it
    """Raised inside a canceled job at its next report."""


@dataclass(slots=True, kw_only=True, eq=False)
class Job:
    """One computation: what it is doing, how far it is, and what came of it."""

    number: int
    kind: str
    doing: str = ""
    share: float = 0.0
    status: str = WAITING
    problem: str = ""
    result: Any = None
    stop: Event = field(default_factory=Event)
    ended: Event = field(default_factory=Event)

    def to_json(self) -> dict[str, Any]:
        """Return what the page shows of it; a result is fetched apart."""
        return {
            "number": self.number,
            "kind": self.kind,
            "doing": self.doing,
            "share": round(self.share, 4),
            "status": self.status,
            "problem": self.problem,
        }


class Worker:
    """Runs jobs one after another; new jobs cancel older ones."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="studio")
        self._numbers = itertools.count(1)
        self._lock = Lock()
        self._jobs: dict[int, Job] = {}
        self._listeners: dict[asyncio.Queue[Job | None], asyncio.AbstractEventLoop] = {}
        self.closed = False

    def start(self, kind: str, function: Callable[[], Any]) -> Job:
        """Queue a function; the job shows what it reports."""
        with self._lock:
            for each in self._jobs.values():
                if each.kind == kind and each.status not in ENDED:
                    each.stop.set()
            self._jobs = {number: each for number, each in self._jobs.items() if each.status not in ENDED}
            job = Job(number=next(self._numbers), kind=kind)
            self._jobs[job.number] = job
        self._thread.submit(self._run, job, function)
        return job

    def is_busy(self) -> bool:
        """Return whether a job waits or runs."""
        return any(job.status not in ENDED for job in list(self._jobs.values()))

    def cancel(self, number: int) -> None:
        """Stop a job at its next report of progress."""
        job = self._jobs.get(number)
        if job is not None:
            job.stop.set()

    def _run(self, job: Job, function: Callable[[], Any]) -> None:
        def listen(doing: str, share: float) -> None:
            if job.stop.is_set():
                raise Canceled
            job.doing, job.share = doing, share
            self._publish(job)

        job.status = RUNNING
        try:
            with progress.listening(listen):
                progress.tell("starting")
                job.result = function()
            job.status, job.share = DONE, 1.0
        except Canceled:
            job.status = CANCELED
        except RecordwiseError as error:
            job.status, job.problem = FAILED, str(error)
        except Exception:
            # On the terminal of the owner, never on the page: a traceback may quote what it worked on.
            traceback.print_exc()
            job.status, job.problem = FAILED, UNEXPECTED
        job.ended.set()
        self._publish(job)

    def _publish(self, job: Job | None) -> None:
        for queue, loop in list(self._listeners.items()):
            if not loop.is_closed():
                loop.call_soon_threadsafe(queue.put_nowait, job)

    async def events(self, every: float) -> AsyncIterator[Job | None]:
        """Yield jobs as they change, and None after a pause."""
        queue: asyncio.Queue[Job | None] = asyncio.Queue()
        self._listeners[queue] = asyncio.get_running_loop()
        try:
            for job in list(self._jobs.values()):
                yield job
            while not self.closed:
                try:
                    yield await asyncio.wait_for(queue.get(), every)
                except TimeoutError:
                    yield None
        finally:
            self._listeners.pop(queue, None)

    def close(self) -> None:
        """Cancel everything and let the thread end."""
        self.closed = True
        for job in self._jobs.values():
            job.stop.set()
            job.ended.set()
        self._publish(None)
        self._thread.shutdown(wait=False, cancel_futures=True)
