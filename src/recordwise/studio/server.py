"""The studio's server: one page, typed JSON, one thread for heavy work, for one browser on this machine.

It listens on 127.0.0.1 only, reads nothing outside the folder it was started in, and ends when it is not used.
Starlette and uvicorn (extra ``studio``) are imported when it starts.
"""

import asyncio
import json
import socket
import time
import traceback
import webbrowser
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from recordwise.errors import ExtraError, ParameterError, RecordwiseError
from recordwise.studio.desk import Desk
from recordwise.studio.guard import HOST, Access, App, Guard, is_listed
from recordwise.studio.page import page_html, static_files
from recordwise.studio.worker import UNEXPECTED

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

IDLE = 3600.0
"""Seconds without a request of the page until the server ends."""
BEAT = 10.0
"""Seconds between two signs of life to the page."""
CONNECTIONS = 64
HEADERS_AT_MOST = 16 << 10
KINDS: dict[type, str] = {
    str: "a text",
    int: "a whole number",
    dict: "an object",
    list: "a list",
    bool: "true or false",
}


@dataclass(slots=True, kw_only=True)
class Serving:
    """A server that runs: what it works on, who may ask, and when somebody last did."""

    desk: Desk
    access: Access
    idle: float = IDLE
    tell: Callable[[str], None] = print
    used: float = field(default_factory=time.monotonic)
    violations: int = 0
    """Reports of the content policy; there should be none."""
    warned: bool = False
    end: Callable[[], None] = lambda: None

    def seen(self) -> None:
        """Note that the page is in use."""
        self.used = time.monotonic()

    def warn(self) -> None:
        """Say once that another user asked."""
        if not self.warned:
            self.warned = True
            self.tell("Another user of this machine tried to open the studio, and was refused.")

    async def watch(self) -> None:
        """End the server once nobody has asked for a while and nothing is being computed."""
        while time.monotonic() - self.used < self.idle:
            await asyncio.sleep(min(1.0, self.idle / 4))
            if self.desk.worker.is_busy():
                self.seen()
        self.tell("Nobody has used the studio for a while: it ends. What was chosen is kept; start it again to go on.")
        self.end()


def application(serving: Serving) -> App:
    """Return the application behind its guard; its port listens already."""
    try:
        from starlette.applications import Starlette
        from starlette.routing import Route
    except ImportError:
        raise ExtraError(what="the studio", extra="studio") from None

    @asynccontextmanager
    async def lifespan(_: Any) -> AsyncIterator[None]:
        watching = asyncio.create_task(serving.watch())
        serving.desk.open()
        yield
        watching.cancel()
        serving.desk.close()

    listed = [Route(path, _answering(serving, function), methods=[method]) for method, path, function in ROUTES]
    app = Starlette(routes=listed, lifespan=lifespan)
    shown = is_listed(serving.access.port)
    return Guard(app=app, access=serving.access, seen=serving.seen, warn=serving.warn, listed=shown)


def _answering(serving: Serving, function: "Callable[[Serving, Request], Any]") -> "Callable[[Request], Any]":
    """Return a route's function: refusals of ours are sentences for the page."""

    async def answer(request: "Request") -> "Response":
        from starlette.responses import JSONResponse

        try:
            found: Response = await function(serving, request)
        except RecordwiseError as error:
            return JSONResponse({"problem": str(error)}, status_code=422)
        except Exception:
            # On the terminal of the owner, never on the page.
            traceback.print_exc()
            return JSONResponse({"problem": UNEXPECTED}, status_code=500)
        return found

    return answer


async def _body(request: "Request", **fields: type) -> dict[str, Any]:
    """Read a JSON object with exactly these fields and types."""
    try:
        found = json.loads(await request.body())
        # Half a letter can be written in JSON, and nowhere else.
        json.dumps(found, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        raise ParameterError(parameter="the request", problem="is not JSON") from None
    if not isinstance(found, dict) or found.keys() != fields.keys():
        raise ParameterError(parameter="the request", problem=f"must have the fields {', '.join(fields)}")
    for name, kind in fields.items():
        if type(found[name]) is not kind:
            raise ParameterError(parameter=name, problem=f"must be {KINDS[kind]}")
    return found


def _json(value: Mapping[str, Any]) -> "Response":
    from starlette.responses import JSONResponse

    return JSONResponse(value)


async def _off(function: Callable[..., Any], *arguments: Any) -> Any:
    """Run what may take a moment apart from the loop that answers."""
    from starlette.concurrency import run_in_threadpool

    return await run_in_threadpool(function, *arguments)


# The routes: what is open to all, then what needs the cookie.


async def _page(serving: Serving, request: "Request") -> "Response":
    from starlette.responses import HTMLResponse

    if not serving.access.admits(request.headers.get("cookie", "")) and serving.access.renew():
        serving.tell(f"To open the studio in another window: {serving.access.address}")
    return HTMLResponse(page_html())


async def _static(serving: Serving, request: "Request") -> "Response":
    """Answer with one of the studio's own files; the list is fixed, no path is followed."""
    from starlette.responses import Response

    found = static_files().get(request.path_params["name"])
    if found is None:
        return Response(status_code=404)
    return Response(found.content, media_type=found.media_type)


async def _session(serving: Serving, request: "Request") -> "Response":
    from starlette.responses import JSONResponse

    token = (await _body(request, token=str))["token"]
    cookie = serving.access.exchange(token)
    if cookie is None:
        return JSONResponse({"problem": "Open the address that the command printed."}, status_code=401)
    return JSONResponse({"open": True}, headers={"set-cookie": cookie})


async def _about(serving: Serving, request: "Request") -> "Response":
    return _json(await _off(serving.desk.about))


async def _trade(serving: Serving, request: "Request") -> "Response":
    from starlette.responses import Response

    return Response(await _off(serving.desk.trade_text), media_type="application/json")


async def _events(serving: Serving, request: "Request") -> "Response":
    """Stream the progress of jobs as server-sent events."""
    from starlette.responses import StreamingResponse

    async def stream() -> AsyncIterator[str]:
        async for job in serving.desk.worker.events(BEAT):
            yield ": alive\n\n" if job is None else f"data: {json.dumps(job.to_json())}\n\n"

    return StreamingResponse(stream(), media_type="text/event-stream")


async def _cancel(serving: Serving, request: "Request") -> "Response":
    serving.desk.worker.cancel((await _body(request, number=int))["number"])
    return _json({})


async def _keep(serving: Serving, request: "Request") -> "Response":
    await _off(serving.desk.keep, (await _body(request, state=dict))["state"])
    return _json({})


async def _exact(serving: Serving, request: "Request") -> "Response":
    """Answer once the numbers are there; those of an older state are given up for newer ones."""
    job = serving.desk.exact((await _body(request, state=dict))["state"])
    await _off(job.ended.wait)
    return _json({"status": job.status, "texts": job.result or {}, "problem": job.problem})


async def _hand_over(serving: Serving, request: "Request") -> "Response":
    asked = await _body(request, state=dict, save=bool)
    return _json(await _off(serving.desk.hand_over, asked["state"], asked["save"]))


async def _propose(serving: Serving, request: "Request") -> "Response":
    asked = await _body(request, records=str, headed=bool)
    return _json(await _off(serving.desk.propose, asked["records"], asked["headed"]))


async def _draft(serving: Serving, request: "Request") -> "Response":
    return _json(await _off(serving.desk.draft, (await _body(request, form=dict))["form"]))


async def _begin(serving: Serving, request: "Request") -> "Response":
    return _json(await _off(serving.desk.begin, (await _body(request, form=dict))["form"]))


async def _violation(serving: Serving, request: "Request") -> "Response":
    serving.violations += 1
    serving.tell("The page tried something that its content policy forbids: please report this.")
    return _json({})


ROUTES: tuple[tuple[str, str, "Callable[[Serving, Request], Any]"], ...] = (
    ("GET", "/", _page),
    ("GET", "/static/{name}", _static),
    ("POST", "/session", _session),
    ("GET", "/about", _about),
    ("GET", "/trade", _trade),
    ("GET", "/events", _events),
    ("POST", "/cancel", _cancel),
    ("POST", "/keep", _keep),
    ("POST", "/exact", _exact),
    ("POST", "/handover", _hand_over),
    ("POST", "/propose", _propose),
    ("POST", "/draft", _draft),
    ("POST", "/begin", _begin),
    ("POST", "/violation", _violation),
)


def serve(desk: Desk, *, browser: bool = True, tell: Callable[[str], None] = print, idle: float = IDLE) -> None:
    """Serve the studio until it is interrupted or idle.

    Args:
        desk: What it works on.
        browser: Whether to open a browser.
        tell: Takes each line for the terminal.
        idle: Seconds without a request until it ends.
    """
    listening = socket.create_server((HOST, 0))
    with listening:
        access = Access(port=listening.getsockname()[1])
        serving = Serving(desk=desk, access=access, tell=tell, idle=idle)
        server = uvicorn_server(serving)
        tell(f"The studio is at {access.address}")
        if browser:
            webbrowser.open(access.address)
        server.run(sockets=[listening])


def uvicorn_server(serving: Serving) -> Any:
    """Return the server, not yet running: small limits, no log of requests, no words about itself."""
    try:
        import uvicorn
    except ImportError:
        raise ExtraError(what="the studio", extra="studio") from None

    config = uvicorn.Config(
        application(serving),
        http="h11",
        ws="none",
        loop="asyncio",
        lifespan="on",
        log_level="critical",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=CONNECTIONS,
        h11_max_incomplete_event_size=HEADERS_AT_MOST,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(config)

    def end() -> None:
        server.should_exit = True

    serving.end = end
    return server
