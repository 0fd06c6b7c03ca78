"""Who may talk to the studio: one browser on this machine, with the token of its address.

Every request passes here before anything of it is read. Any page that a browser shows can send requests to
127.0.0.1, and a name of its own can be made to point there; so the user who asks, the name that was asked for
(Host), the page that asked (Origin, Sec-Fetch-Site), a cookie that no other site can send, and the length of what is
sent are all checked first.
"""

import hmac
import json
import os
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from enum import Enum
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from typing import Any

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]

HOST = "127.0.0.1"
LARGEST = 1 << 20
"""Bytes of a request's body; a state with long reasons has a few thousand."""
OPEN = frozenset({"/", "/session"})
"""Paths without a cookie: an empty page that asks for one. Those of ``/static/`` hold nothing of anybody."""
METHODS = frozenset({"GET", "HEAD", "POST"})
CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; report-uri /violation"
)
HEADERS = {
    "content-security-policy": CONTENT_POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-embedder-policy": "require-corp",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """An answer that ends a request, with its status and reason."""

    status: int
    words: str


@dataclass(slots=True, kw_only=True)
class Access:
    """The token of the address, good for one exchange, and the cookies it was exchanged for."""

    port: int
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    cookies: list[str] = field(default_factory=list)
    used: bool = False

    @property
    def host(self) -> str:
        """Return the name and port that a request must ask for."""
        return f"{HOST}:{self.port}"

    @property
    def origin(self) -> str:
        """Return the origin of the only page that may ask."""
        return f"http://{self.host}"

    @property
    def address(self) -> str:
        """Return what to open; a fragment is never sent to a server."""
        return f"{self.origin}/#token={self.token}"

    @property
    def cookie(self) -> str:
        """Return the cookie's name; browsers share cookies between ports."""
        return f"studio{self.port}"

    def exchange(self, token: str) -> str | None:
        """Return a new cookie for the token, which is used up; None if it is wrong or was used."""
        if self.used or not hmac.compare_digest(token.encode(), self.token.encode()):
            return None
        self.used = True
        self.cookies.append(secrets.token_urlsafe(32))
        return f"{self.cookie}={self.cookies[-1]}; Path=/; HttpOnly; SameSite=Strict"

    def renew(self) -> bool:
        """Make a new token if the last one was used; return whether one was made."""
        if not self.used:
            return False
        self.token, self.used = secrets.token_urlsafe(32), False
        return True

    def admits(self, cookies: str) -> bool:
        """Return whether a Cookie header holds one of the cookies given out."""
        try:
            read = SimpleCookie(cookies)
        except CookieError:
            return False
        shown = read[self.cookie].value if self.cookie in read else ""
        # Every cookie is compared, so that the time does not say which one is close.
        return any(hmac.compare_digest(shown.encode(), each.encode()) for each in self.cookies)


OVERFLOW = Path("/proc/sys/kernel/overflowuid")
CONNECTIONS = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
"""Linux's lists of connections, with the user whose process holds each end; those of IPv6 can be with IPv4's addresses."""
HERE = ("0100007F", "0000000000000000FFFF00000100007F")
"""127.0.0.1 in each of them."""
LISTENING = "0A"


class Asker(Enum):
    """Who is at the far end of a connection."""

    OWNER = "the studio's user, or root"
    OTHER = "another user of this machine"
    UNKNOWN = "who closed it since, so that no answer can arrive, or whose end cannot be looked up"


def is_listed(server: int) -> bool:
    """Return whether this machine lists who is connected to a port.

    Only Linux does. Asked once, before anybody is answered: no later failure to read the lists may pass for their absence.
    """
    return any(_listens(row, server) for row in _rows())


def asker(client: tuple[str, int] | None, server: int, *, listed: bool) -> Asker:
    """Return who asks; the owner where the machine does not list its connections.

    A connection that is not among those listed was closed: what was sent on it may be anybody's.
    """
    if client is None:
        # Closed before its address could be asked for.
        return Asker.UNKNOWN
    if client[0] != HOST:
        return Asker.OTHER
    if not listed:
        return Asker.OWNER
    # A list is not read at one moment, so a connection that is missing is looked for twice.
    for _ in range(2):
        try:
            rows = _rows()
        except OSError:
            return Asker.UNKNOWN
        users = {int(row[7]) for row in rows if _joins(row, client[1], server) and row[9] != "0"}
        if users and any(_joins(row, server, client[1]) for row in rows):
            if _nobody() in users:
                return Asker.UNKNOWN
            return Asker.OWNER if users <= {0, os.getuid()} else Asker.OTHER
    return Asker.UNKNOWN


def _nobody() -> int:
    """Return the number that stands for every user who has none in a user namespace, even for the owner."""
    try:
        return int(OVERFLOW.read_text())
    except (OSError, ValueError):
        return 65534


def _rows() -> list[list[str]]:
    return [line.split() for each in CONNECTIONS for line in _lines(each)]


def _lines(listed: Path) -> list[str]:
    """Return the lines of a list, none if there is none."""
    try:
        return listed.read_text().splitlines()[1:]
    except FileNotFoundError:
        return []


def _listens(row: list[str], port: int) -> bool:
    """Return whether a row is the studio's own, at which connections arrive."""
    here, at = row[1].split(":")
    return here in HERE and int(at, 16) == port and row[3] == LISTENING


def _joins(row: list[str], near: int, far: int) -> bool:
    """Return whether a row is the end at one port of a connection with another."""
    (here, port), (there, other) = row[1].split(":"), row[2].split(":")
    return here in HERE and there in HERE and (int(port, 16), int(other, 16)) == (near, far)


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """An application behind the checks, which adds headers to all answers."""

    app: App
    access: Access
    seen: Callable[[], None]
    """Called for each request that is let in with a cookie: the studio is in use."""
    warn: Callable[[], None]
    """Called for each request of another user of this machine."""
    listed: bool
    """Whether this machine lists who is connected to the studio."""

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it without reading its body."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        refused = self.refusal(scope)
        if refused is not None:
            await _refuse(refused, send)
            return
        if scope["path"] not in OPEN and not scope["path"].startswith("/static/"):
            self.seen()
        await self.app(scope, _bounded(receive), _with_headers(send))

    def refusal(self, scope: Message) -> Refused | None:
        """Return why a request is refused, from its connection and headers alone."""
        sent: dict[str, list[str]] = {}
        for name, value in scope["headers"]:
            sent.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
        return (
            self._other_user(scope)
            or self._wrong_host(sent)
            or self._other_page(scope, sent)
            or _wrong_body(scope["method"], sent)
            or self._no_cookie(scope["path"], sent)
        )

    def _other_user(self, scope: Message) -> Refused | None:
        """Refuse other users, whatever they send: the address was on the command line of a browser, which all can read."""
        found = asker(scope["client"], self.access.port, listed=self.listed)
        if found is Asker.OWNER:
            return None
        if found is Asker.OTHER:
            self.warn()
        return Refused(status=403, words="The studio belongs to another user of this machine.")

    def _wrong_host(self, sent: dict[str, list[str]]) -> Refused | None:
        """Refuse other names of this machine: one of them may belong to somebody else's page."""
        if sent.get("host") == [self.access.host]:
            return None
        return Refused(status=421, words="This is not the address of the studio.")

    def _other_page(self, scope: Message, sent: dict[str, list[str]]) -> Refused | None:
        """Refuse what another page makes the browser ask."""
        writes = scope["method"] not in ("GET", "HEAD")
        origins = sent.get("origin", [])
        own = origins == [self.access.origin] or (not origins and not writes)
        # A person who opens the address comes from nowhere; everything else comes from the page.
        sites = sent.get("sec-fetch-site", [])
        typed = sites == ["none"] and scope["path"] == "/" and not writes
        if own and (not sites or sites == ["same-origin"] or typed):
            return None
        return Refused(status=403, words="Only the studio's own page may ask.")

    def _no_cookie(self, path: str, sent: dict[str, list[str]]) -> Refused | None:
        if path in OPEN or path.startswith("/static/") or self.access.admits("; ".join(sent.get("cookie", []))):
            return None
        return Refused(status=401, words="Open the address that the command printed.")


def _wrong_body(method: str, sent: dict[str, list[str]]) -> Refused | None:
    """Refuse a body whose length is not stated, or that is too long, before any of it is read."""
    if method not in METHODS:
        return Refused(status=405, words="The studio answers GET and POST.")
    if "transfer-encoding" in sent:
        return Refused(status=411, words="State the length of what is sent.")
    lengths = sent.get("content-length", [] if method == "POST" else ["0"])
    if len(lengths) != 1 or not (lengths[0].isascii() and lengths[0].isdigit()):
        return Refused(status=411, words="State the length of what is sent.")
    if len(lengths[0]) > len(str(LARGEST)) or int(lengths[0]) > LARGEST:
        return Refused(status=413, words="What was sent is too long.")
    return None


def _bounded(receive: Receive) -> Receive:
    """Return a reader that stops at the largest body."""
    read = 0

    async def bounded() -> Message:
        nonlocal read
        message = await receive()
        read += len(message.get("body", b""))
        return message if read <= LARGEST else {"type": "http.disconnect"}

    return bounded


def _with_headers(send: Send) -> Send:
    added = [(name.encode(), value.encode()) for name, value in HEADERS.items()]

    async def with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            own = {name for name, _ in message.get("headers", [])}
            message["headers"] = [*message.get("headers", []), *(each for each in added if each[0] not in own)]
        await send(message)

    return with_headers


async def _refuse(refused: Refused, send: Send) -> None:
    """Answer with the reason and close without reading the body."""
    body = json.dumps({"problem": refused.words}).encode()
    headers = HEADERS | {"content-type": "application/json", "content-length": str(len(body)), "connection": "close"}
    listed = [(name.encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": refused.status, "headers": listed})
    await send({"type": "http.response.body", "body": body})
