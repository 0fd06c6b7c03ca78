"""Attacks on the studio's server: each is refused, nothing is read, and the server goes on."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

from recordwise.studio.guard import HOST, LARGEST, Access, Guard
from recordwise.studio.worker import CANCELED, DONE, FAILED, Worker
from studio.serving import Running, running


class Untouched:
    """A desk that notes whatever is asked of it."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.worker = Worker()

    def open(self) -> None: ...

    def close(self) -> None:
        self.worker.close()

    def __getattr__(self, name: str) -> Any:
        def noted(*arguments: Any) -> Any:
            self.asked.append(name)
            return "{}" if name == "trade_text" else {}

        return noted


@pytest.fixture(scope="module")
def desk() -> Untouched:
    return Untouched()


@pytest.fixture(scope="module")
def studio(desk: Untouched) -> Iterator[Running]:
    with running(desk) as found:
        found.log_in()
        yield found


@pytest.fixture(autouse=True)
def unharmed(studio: Running, desk: Untouched) -> Iterator[None]:
    """Nothing was asked of the desk, and the page is still answered."""
    desk.asked.clear()
    yield
    assert desk.asked == []
    assert studio.ask("GET", "/trade") == (200, b"{}")


def test_the_pages_own_requests_are_answered(studio: Running, desk: Untouched) -> None:
    answer, content = studio.response("GET", "/about")
    assert (answer.status, content) == (200, b"{}")
    assert "unsafe" not in answer.headers["content-security-policy"]
    assert answer.headers["cache-control"] == "no-store"
    assert "server" not in answer.headers
    assert "access-control-allow-origin" not in answer.headers
    desk.asked.clear()


@pytest.mark.parametrize(
    "changed",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://localhost:8000"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
        {"Sec_Fetch_Site": "none"},
    ],
)
def test_another_page_may_not_ask(studio: Running, changed: dict[str, str]) -> None:
    for method, path in (("GET", "/trade"), ("POST", "/keep"), ("GET", "/events")):
        body: dict[str, Any] | None = {"state": {}} if method == "POST" else None
        assert studio.ask(method, path, body, studio.own(**changed))[0] == 403


def test_a_request_that_writes_states_its_page(studio: Running) -> None:
    assert studio.ask("POST", "/keep", {"state": {}}, studio.own(Origin=None))[0] == 403


KNOCKING = """
import os, socket, struct, sys, time
port, user, way, request = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.stdin.buffer.read()
if user != os.getuid():
    os.setgid(user), os.setuid(user)
knocking = socket.socket(socket.AF_INET6 if way == "mapped" else socket.AF_INET)
if way == "elsewhere":
    knocking.bind(("127.0.0.2", 0))
knocking.connect(("::ffff:127.0.0.1" if way == "mapped" else "127.0.0.1", port))
if way == "gone":
    time.sleep(0.1)
    knocking.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
knocking.sendall(request)
if way != "gone":
    print(knocking.recv(100).split()[1].decode())
knocking.close()
"""


def ways() -> list[str]:
    """From 127.0.0.1, by IPv6's name for it where the machine has IPv6, and from another address of the machine."""
    try:
        socket.socket(socket.AF_INET6).close()
    except OSError:
        return ["plain", "elsewhere"]
    return ["plain", "mapped", "elsewhere"]


def knocked(studio: Running, user: int, way: str, request: str) -> str:
    """The status of what another process asks."""
    command = [sys.executable, "-c", KNOCKING, str(studio.access.port), str(user), way]
    return subprocess.run(command, input=request.encode(), capture_output=True, check=True).stdout.decode().strip()


@pytest.mark.process
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lists the users of connections")
@pytest.mark.parametrize("way", ways())
def test_the_same_user_is_let_in_from_where_a_browser_comes(studio: Running, way: str) -> None:
    request = f"GET /static/main.js HTTP/1.1\r\nHost: {studio.access.host}\r\n\r\n"
    assert knocked(studio, os.getuid(), way, request) == ("403" if way == "elsewhere" else "200")


@pytest.mark.process
@pytest.mark.skipif(sys.platform != "linux" or os.getuid() != 0, reason="only root can be another user")
@pytest.mark.parametrize("way", ways())
def test_another_user_is_refused_with_token_and_cookie(studio: Running, way: str) -> None:
    shown = "".join(f"{name}: {value}\r\n" for name, value in studio.own().items())
    for line in ("GET /about", "GET /", "GET /static/main.js"):
        request = f"{line} HTTP/1.1\r\nHost: {studio.access.host}\r\n{shown}\r\n"
        assert knocked(studio, 65534, way, request) == "403"
    studio.ask("GET", "/", None, studio.own(Cookie=None))
    body = json.dumps({"token": studio.access.token})
    request = (
        f"POST /session HTTP/1.1\r\nHost: {studio.access.host}\r\n{shown}Content-Length: {len(body)}\r\n\r\n{body}"
    )
    assert knocked(studio, 65534, way, request) == "403"
    assert not studio.access.used, "the token is still its owner's"
    # Who resets the connection at once is no longer listed when the request is read.
    for _ in range(5):
        assert not knocked(studio, 65534, "gone", request)
    assert studio.ask("GET", "/static/main.js", None, studio.own(Cookie=None))[0] == 200
    assert not studio.access.used, "nor does a request that nobody waits for take it"
    studio.access.used = True


TAKEN = """
import os, resource, socket, sys
from recordwise.studio.guard import asker, is_listed
listening = socket.create_server(("127.0.0.1", 0))
port = listening.getsockname()[1]
listed = is_listed(port)
asking = socket.create_connection(("127.0.0.1", port))
answering, client = listening.accept()
print(asker(client, port, listed=listed).name)
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
taken = []
try:
    while True:
        taken.append(os.open(os.devnull, os.O_RDONLY))
except OSError:
    pass
print(asker(client, port, listed=listed).name)
"""


@pytest.mark.process
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lists the users of connections")
def test_who_asks_when_no_file_can_be_opened_is_not_taken_for_the_owner() -> None:
    found = subprocess.run([sys.executable, "-c", TAKEN], capture_output=True, check=True, text=True).stdout
    assert found.split() == ["OWNER", "UNKNOWN"]


@pytest.mark.process
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lists the users of connections")
def test_the_owner_who_leaves_early_is_not_called_another_user(studio: Running) -> None:
    request = f"GET /static/main.js HTTP/1.1\r\nHost: {studio.access.host}\r\n\r\n"
    studio.serving.warned = False
    for _ in range(5):
        knocked(studio, os.getuid(), "gone", request)
    assert studio.ask("GET", "/static/main.js", None, studio.own(Cookie=None))[0] == 200
    assert not studio.serving.warned


@pytest.mark.parametrize("host", ["evil.example", "localhost:{port}", "127.0.0.1", "127.0.0.1.evil.example:{port}", ""])
def test_a_name_that_points_here_is_not_served(studio: Running, host: str) -> None:
    """DNS rebinding: a page of another name reaches 127.0.0.1, and its requests are of its own origin."""
    name = host.format(port=studio.access.port)
    for path in ("/", "/trade", "/static/main.js"):
        headers = studio.own(Host=name, Origin=f"http://{name}") | {"Host": name}
        assert studio.ask("GET", path, None, headers)[0] in (400, 421)


def test_two_names_are_none(studio: Running) -> None:
    with socket.create_connection(("127.0.0.1", studio.access.port), timeout=10) as open_:
        lines = f"GET /trade HTTP/1.1\r\nHost: {studio.access.host}\r\nHost: evil\r\nCookie: {studio.cookie}\r\n\r\n"
        open_.sendall(lines.encode())
        assert open_.recv(100).split()[1] in (b"400", b"421")


@pytest.mark.parametrize("cookie", [None, "studio=1", "other=2; studio{port}=", "studio{port}=wrong", 'studio{port}="'])
def test_without_the_cookie_nothing_is_read(studio: Running, cookie: str | None) -> None:
    shown = cookie and cookie.format(port=studio.access.port)
    for path in ("/about", "/trade", "/events"):
        assert studio.ask("GET", path, None, studio.own(Cookie=shown))[0] == 401
    assert studio.ask("POST", "/handover", {"state": {}, "save": True}, studio.own(Cookie=shown))[0] == 401


def test_a_token_is_good_once(studio: Running) -> None:
    used = studio.access.token
    for token in (used, "", "a", used[:-1]):
        assert studio.ask("POST", "/session", {"token": token}, studio.own(Cookie=None))[0] == 401
    answer, _ = studio.response("GET", "/", None, studio.own(Cookie=None))
    assert answer.status == 200
    assert studio.access.token != used, "whoever owns the terminal is shown a new one"
    assert studio.ask("POST", "/session", {"token": used}, studio.own(Cookie=None))[0] == 401
    answer, _ = studio.response("POST", "/session", {"token": studio.access.token}, studio.own(Cookie=None))
    assert answer.status == 200
    assert "HttpOnly" in answer.headers["set-cookie"]
    assert "SameSite=Strict" in answer.headers["set-cookie"]
    assert "token" not in answer.headers["set-cookie"]


@pytest.mark.parametrize(
    "path",
    [
        "/static/../desk.py",
        "/static/..%2fdesk.py",
        "/static/%2e%2e/%2e%2e/errors.py",
        "/static/..%5cdesk.py",
        "/static//etc/passwd",
        "/static/%2fetc%2fpasswd",
        "/static/main.js%00.py",
        "/../../../etc/passwd",
        "/static/page.py",
    ],
)
def test_no_path_leads_outside(studio: Running, path: str) -> None:
    assert studio.ask("GET", path)[0] == 404


def test_two_gigabytes_are_refused_before_they_are_read(studio: Running) -> None:
    """The refusal comes although not one byte of the body was sent."""
    started = time.monotonic()
    with socket.create_connection(("127.0.0.1", studio.access.port), timeout=10) as open_:
        headers = "".join(f"{name}: {value}\r\n" for name, value in studio.own().items())
        lines = f"POST /keep HTTP/1.1\r\nHost: {studio.access.host}\r\n{headers}Content-Length: {2 << 30}\r\n\r\n"
        open_.sendall(lines.encode())
        assert open_.recv(100).split()[1] == b"413"
    assert time.monotonic() - started < 5


@pytest.mark.parametrize("length", [None, "-1", "1e3", "", "0x10", "١"])
def test_a_body_of_unknown_length_is_refused(length: str | None) -> None:
    access = Access(port=1)
    sent = {"host": [access.host], "origin": [access.origin]} | ({} if length is None else {"content-length": [length]})
    headers = [(name.encode(), each.encode("utf-8")) for name, values in sent.items() for each in values]
    scope = {"type": "http", "method": "POST", "path": "/session", "headers": headers, "client": (HOST, 2)}
    guarding = Guard(app=None, access=access, seen=lambda: None, warn=lambda: None, listed=False)  # type: ignore[arg-type]
    refused = guarding.refusal(scope)
    assert refused is not None
    assert refused.status == 411


def test_a_body_in_pieces_is_refused(studio: Running) -> None:
    with socket.create_connection(("127.0.0.1", studio.access.port), timeout=10) as open_:
        headers = "".join(f"{name}: {value}\r\n" for name, value in studio.own().items())
        lines = f"POST /keep HTTP/1.1\r\nHost: {studio.access.host}\r\n{headers}Transfer-Encoding: chunked\r\n\r\n"
        open_.sendall(lines.encode())
        assert open_.recv(100).split()[1] == b"411"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{",
        b'{"state": 1}',
        b'{"state": {}, "more": 1}',
        b"[" * 100_000,
        b"\xff",
        b"null",
        b"9" * (LARGEST - 10),
    ],
)
def test_what_is_no_request_is_refused_in_words(studio: Running, body: bytes) -> None:
    with socket.create_connection(("127.0.0.1", studio.access.port), timeout=10) as open_:
        headers = "".join(f"{name}: {value}\r\n" for name, value in studio.own().items())
        lines = f"POST /keep HTTP/1.1\r\nHost: {studio.access.host}\r\n{headers}Content-Length: {len(body)}\r\n\r\n"
        open_.sendall(lines.encode() + body)
        assert open_.recv(100).split()[1] == b"422"


@pytest.mark.slow
def test_ten_thousand_requests_leave_it_alive(studio: Running) -> None:
    """Wrong ones and right ones, over connections that are closed and kept; no cookie is given out for them."""
    cookies = len(studio.access.cookies)
    wrong = b"GET /trade HTTP/1.1\r\nHost: evil\r\n\r\n"
    static = f"GET /static/none HTTP/1.1\r\nHost: {studio.access.host}\r\n\r\n".encode()
    for _ in range(200):
        with socket.create_connection(("127.0.0.1", studio.access.port), timeout=20) as open_:
            open_.sendall(static * 50 + wrong)
            while open_.recv(1 << 16):
                pass
    assert len(studio.access.cookies) == cookies


def test_many_connections_that_say_nothing(studio: Running) -> None:
    """More than are served at once: further ones are refused until some end."""
    opened = [socket.create_connection(("127.0.0.1", studio.access.port), timeout=10) for _ in range(200)]
    for each in opened:
        each.close()
    until = time.monotonic() + 10
    while studio.ask("GET", "/static/none")[0] != 404 and time.monotonic() < until:
        time.sleep(0.05)


@pytest.mark.costly
def test_it_ends_when_nobody_asks() -> None:
    with running(Untouched(), idle=1.5) as found:
        found.log_in()
        assert found.ask("GET", "/about")[0] == 200
        until = time.monotonic() + 20
        while time.monotonic() < until:
            try:
                found.ask("GET", "/static/none", None, found.own(Cookie=None))
            except OSError:
                return
            time.sleep(0.05)
    pytest.fail("it did not end")


# The worker.


def wait_for(job: Any, statuses: set[str]) -> None:
    until = time.monotonic() + 10
    while job.status not in statuses and time.monotonic() < until:
        time.sleep(0.005)
    assert job.status in statuses


def test_work_is_done_in_turn_and_canceled_by_newer_work_of_its_kind() -> None:
    from recordwise import progress
    from recordwise.errors import ParameterError

    def endless() -> None:
        while True:
            progress.tell("working", 0.5)
            time.sleep(0.002)

    def refused() -> None:
        raise ParameterError(parameter="rho", problem="must be positive")

    def broken() -> None:
        raise ValueError("record 17")

    worker = Worker()
    first = worker.start("trade", endless)
    second = worker.start("trade", lambda: 5)
    wait_for(second, {DONE})
    assert (first.status, second.result) == (CANCELED, 5)
    third = worker.start("draw", endless)
    worker.cancel(third.number)
    wait_for(third, {CANCELED})
    fourth, fifth = worker.start("exact", refused), worker.start("plan", broken)
    wait_for(fifth, {FAILED})
    assert fourth.problem == "rho must be positive."
    assert "17" not in fifth.problem
    worker.close()


def test_halves_of_letters_are_refused_as_no_json(studio: Running, capsys: pytest.CaptureFixture[str]) -> None:
    for path, body in (("/session", {"token": "\ud800"}), ("/draft", {"form": {"x": "\udfff"}})):
        status, content = studio.ask("POST", path, body)
        assert (status, json.loads(content)["problem"]) == (422, "the request is not JSON.")
    assert "Traceback" not in capsys.readouterr().err


def test_progress_is_streamed(studio: Running, desk: Untouched) -> None:
    with socket.create_connection(("127.0.0.1", studio.access.port), timeout=10) as open_:
        headers = "".join(f"{name}: {value}\r\n" for name, value in studio.own().items())
        open_.sendall(f"GET /events HTTP/1.1\r\nHost: {studio.access.host}\r\n{headers}\r\n".encode())
        assert b"text/event-stream" in open_.recv(4096)
        desk.worker.start("trade", lambda: 1)
        read = b""
        while b'"done"' not in read:
            read += open_.recv(4096)
    lines = [line for line in read.decode().splitlines() if line.startswith("data: ")]
    assert json.loads(lines[-1].removeprefix("data: "))["kind"] == "trade"
