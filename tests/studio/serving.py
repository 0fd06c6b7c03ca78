"""A studio that really listens, in a thread of the test, and requests written by hand."""

import asyncio
import json
import socket
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any

from recordwise.studio.guard import HOST, Access
from recordwise.studio.server import Serving, uvicorn_server
from recordwise.studio.state import StudioState
from recordwise.studio.trade import Trade


def awaited(work: Coroutine[Any, Any, Any]) -> Any:
    """What a coroutine returns. It runs in a thread of its own: in the test's own thread a browser's loop may be running."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


class SampleSubject:
    """A subject whose trade file is a sample, and that hands over a line."""

    def __init__(self, folder: Path, trade: Trade) -> None:
        self.trade, self.kept_file = trade, folder / "plan.studio.json"

    data, is_confidential = "synthetic", False

    def first_look(self) -> dict[str, Any] | None:
        return None

    def make(self) -> str:
        return self.trade.text()

    def exact(self, trade: Trade) -> Callable[[StudioState], dict[str, str]]:
        return lambda state: {"budget": "the budget covers it", "years": str(state.now.position)}

    def hand_over(self, trade: Trade, state: StudioState, *, save: bool) -> dict[str, Any]:
        texts = {"plan": f"position {state.now.position}", "python": "", "commands": ["recordwise check"]}
        return texts | {"names": {"plan": "plan-chosen.toml"}}


@dataclass
class Running:
    """A server and how to talk to it as its page does, or as somebody else would."""

    serving: Serving
    cookie: str = ""

    @property
    def access(self) -> Access:
        return self.serving.access

    def own(self, **changed: str | None) -> dict[str, str]:
        """The headers of the page's own requests; None leaves one out."""
        usual = {"Origin": self.access.origin, "Sec-Fetch-Site": "same-origin", "Cookie": self.cookie}
        given = usual | {name.replace("_", "-"): value for name, value in changed.items()}
        return {name: value for name, value in given.items() if value}

    def ask(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> tuple[int, bytes]:
        answer, content = self.response(method, path, body, headers)
        return answer.status, content

    def response(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> tuple[HTTPResponse, bytes]:
        connection = HTTPConnection(HOST, self.access.port, timeout=10)
        sent = json.dumps(body) if body is not None else None
        connection.request(method, path, sent, self.own() if headers is None else headers)
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        return answer, content

    def log_in(self) -> None:
        answer, _ = self.response("POST", "/session", {"token": self.access.token})
        assert answer.status == 200
        self.cookie = answer.headers["set-cookie"].partition(";")[0]


@contextmanager
def running(desk: Any, *, idle: float = 600.0) -> Iterator[Running]:
    """Serve a desk on a free port until the end of the block.

    For each request Linux lists its connections, which can take 8 ms: ten thousand that count as no use take minutes.
    """
    listening = socket.create_server((HOST, 0))
    serving = Serving(desk=desk, access=Access(port=listening.getsockname()[1]), idle=idle, tell=lambda _: None)
    server = uvicorn_server(serving)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    until = time.monotonic() + 20
    while not server.started and time.monotonic() < until:
        time.sleep(0.01)
    try:
        yield Running(serving)
    finally:
        server.should_exit = True
        thread.join(10)
        listening.close()
    assert not thread.is_alive()
