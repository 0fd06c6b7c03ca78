"""Guard, worker, desk, forms and files of the studio without a server, at the last value that is taken and the next."""

import hashlib
import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event as Signal
from types import SimpleNamespace
from typing import Any

import pytest

from recordwise.errors import ExtraError, ParameterError
from recordwise.studio import begin, desk, form, guard, worker
from recordwise.studio import trade as trades
from recordwise.studio.desk import Desk, Subject
from recordwise.studio.guard import HEADERS, HOST, LARGEST, Access, Guard, Refused
from recordwise.studio.trade import Trade
from recordwise.studio.words import _Reader
from recordwise.studio.worker import Job, Worker
from studio.serving import awaited
from studio.trade_sample import sample_trade

Patch = pytest.MonkeyPatch


# Who may ask.


def access() -> Access:
    return Access(port=8123, token="the token", cookies=["one", "two"])


def scope(method: str = "GET", path: str = "/about", **changed: Any) -> dict[str, Any]:
    """A request of the page itself; a header that is None is left out, of a list each is sent."""
    headers: dict[str, Any] = {"Host": "127.0.0.1:8123", "Cookie": "studio8123=two", "Sec-Fetch-Site": "same-origin"}
    headers |= {"Origin": "http://127.0.0.1:8123", "Content-Length": "2"} if method == "POST" else {}
    headers |= {name.replace("_", "-"): each for name, each in changed.items()}
    sent = [
        (name.encode(), each.encode())
        for name, given in headers.items()
        if given is not None
        for each in (given if isinstance(given, list) else [given])
    ]
    return {"type": "http", "method": method, "path": path, "headers": sent, "client": (HOST, 40000)}


def guarding(app: Any, seen: Callable[[], None] = lambda: None, warn: Callable[[], None] = lambda: None) -> Guard:
    return Guard(app=app, access=access(), seen=seen, warn=warn, listed=False)


def refused(*given: Any, **changed: Any) -> int | None:
    found = guarding(app=None).refusal(scope(*given, **changed))
    return None if found is None else found.status


@pytest.mark.parametrize(
    ("given", "changed", "status"),
    [
        (("GET", "/about"), {}, None),
        (("HEAD", "/about"), {}, None),
        (("POST", "/keep"), {}, None),
        (("GET", "/about"), {"Host": "localhost:8123"}, 421),
        (("GET", "/about"), {"Host": None}, 421),
        (("GET", "/about"), {"Host": ["127.0.0.1:8123"] * 2}, 421),
        (("GET", "/about"), {"Origin": "http://127.0.0.1:8123"}, None),
        (("GET", "/about"), {"Origin": "http://other"}, 403),
        (("GET", "/about"), {"Origin": ["http://127.0.0.1:8123"] * 2}, 403),
        (("POST", "/keep"), {"Origin": None}, 403),
        (("HEAD", "/about"), {"Origin": None}, None),
        (("GET", "/about"), {"Sec_Fetch_Site": None}, None),
        (("GET", "/about"), {"Sec_Fetch_Site": "none"}, 403),
        (("GET", "/"), {"Sec_Fetch_Site": "none"}, None),
        (("POST", "/"), {"Sec_Fetch_Site": "none"}, 403),
        (("GET", "/"), {"Sec_Fetch_Site": "cross-site"}, 403),
        (("GET", "/"), {"Sec_Fetch_Site": ["same-origin", "none"]}, 403),
        (("PUT", "/keep"), {"Origin": "http://127.0.0.1:8123"}, 405),
        (("POST", "/keep"), {"Transfer_Encoding": "chunked"}, 411),
        (("POST", "/keep"), {"Content_Length": None}, 411),
        (("POST", "/keep"), {"Content_Length": ["2", "2"]}, 411),
        (("POST", "/keep"), {"Content_Length": "-2"}, 411),
        (("POST", "/keep"), {"Content_Length": "x"}, 411),
        (("POST", "/keep"), {"Content_Length": "\xb2"}, 411),
        (("POST", "/keep"), {"Content_Length": str(LARGEST)}, None),
        (("POST", "/keep"), {"Content_Length": str(LARGEST + 1)}, 413),
        (("POST", "/keep"), {"Content_Length": "0000000"}, None),
        (("POST", "/keep"), {"Content_Length": "00000000"}, 413),
        (("GET", "/about"), {"Content_Length": "0"}, None),
        (("GET", "/about"), {"Content_Length": str(LARGEST + 1)}, 413),
        (("GET", "/about"), {"Cookie": None}, 401),
        (("GET", "/about"), {"Cookie": "studio8123=three"}, 401),
        (("GET", "/about"), {"Cookie": "studio8124=two"}, 401),
        (("GET", "/about"), {"Cookie": "other=1; studio8123=one"}, None),
        (("GET", "/about"), {"Cookie": ["other=1", "studio8123=one"]}, None),
        (("GET", "/"), {"Cookie": None}, None),
        (("POST", "/session"), {"Cookie": None}, None),
        (("GET", "/static/a.js"), {"Cookie": None}, None),
        (("GET", "/staticx"), {"Cookie": None}, 401),
    ],
)
def test_a_request_is_judged_by_its_first_lines(given: tuple[str, str], changed: Any, status: int | None) -> None:
    assert refused(*given, **changed) == status


def test_the_limits_are_those_that_are_written() -> None:
    assert LARGEST == 1024 * 1024
    assert trades.MOST_BYTES == desk.MOST_BYTES == 50_000_000
    assert begin.MOST_FILES == 200


def test_a_token_is_good_once_and_renewed_once_it_was_used() -> None:
    own = Access(port=1, token="t")
    assert (own.host, own.origin, own.address) == ("127.0.0.1:1", "http://127.0.0.1:1", "http://127.0.0.1:1/#token=t")
    assert own.cookie == "studio1"
    assert own.renew() is False
    assert own.token == "t"
    assert own.exchange("x") is None
    assert not own.used
    cookie = own.exchange("t")
    assert cookie == f"studio1={own.cookies[0]}; Path=/; HttpOnly; SameSite=Strict"
    assert (own.used, len(own.cookies), len(own.cookies[0])) == (True, 1, 43)
    assert own.exchange("t") is None
    assert own.renew() is True
    assert (own.used, own.token != "t", len(own.token)) == (False, True, 43)
    again = own.exchange(own.token)
    assert again is not None
    assert own.admits(cookie.partition(";")[0])
    assert own.admits(again.partition(";")[0])
    assert not own.admits("studio1=")
    assert not own.admits("")
    assert not Access(port=1).admits("studio1=")
    assert len(Access(port=1).token) == 43
    assert Access(port=1).token != Access(port=1).token


def asked(app: Any, given: dict[str, Any], seen: list[str], *messages: Any) -> list[dict[str, Any]]:
    """What is sent for a request."""
    sent: list[dict[str, Any]] = []
    waiting = list(messages)

    async def receive() -> Any:
        return waiting.pop(0)

    async def send(message: Any) -> None:
        sent.append(message)

    awaited(guarding(app, lambda: seen.append("seen"), lambda: seen.append("warned"))(given, receive, send))
    return sent


async def echo(given: Any, receive: Any, send: Any) -> None:
    """Send back two messages of a body."""
    first, second = await receive(), await receive()
    await send({"type": "http.response.start", "headers": [(b"cache-control", b"own")]})
    await send({"type": "http.response.body", "body": [first, second]})


def test_what_is_let_in_is_noted_and_answered_with_all_headers() -> None:
    messages = ({"type": "http.request", "body": b"ab"}, {"type": "http.request"})
    for path, noted in (("/about", ["seen"]), ("/", []), ("/session", []), ("/static/a.js", [])):
        seen: list[str] = []
        start, body = asked(echo, scope(path=path), seen, *messages)
        assert seen == noted
        assert body["body"] == list(messages)
        wanted = {name: "own" if name == "cache-control" else value for name, value in HEADERS.items()}
        assert {name.decode(): value.decode() for name, value in start["headers"]} == wanted
        assert len(start["headers"]) == len(wanted)


def test_a_body_is_read_up_to_the_largest() -> None:
    whole = {"type": "http.request", "body": b"x" * LARGEST}
    more = {"type": "http.request", "body": b"x"}
    assert asked(echo, scope(), [], whole, {"type": "http.request"})[1]["body"][0] is whole
    assert asked(echo, scope(), [], whole, more)[1]["body"] == [whole, {"type": "http.disconnect"}]
    assert asked(echo, scope(), [], more, whole)[1]["body"] == [more, {"type": "http.disconnect"}]


def test_a_refusal_is_a_sentence_and_closes_the_connection() -> None:
    seen: list[str] = []
    start, body = asked(None, scope(Cookie=None), seen)
    told = b'{"problem": "Open the address that the command printed."}'
    assert (start["type"], start["status"], seen) == ("http.response.start", 401, [])
    headers = {name.decode(): value.decode() for name, value in start["headers"]}
    own = {"content-type": "application/json", "content-length": str(len(told)), "connection": "close"}
    assert headers == HEADERS | own
    assert body == {"type": "http.response.body", "body": told}
    assert Refused(status=1, words="x").words == "x"


def test_the_life_of_the_server_passes_and_nothing_else_does() -> None:
    seen: list[Any] = []

    async def app(given: Any, receive: Any, send: Any) -> None:
        seen.append(given)

    assert asked(app, {"type": "lifespan"}, []) == []
    assert asked(app, {"type": "websocket"}, []) == []
    assert seen == [{"type": "lifespan"}]


# Work apart.


def finished(job: Job) -> Job:
    assert job.ended.wait(20)
    return job


def test_a_job_tells_what_it_does_and_what_came_of_it() -> None:
    own = Worker()
    try:
        from recordwise import progress

        def work() -> str:
            progress.tell("half", 0.123456)
            return "done it"

        job = finished(own.start("a", work))
        assert (job.status, job.result, job.share, job.doing) == ("done", "done it", 1.0, "half")
        job.share = 0.123456
        assert job.to_json() == {
            "number": 1,
            "kind": "a",
            "doing": "half",
            "share": 0.1235,
            "status": "done",
            "problem": "",
        }
        again = finished(own.start("a", lambda: None))
        assert again.number == 2
        assert Job(number=1, kind="b").to_json() == {
            "number": 1,
            "kind": "b",
            "doing": "",
            "share": 0.0,
            "status": "waiting",
            "problem": "",
        }
    finally:
        own.close()


def test_a_job_that_fails_says_why_or_that_nobody_expected_it(capsys: pytest.CaptureFixture[str]) -> None:
    own = Worker()
    try:

        def refuse() -> None:
            raise ParameterError(parameter="p", problem="is wrong")

        assert finished(own.start("a", refuse)).to_json()["problem"] == "p is wrong."
        assert capsys.readouterr().err == ""
        failed = finished(own.start("a", lambda: 1 / 0))
        assert (failed.status, failed.problem) == ("failed", worker.UNEXPECTED)
        assert "ZeroDivisionError" in capsys.readouterr().err
        assert failed.share == 0.0
    finally:
        own.close()


def test_a_new_job_cancels_older_ones_of_its_kind_and_no_other() -> None:
    own, go = Worker(), Signal()
    try:
        from recordwise import progress

        def work() -> None:
            assert go.wait(20)
            progress.tell("on")

        running, other, waiting = own.start("a", work), own.start("b", work), own.start("a", work)
        last = own.start("a", work)
        assert [each.stop.is_set() for each in (running, other, waiting, last)] == [True, False, True, False]
        go.set()
        assert [finished(each).status for each in (running, other, waiting, last)] == [
            "canceled",
            "done",
            "canceled",
            "done",
        ]
        third = own.start("c", work)
        assert list(own._jobs) == [third.number]
        finished(third)
        fourth = own.start("c", work)
        own.cancel(99)
        own.cancel(fourth.number)
        assert fourth.stop.is_set()
    finally:
        own.close()


def test_whoever_listens_hears_of_each_job_and_of_silence() -> None:
    own, go = Worker(), Signal()

    async def listen() -> list[Any]:
        heard: list[Any] = []
        job = own.start("a", go.wait)
        stream = own.events(0.01)
        heard.append((await anext(stream)).number)  # type: ignore[union-attr]
        while (found := await anext(stream)) is not None:
            heard.append(found.doing)
        go.set()
        while found is None or found.status != "done":
            found = await anext(stream)
        assert len(own._listeners) == 1
        own.close()
        async for _ in stream:
            pass
        assert own._listeners == {}
        return [*heard, job.status]

    first, *middle, last = awaited(listen())
    assert (first, last) == (1, "done")
    assert set(middle) <= {"starting"}
    assert own.closed


def test_a_worker_that_closes_stops_and_ends_its_jobs() -> None:
    own, go = Worker(), Signal()
    running, waiting = own.start("a", lambda: go.wait(20)), own.start("b", lambda: None)
    own.close()
    assert (running.stop.is_set(), waiting.stop.is_set(), waiting.ended.is_set()) == (True, True, True)
    go.set()
    time.sleep(0.02)
    assert waiting.status == "waiting"


# The desk.


def test_a_subject_names_its_files_and_what_its_records_are(tmp_path: Path) -> None:
    plan, records = tmp_path / "a.toml", tmp_path / "r.parquet"
    own = Subject(plan=plan)
    assert (own.data, own.is_confidential) == ("synthetic", False)
    assert (own.trade_file.name, own.kept_file.name) == ("a.trade.json", "a.studio.json")
    for declared, confidential in (("public", False), ("synthetic", False), ("past", True), ("confidential", True)):
        given = Subject(plan=plan, records=records, declared=declared)
        assert (given.data, given.is_confidential) == (declared, confidential)
    assert Subject(plan=plan, records=records).data == "confidential"
    with pytest.raises(ParameterError, match="must be one of public, synthetic, past, confidential"):
        Subject(plan=plan, declared="secret")


def written(folder: Path, **changed: Any) -> Subject:
    (folder / "plan.toml").write_text("a plan")
    found = Subject(plan=folder / "plan.toml")
    known = {"plan_digest": hashlib.sha256(b"a plan").hexdigest(), "records_digest": "", "data": "synthetic"}
    found.trade_file.write_text(json.dumps(known | {"generated": True} | changed))
    return found


@pytest.mark.parametrize(
    "changed", [{"plan_digest": "x"}, {"records_digest": "x"}, {"data": "public"}, {"generated": False}]
)
def test_a_trade_file_of_something_else_is_made_again(changed: dict[str, Any], tmp_path: Path) -> None:
    own = written(tmp_path)
    assert own.made_before() == own.trade_file.read_text()
    assert written(tmp_path, **changed).made_before() is None


@pytest.mark.parametrize("name", ["list.csv", "records.parquet", "records.pq", "notes.txt"])
def test_a_list_that_is_newer_than_the_trade_file_makes_it_old(name: str, tmp_path: Path) -> None:
    own = written(tmp_path)
    (tmp_path / name).touch()
    at = own.trade_file.stat().st_mtime
    os.utime(tmp_path / name, (at, at))
    assert own.made_before() is not None
    os.utime(tmp_path / name, (at + 1, at + 1))
    assert (own.made_before() is None) == (name != "notes.txt")


def test_a_trade_file_that_is_too_large_is_made_again(tmp_path: Path, monkeypatch: Patch) -> None:
    own = written(tmp_path)
    size = own.trade_file.stat().st_size
    for most, known in ((size, True), (size - 1, False)):
        monkeypatch.setattr(desk, "MOST_BYTES", most)
        assert (own.made_before() is not None) is known
    own.trade_file.write_text("[]")
    assert own.made_before() is None
    own.trade_file.write_text("no JSON")
    assert own.made_before() is None


def test_new_files_have_the_first_free_number(tmp_path: Path) -> None:
    plan = tmp_path / "a.toml"

    def names() -> list[str]:
        return [each.name for each in desk._new_files(plan).values()]

    assert names() == ["a-chosen.toml", "a-chosen.py", "a-report.html"]
    (tmp_path / "a-report.html").touch()
    assert names() == ["a-chosen-2.toml", "a-chosen-2.py", "a-report-2.html"]
    (tmp_path / "a-chosen-2.py").touch()
    assert list(desk._new_files(plan)) == ["plan", "python", "report"]
    assert names() == ["a-chosen-3.toml", "a-chosen-3.py", "a-report-3.html"]


def standing(folder: Path, **changed: Any) -> dict[str, Any]:
    own = Desk(folder=folder)
    try:
        for name, each in changed.items():
            setattr(own, name, each)
        return own.about()
    finally:
        own.close()


def test_the_studio_says_where_it_stands(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x")
    name = tmp_path.name
    nothing: dict[str, Any] = {"folder": name, "problem": "", "label": "", "first": None, "state": None, "files": []}
    assert standing(tmp_path) == nothing | {"stage": "begin", "files": [{"name": "a.csv", "bytes": 1}]}
    subject = Subject(plan=tmp_path / "plan.toml", records=tmp_path / "a.csv")
    first = Job(number=1, kind="first", result={"title": "t"})
    for status, stage in (("waiting", "working"), ("running", "working"), ("canceled", "working")):
        job = Job(number=2, kind="trade", status=status)
        found = standing(tmp_path, subject=subject, job=job, first=first)
        assert found == nothing | {"stage": stage, "label": "CONFIDENTIAL", "first": {"title": "t"}}
    failed = Job(number=2, kind="trade", status="failed", problem="no")
    found = standing(tmp_path, subject=replace(subject, declared="public"), job=failed, first=first)
    assert found == nothing | {"stage": "failed", "problem": "no"}
    done = Job(number=2, kind="trade", status="done")
    assert standing(tmp_path, subject=subject, job=done, first=first)["first"] is None
    assert standing(Path("/"))["folder"] == "/"


def test_what_was_chosen_before_is_read_if_it_can_be(tmp_path: Path, monkeypatch: Patch) -> None:
    subject, done = Subject(plan=tmp_path / "plan.toml"), Job(number=2, kind="trade", status="done")

    def state() -> Any:
        return standing(tmp_path, subject=subject, job=done)["state"]

    assert state() is None
    subject.kept_file.write_text('{"a": 1}')
    assert state() == {"a": 1}
    for most, known in ((8, True), (7, False)):
        monkeypatch.setattr(desk, "MOST_BYTES", most)
        assert (state() is not None) is known
    subject.kept_file.write_text("{")
    assert state() is None


def test_nothing_is_handed_out_before_it_is_there(tmp_path: Path) -> None:
    own = Desk(folder=tmp_path)
    try:
        with pytest.raises(ParameterError, match="the plan is missing"):
            own._given()
        with pytest.raises(ParameterError, match="is not finished"):
            own.trade_text()
        own.job = Job(number=1, kind="trade", status="running", result="no")
        with pytest.raises(ParameterError, match="is not finished"):
            own.trade_text()
        text = sample_trade().text()
        own.job = Job(number=1, kind="trade", status="done", result=text)
        first = own.trade()
        assert first == sample_trade()
        assert own.trade() is first
        own.job.result = sample_trade(title="another").text()
        assert own.trade().title == "another"
    finally:
        own.close()


def test_a_desk_with_a_plan_begins_with_what_the_plan_says(tmp_path: Path) -> None:
    class Noting:
        def first_look(self) -> str:
            return "first"

        def make(self) -> str:
            return "trade"

    own = Desk(folder=tmp_path, subject=Noting())  # type: ignore[arg-type]
    own.open()
    try:
        assert own.first is not None
        assert own.job is not None
        assert (finished(own.first).result, finished(own.job).result) == ("first", "trade")
        assert (own.first.kind, own.job.kind) == ("first", "trade")
    finally:
        own.close()
    empty = Desk(folder=tmp_path)
    empty.open()
    assert (empty.first, empty.job) == (None, None)
    empty.close()


# Forms.


@dataclass(frozen=True)
class Inner:
    a: int
    b: tuple[float, ...]


@dataclass(frozen=True)
class Outer:
    inner: Inner
    many: tuple[Inner, ...]
    named: dict[str, int]
    some: float | None
    flag: bool
    text: str
    anything: Any


GOOD: dict[str, Any] = {
    "inner": {"a": 1, "b": [1, 2.5]},
    "many": [{"a": 2, "b": []}],
    "named": {"x": 3},
    "some": None,
    "flag": True,
    "text": "t",
    "anything": [None, {}],
}


def test_what_was_written_is_read_and_numbers_are_of_their_kind() -> None:
    found = form.read(Outer, GOOD, what="it")
    assert found == Outer(Inner(1, (1.0, 2.5)), (Inner(2, ()),), {"x": 3}, None, True, "t", [None, {}])
    assert isinstance(found.inner.b[0], float)
    assert form.write(found) == GOOD
    assert isinstance(form.read(Outer, GOOD | {"some": 3}, what="it").some, float)
    assert form.write({"a": (1, [2])}) == {"a": [1, [2]]}


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"flag": 1}, r"it\.flag must be of the type boolean"),
        ({"text": None}, r"it\.text must be of the type string"),
        ({"some": "x"}, r"it\.some must be of the type number"),
        ({"some": True}, r"it\.some must be of the type number"),
        ({"inner": {"a": True, "b": []}}, r"it\.inner\.a must be of the type integer"),
        ({"inner": {"a": 1.0, "b": []}}, r"it\.inner\.a must be of the type integer"),
        ({"inner": {"a": 1, "b": [True]}}, r"it\.inner\.b must be of the type number"),
        ({"inner": {"a": 1, "b": ["1"]}}, r"it\.inner\.b must be of the type number"),
        ({"inner": {"a": 1, "b": {}}}, r"it\.inner\.b must be a list"),
        ({"inner": {"a": 1}}, r"it\.inner must be an object with a, b"),
        ({"inner": {"a": 1, "b": [], "c": 1}}, r"it\.inner must be an object with a, b"),
        ({"inner": []}, r"it\.inner must be an object with a, b"),
        ({"many": [{"a": 1}]}, r"it\.many must be an object with a, b"),
        ({"named": []}, r"it\.named must be an object"),
        ({"named": {1: 1}}, r"it\.named must be an object"),
        ({"named": {"x": "1"}}, r"it\.named must be of the type integer"),
    ],
)
def test_another_form_is_refused_by_its_place(changed: dict[str, Any], words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        form.read(Outer, GOOD | changed, what="it")


def test_a_schema_says_what_is_read() -> None:
    number = {"type": "integer"}
    inner = {
        "type": "object",
        "properties": {"a": number, "b": {"type": "array", "items": {"type": "number"}}},
        "required": ["a", "b"],
        "additionalProperties": False,
    }
    outer = {
        "inner": {"$ref": "#/$defs/Inner"},
        "many": {"type": "array", "items": {"$ref": "#/$defs/Inner"}},
        "named": {"type": "object", "additionalProperties": number},
        "some": {"anyOf": [{"type": "number"}, {"type": "null"}]},
        "flag": {"type": "boolean"},
        "text": {"type": "string"},
        "anything": {},
    }
    assert form.json_schema(Outer, title="t") == {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "t",
        "$ref": "#/$defs/Outer",
        "$defs": {
            "Outer": {"type": "object", "properties": outer, "required": list(outer), "additionalProperties": False},
            "Inner": inner,
        },
    }


def test_a_plan_is_known_by_its_bytes_and_by_values_that_are_not_its_own(tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    text = b'[parameters]\nyear = 2025\nname = "x"\n'
    plan.write_bytes(text)

    def digest(**given: Any) -> str:
        return form.plan_digest(plan, given)

    whole = hashlib.sha256(text).hexdigest()
    assert digest() == digest(year="2025") == digest(year=2025, name="x") == whole
    other = hashlib.sha256(text + b'[["year", "2026"]]').hexdigest()
    assert digest(year=2026) == digest(year="2026", name="x") == other
    assert digest(name="y", year="2026") == hashlib.sha256(text + b'[["name", "y"], ["year", "2026"]]').hexdigest()
    assert digest(new="1") != whole


def test_records_are_known_by_their_place_and_time(tmp_path: Path) -> None:
    assert form.records_digest(None) == ""
    file = tmp_path / "a.parquet"
    known: list[str] = [form.records_digest(file)]
    file.touch()
    os.utime(file, ns=(1, 5_000_000_000))
    expected = hashlib.sha256(json.dumps([[str(file.resolve()), 5_000_000_000]]).encode()).hexdigest()
    assert form.records_digest(str(file)) == expected
    known.append(expected)
    os.utime(file, ns=(1, 6_000_000_000))
    known.append(form.records_digest(file))
    known.append(form.records_digest(tmp_path))
    (tmp_path / "b.parquet").touch()
    known.append(form.records_digest(tmp_path))
    assert len(set(known)) == 5


# The trade file.


TRADE = sample_trade()


def changed_point(**changed: Any) -> Trade:
    """The trade with another last point of its last statistic."""
    *rest, last = TRADE.statistics
    *others, candidate = last.candidates
    *points, point = candidate.points
    made = replace(candidate, points=(*points, replace(point, **changed)))
    return replace(TRADE, statistics=(*rest, replace(last, candidates=(*others, made))))


POINT = TRADE.statistics[-1].candidates[-1].points[-1]
LAST = TRADE.statistics[-1]


@pytest.mark.parametrize(
    ("trade", "fits"),
    [
        (TRADE, True),
        (replace(TRADE, today=0), True),
        (replace(TRADE, today=8), True),
        (replace(TRADE, today=-1), False),
        (replace(TRADE, main=2), True),
        (replace(TRADE, main=-1), False),
        (replace(TRADE, record_classes=TRADE.record_classes[:3]), False),
        (replace(TRADE, records=(replace(TRADE.records[0], size_class=3), *TRADE.records[1:])), True),
        (replace(TRADE, records=(replace(TRADE.records[0], size_class=-1), *TRADE.records[1:])), False),
        (replace(TRADE, records=TRADE.records[1:]), False),
        (replace(TRADE, examples=TRADE.examples[1:]), False),
        (replace(TRADE, firms=()), False),
        (replace(TRADE, others=replace(TRADE.others, extremes=())), False),
        (replace(TRADE, draws=4), False),
        (replace(TRADE, places=TRADE.places[1:]), False),
        *[
            (
                replace(
                    TRADE,
                    places=(replace(TRADE.places[0], cells=(replace(each, statistic=at), *more)), *TRADE.places[1:]),
                ),
                ok,
            )
            for each, *more in [TRADE.places[0].cells]
            for at, ok in ((0, True), (2, True), (3, False), (-1, False))
        ],
        (replace(TRADE, statistics=(*TRADE.statistics[:2], replace(LAST, goals=LAST.goals[1:]))), False),
        (replace(TRADE, statistics=(*TRADE.statistics[:2], replace(LAST, today="nothing"))), False),
        (replace(TRADE, statistics=(*TRADE.statistics[:2], replace(LAST, today="logarithm"))), True),
        (replace(TRADE, statistics=(*TRADE.statistics[:2], replace(LAST, states=LAST.states[1:]))), False),
        (replace(TRADE, positions=TRADE.positions[:8], today=0), False),
        (changed_point(errors=POINT.errors[1:]), False),
        (changed_point(statuses=POINT.statuses[1:]), False),
        (changed_point(by_table=POINT.by_table[1:]), False),
        (changed_point(by_state=POINT.by_state[1:]), False),
        (changed_point(drawn=POINT.drawn[1:]), False),
        (changed_point(drawn=(POINT.drawn[0], POINT.drawn[1], POINT.drawn[2][1:])), False),
        (changed_point(losses=replace(POINT.losses, firms=())), False),
        (changed_point(losses=replace(POINT.losses, records=())), False),
        (changed_point(losses=replace(POINT.losses, examples=())), False),
    ],
)
def test_the_lists_of_a_trade_file_fit_together(trade: Trade, fits: bool) -> None:
    if fits:
        trades._check(trade)
    else:
        with pytest.raises(ParameterError, match="do not fit together"):
            trades._check(trade)


def test_a_trade_file_is_read_up_to_its_largest_size(tmp_path: Path, monkeypatch: Patch) -> None:
    path = TRADE.save(tmp_path / "a.json")
    for most in (path.stat().st_size, path.stat().st_size - 1):
        monkeypatch.setattr(trades, "MOST_BYTES", most)
        if most == path.stat().st_size:
            assert Trade.load(path) == TRADE
        else:
            with pytest.raises(ParameterError, match="too large"):
                Trade.load(path)
    assert trades.short(1234567.0) == 1234570.0
    assert trades.short(0.123456789) == 0.123457


# Words.


@pytest.mark.parametrize(
    ("text", "number", "rest"),
    [
        ("100 employees", 100.0, "employees"),
        ("1,234.5 x", 1234.5, "x"),
        ("1/4 x", 0.25, "x"),
        ("3", 3.0, ""),
        ("x", None, "x"),
        (".5 x", None, ".5 x"),
    ],
)
def test_numbers_are_taken_from_a_sentence(text: str, number: float | None, rest: str) -> None:
    reader = _Reader(text)
    assert reader.number() == number
    assert reader.rest == rest


def test_words_are_taken_if_they_come_next_and_whole() -> None:
    reader = _Reader("Cells of  town")
    assert not reader.takes("cell")
    assert not reader.takes("cells off")
    assert reader.takes("cells of")
    assert reader.rest == "town"
    assert not reader.takes("towns")
    assert reader.takes("TOWN")
    assert reader.rest == ""
    assert not reader.takes("more")
    names: Any = {"county": 1, "county by industry": 2}
    reader = _Reader("county by industry cells")
    assert (reader.one_of(names, "a table"), reader.rest) == ("county by industry", "cells")
    with pytest.raises(ParameterError, match="a table: one of county, county by industry"):
        reader.one_of(names, "a table")


@pytest.mark.parametrize("text", ["1/0", "x", "9", "9 x"])
def test_what_is_no_percentage_is_refused(text: str) -> None:
    with pytest.raises(ParameterError, match="cannot be read from"):
        _Reader(text).percent()
    reader = _Reader("9% of")
    assert (reader.percent(), reader.rest) == (9, "of")
    with pytest.raises(ParameterError, match='Expected "within"'):
        reader.expect("within")


# Files of a folder.


def test_files_are_listed_tables_first_and_the_largest_before_others(tmp_path: Path, monkeypatch: Patch) -> None:
    for name, size in (
        ("a.csv", 9),
        ("b.parquet", 1),
        ("c.PQ", 5),
        ("d.CSV", 20),
        ("e.txt", 1),
        (".f.csv", 1),
        ("b.csv", 9),
    ):
        (tmp_path / name).write_text("x" * size)
    (tmp_path / "g.csv").mkdir()
    wanted = [("c.PQ", 5), ("b.parquet", 1), ("d.CSV", 20), ("a.csv", 9), ("b.csv", 9)]
    assert begin.record_files(tmp_path) == [{"name": name, "bytes": size} for name, size in wanted]
    monkeypatch.setattr(begin, "MOST_FILES", 2)
    assert [each["name"] for each in begin.record_files(tmp_path)] == ["c.PQ", "b.parquet"]


def files(found: Mapping[str, list[str]]) -> Any:
    return lambda folder, records: list(found.items())


def test_lists_have_a_column_of_the_records_after_a_coarser_one(monkeypatch: Patch) -> None:
    listed = {
        "good.csv": ["state", "state_name", "county", "county_name"],
        "short.csv": ["county", "county_name"],
        "two.csv": ["state", "county", "naics"],
        "none.csv": ["a", "b"],
        "capital.csv": ["State", "State_NAME", "Title", "naics", "more"],
    }
    monkeypatch.setattr(begin, "_public_files", files(listed))
    found = begin._lists(Path(), "", ["county", "naics", "emp"])
    assert found == {"good.csv": ("state", "county"), "capital.csv": ("State", "naics")}


def test_sizes_have_levels_and_something_else(monkeypatch: Patch) -> None:
    listed = {
        "sizes.csv": ["county", "employees", "county_name"],
        "names.csv": ["county", "county_name"],
        "levels.csv": ["county", "state"],
        "other.csv": ["a", "b"],
    }
    monkeypatch.setattr(begin, "_public_files", files(listed))
    assert begin._sizes(Path(), "", {"county", "state"}) == {"sizes.csv": ["employees", "county_name"]}


def test_the_first_problem_is_told_without_its_place() -> None:
    error: Any = SimpleNamespace(problems=(SimpleNamespace(message="first"), SimpleNamespace(message="second")))
    assert begin._problem(error) == "first"
    assert begin._problem(SimpleNamespace(problems=("a sentence",))) == "a sentence"  # type: ignore[arg-type]
    assert begin._problem(ParameterError(parameter="p", problem="is wrong")) == "p is wrong."


# Without its extra.


def test_the_studio_says_what_it_needs(monkeypatch: Patch) -> None:
    import builtins

    from recordwise.studio import server

    exact = builtins.__import__

    def missing(name: str, *given: Any, **more: Any) -> Any:
        if name.partition(".")[0] in ("starlette", "uvicorn"):
            raise ImportError(name)
        return exact(name, *given, **more)

    monkeypatch.setattr(builtins, "__import__", missing)
    serving: Any = SimpleNamespace()
    for make in (server.application, server.uvicorn_server):
        with pytest.raises(ExtraError, match="studio"):
            make(serving)
    assert guard.HOST == "127.0.0.1"
