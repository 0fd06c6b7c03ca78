"""What the studio hands over and serves, part by part: years of a budget, code, lines, routes and idle time."""

import errno
import importlib
import json
import os
import re
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

from recordwise.errors import BudgetError, ParameterError
from recordwise.mechanisms import ByGroup, Gaussian, LogTransform, UnitSplit
from recordwise.policy import constant
from recordwise.studio import begin, guard, texts
from recordwise.studio.begin import Form
from recordwise.studio.guard import Access
from recordwise.studio.handover import Exact, commands, expression
from recordwise.studio.server import Serving
from recordwise.studio.state import StudioState
from studio.serving import awaited
from studio.trade_sample import sample_trade

Patch = pytest.MonkeyPatch
TRADE = sample_trade()
handover: Any = importlib.import_module("recordwise.studio.handover")
server: Any = importlib.import_module("recordwise.studio.server")


# How long a budget lasts.


def lasting(patch: Patch, times: int, *, witness: Any = None) -> tuple[dict[str, str], list[int]]:
    """What is said of a budget that covers a policy so often, and how often it was asked."""
    asked: list[int] = []

    def check(policy: Any, *, query: str, named: Any, reserve: int) -> None:
        assert (query, reserve) == ("the plan", 0)
        asked.append(int(policy.loss({})))
        if asked[-1] > times:
            error = BudgetError.__new__(BudgetError)
            error.witness = witness
            raise error

    @contextmanager
    def opened(file: Any) -> Any:
        yield SimpleNamespace(check=check)

    patch.setattr(handover, "plan_ledger", opened)
    patch.setattr(handover, "query_names", lambda plan: ())
    patch.setattr(handover, "budget_words", lambda error: "for a record")
    own: Any = SimpleNamespace(file=SimpleNamespace(budget="some", plan=None))
    return Exact._budget(own, constant(1)), asked


@pytest.mark.parametrize("years", [1, 2, 3, 4, 5, 7, 8, 31, 32, 33, 512, 513, 999, 1000])
def test_the_years_of_a_budget_are_found_exactly(years: int, monkeypatch: Patch) -> None:
    found, asked = lasting(monkeypatch, years)
    assert found == {"budget": "the budget covers it for every possible record", "years": f"{years:,}"}
    assert len(asked) <= 22
    assert max(asked) <= 1024


@pytest.mark.parametrize("years", [1001, 1002, 5000])
def test_years_are_counted_up_to_a_thousand(years: int, monkeypatch: Patch) -> None:
    found, asked = lasting(monkeypatch, years)
    assert found["years"] == "more than 1,000"
    assert max(asked) <= 1024


def test_a_budget_that_does_not_last_a_year_says_for_whom(monkeypatch: Patch) -> None:
    found, asked = lasting(monkeypatch, 0, witness={"emp": 4})
    assert found == {"budget": "the budget does not cover it: for a record", "years": "0"}
    assert asked == [1]
    found, _ = lasting(monkeypatch, 0)
    assert found == {"budget": "no proof was found in time that the budget covers it"}
    none: Any = SimpleNamespace(file=SimpleNamespace(budget=None))
    assert Exact._budget(none, constant(1)) == {"budget": "no budget is declared", "years": "no budget"}


# Years as the page counts them.


@pytest.mark.parametrize(
    ("left", "loss", "told"),
    [
        (10.0, 1.0, "10"),
        (10.0, 3.0, "3"),
        (9.0, 3.0, "3"),
        (8.999, 3.0, "2"),
        (8.999999999, 3.0, "3"),
        (1.0, 2.0, "0"),
        (1000.0, 1.0, "1,000"),
        (1001.0, 1.0, "more than 1,000"),
        (10.0, 0.0, "more than 1,000"),
        (None, 1.0, "more than 1,000"),
    ],
)
@pytest.mark.parametrize("place", ["records", "examples", "extremes"])
def test_the_record_with_the_least_left_decides(place: str, left: float | None, loss: float, told: str) -> None:
    one = {"records": 1.0, "examples": 1.0, "extremes": 1.0} | {place: loss}
    budget = {"records": 1e9, "examples": 1e9, "extremes": 1e9} | {place: left}
    trade: Any = SimpleNamespace(
        records=[SimpleNamespace(budget=budget["records"])],
        examples=[SimpleNamespace(budget=budget["examples"])],
        budget=SimpleNamespace(extremes=[budget["extremes"]]),
    )
    losses: Any = SimpleNamespace(**{name: [each] for name, each in one.items()})
    assert texts.years(trade, losses) == told
    assert texts.years(SimpleNamespace(budget=None), losses) == "no budget"  # type: ignore[arg-type]


def test_states_are_ranked_the_best_first() -> None:
    assert texts.ranked([0.5, 0.9, 0.5, 0.1]) == [1, 0, 2, 3]


# Code and comments.


def test_a_mechanism_is_written_as_it_would_be_typed() -> None:
    assert expression(Gaussian(sigma=8)) == "rw.Gaussian(sigma='8')"
    assert expression(UnitSplit(at=20, rho="0.5")) == "rw.UnitSplit(at='20', rho='1/2')"
    assert expression(LogTransform(offset=10, sigma="1/3", signed=True)).endswith("signed=True)")
    groups = ByGroup("kind", {"a": Gaussian(sigma=1)}, default=Gaussian(sigma=2))
    text = expression(groups)
    assert "'kind'" in text
    assert "{'a': rw.Gaussian(sigma='1')}" in text
    assert text.endswith("default=rw.Gaussian(sigma='2'))")
    assert handover._literal(Fraction(1, 3)) == "'1/3'"
    assert handover._literal(True) == "True"


def test_what_follows_is_named_and_not_run() -> None:
    assert commands("p.toml") == (
        "recordwise check p.toml",
        "recordwise rehearse p.toml --out rehearsal",
        "recordwise release p.toml --out release",
    )
    assert commands("p.toml", {"a": "x y", "b": "1"})[0] == "recordwise check p.toml --set a='x y' --set b=1"


def test_goals_and_reasons_are_comments_of_one_line_each() -> None:
    now = replace(StudioState.first(TRADE).now, reasons={"position": " a\nb\t c\x00 ", TRADE.statistics[1].key: "so"})
    first, second, third = (each.key for each in TRADE.statistics)
    assert handover._comment(TRADE, now) == [
        "Chosen in the studio:",
        TRADE.positions[5].goal,
        "  because: a b c",
        f"{first}, as in the plan: {TRADE.statistics[0].goals[5]}",
        f"{second}, as in the plan: {TRADE.statistics[1].goals[5]}",
        "  because: so",
        f"{third}, as in the plan: {TRADE.statistics[2].goals[5]}",
    ]
    secret = sample_trade(data="past")
    lines = handover._comment(secret, replace(now, reasons={}))
    assert lines[0] == f"Chosen in the studio. {secret.label}."
    assert len(lines) == 5


def test_a_mechanism_that_is_not_installed_is_refused() -> None:
    state = StudioState.first(TRADE)
    assert list(handover.mechanisms(TRADE, state)) == [each.key for each in TRADE.statistics]
    last = TRADE.statistics[-1]
    own = last.candidates[0]
    points = tuple(replace(each, entry={"kind": "Nothing"}) for each in own.points)
    changed = replace(last, candidates=(replace(own, points=points), *last.candidates[1:]))
    with pytest.raises(ParameterError, match="not installed"):
        handover.mechanisms(replace(TRADE, statistics=(*TRADE.statistics[:-1], changed)), state)


# The server.


class Request:
    """What a route sees of a request."""

    def __init__(self, content: Any = None, **more: Any) -> None:
        self.content = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.headers: dict[str, str] = more.pop("headers", {})
        self.client = more.pop("client", None)
        self.path_params = more

    async def body(self) -> bytes:
        return self.content


def answer(function: Any, serving: Any, request: Any) -> tuple[int, Any]:
    found = awaited(server._answering(serving, function)(request))
    return found.status_code, json.loads(found.body) if found.body else None


def read(content: Any, **fields: type) -> Any:
    return awaited(server._body(Request(content), **fields))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"{", "is not JSON"),
        (b"[" * 100_000, "is not JSON"),
        (b'{"a": "\\ud800", "b": 1}', "is not JSON"),
        ([], "must have the fields a, b"),
        ({"a": "x"}, "must have the fields a, b"),
        ({"a": "x", "b": 1, "c": 2}, "must have the fields a, b"),
        ({"a": 1, "b": 1}, "a must be a text"),
        ({"a": "x", "b": True}, "b must be a whole number"),
        ({"a": "x", "b": 1.0}, "b must be a whole number"),
    ],
)
def test_a_request_has_its_fields_in_their_types(content: Any, words: str) -> None:
    assert read({"a": "x", "b": 1}, a=str, b=int) == {"a": "x", "b": 1}
    with pytest.raises(ParameterError, match=words):
        read(content, a=str, b=int)


class Noting:
    """A desk that notes what is asked of it and answers with that."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.worker = SimpleNamespace(cancel=lambda number: self.asked.append(("cancel", number)))

    def __getattr__(self, name: str) -> Any:
        def noted(*given: Any) -> Any:
            self.asked.append((name, *given))
            return {"told": name}

        return noted


@pytest.mark.parametrize(
    ("function", "content", "asked", "told"),
    [
        (server._about, None, ("about",), {"told": "about"}),
        (server._cancel, {"number": 3}, ("cancel", 3), {}),
        (server._keep, {"state": {"a": 1}}, ("keep", {"a": 1}), {}),
        (server._hand_over, {"state": {}, "save": True}, ("hand_over", {}, True), {"told": "hand_over"}),
        (server._propose, {"records": "r", "headed": False}, ("propose", "r", False), {"told": "propose"}),
        (server._draft, {"form": {}}, ("draft", {}), {"told": "draft"}),
        (server._begin, {"form": {"a": 1}}, ("begin", {"a": 1}), {"told": "begin"}),
    ],
)
def test_a_route_asks_the_desk(function: Any, content: Any, asked: Any, told: Any) -> None:
    desk = Noting()
    assert answer(function, SimpleNamespace(desk=desk), Request(content)) == (200, told)
    assert desk.asked == [asked]


def test_refusals_are_sentences_and_failures_are_told_on_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    async def refuse(serving: Any, request: Any) -> Any:
        raise ParameterError(parameter="p", problem="is wrong")

    async def fail(serving: Any, request: Any) -> Any:
        raise ValueError("a secret")

    assert answer(refuse, None, Request()) == (422, {"problem": "p is wrong."})
    assert capsys.readouterr().err == ""
    status, told = answer(fail, None, Request())
    assert (status, told) == (500, {"problem": server.UNEXPECTED})
    assert "a secret" in capsys.readouterr().err


def test_numbers_of_the_policy_are_answered_once_they_are_there() -> None:
    waited: list[str] = []
    for result, told in (({"a": "1"}, {"a": "1"}), (None, {})):
        job = SimpleNamespace(
            ended=SimpleNamespace(wait=lambda: waited.append("waited")), status="done", result=result, problem="no"
        )
        serving = SimpleNamespace(desk=SimpleNamespace(exact=lambda state, job=job: job))
        assert answer(server._exact, serving, Request({"state": {}})) == (
            200,
            {"status": "done", "texts": told, "problem": "no"},
        )
    assert waited == ["waited"] * 2


def test_a_token_is_exchanged_for_a_cookie() -> None:
    serving = SimpleNamespace(access=Access(port=1, token="t"))
    assert answer(server._session, serving, Request({"token": "x"}))[0] == 401
    found = awaited(server._answering(serving, server._session)(Request({"token": "t"})))  # type: ignore[arg-type]
    assert json.loads(bytes(found.body)) == {"open": True}
    assert found.headers["set-cookie"].startswith("studio1=")


def test_the_terminal_is_told_of_another_user_once() -> None:
    told: list[str] = []
    desk: Any = SimpleNamespace()
    serving = Serving(desk=desk, access=Access(port=8123), tell=told.append)
    serving.warn()
    serving.warn()
    assert told == ["Another user of this machine tried to open the studio, and was refused."]


LISTED = """  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1FBB 00000000:0000 0A 00000000:00000000 00:00000000 00000000     7        0 1 1 0 100 0 0 10 0
   1: 0100007F:1FBB 0100007F:9C40 01 00000000:00000000 00:00000000 00000000     8        0 2 1 0 100 0 0 10 0
   2: 0100007F:1FBB 0100007F:9C41 01 00000000:00000000 00:00000000 00000000     8        0 2 1 0 100 0 0 10 0
   3: 0100007F:9C41 0100007F:1FBB 05 00000000:00000000 00:00000000 00000000     0        0 0 1 0 100 0 0 10 0
"""
ENDS = {
    "tcp": "   4: 0100007F:9C40 0100007F:1FBB 01 00000000:00000000 00:00000000 00000000  {}        0 3 1 0 100 0 0 10 0\n",
    "tcp6": "header\n   0: 0000000000000000FFFF00000100007F:9C40 0000000000000000FFFF00000100007F:1FBB "
    "01 00000000:00000000 00:00000000 00000000  {}        0 3 1 0 100 0 0 10 0\n",
}


OWNER, OTHER, UNKNOWN = guard.Asker


def asker(far: int, host: str = guard.HOST) -> guard.Asker:
    return guard.asker((host, far), 8123, listed=True)


@pytest.mark.parametrize(("user", "found"), [(os.getuid(), OWNER), (0, OWNER), (64_999, OTHER)])
@pytest.mark.parametrize("ends", ENDS)
def test_the_user_of_a_connection_is_the_one_at_its_far_end(
    user: int, found: guard.Asker, ends: str, tmp_path: Path, monkeypatch: Patch
) -> None:
    monkeypatch.setattr(guard, "CONNECTIONS", (tmp_path / "tcp", tmp_path / "tcp6"))
    (tmp_path / "tcp").write_text(LISTED)
    with (tmp_path / ends).open("a") as listed:
        listed.write(ENDS[ends].format(user))
    assert asker(40000) is found
    assert asker(40000, "127.0.0.2") is OTHER
    assert guard.asker(None, 8123, listed=True) is guard.asker(None, 8123, listed=False) is UNKNOWN
    assert asker(40001) is UNKNOWN, "the far end was closed"
    assert asker(40002) is UNKNOWN, "our own end was closed too"
    (tmp_path / "tcp").write_text(LISTED)
    (tmp_path / "tcp6").write_text("")
    assert asker(40000) is UNKNOWN, "who is in neither list hides"
    without_ours = "".join(line for line in LISTED.splitlines(True) if " 1: " not in line)
    (tmp_path / "tcp").write_text(without_ours + ENDS["tcp"].format(os.getuid()))
    assert asker(40000) is UNKNOWN, "only the end of who asked is listed"
    (tmp_path / "tcp").unlink()
    assert asker(40000) is UNKNOWN, "a list that is gone lists nobody"


@pytest.mark.parametrize(("told", "user"), [("64998", 64_998), (None, 65_534), ("?", 65_534)])
def test_the_number_of_all_unknown_users_is_nobody_even_if_it_is_ours(
    told: str | None, user: int, tmp_path: Path, monkeypatch: Patch
) -> None:
    """In a user namespace, other users and the studio itself may have it."""
    monkeypatch.setattr(guard, "CONNECTIONS", (tmp_path / "tcp",))
    monkeypatch.setattr(guard, "OVERFLOW", tmp_path / "overflowuid")
    monkeypatch.setattr(os, "getuid", lambda: user)
    if told is not None:
        (tmp_path / "overflowuid").write_text(f"{told}\n")
    (tmp_path / "tcp").write_text(LISTED + ENDS["tcp"].format(user))
    assert asker(40000) is UNKNOWN
    (tmp_path / "tcp").write_text(LISTED + ENDS["tcp"].format(user - 1))
    assert asker(40000) is OTHER


def test_a_machine_lists_connections_or_not_from_the_start(tmp_path: Path, monkeypatch: Patch) -> None:
    monkeypatch.setattr(guard, "CONNECTIONS", (tmp_path / "tcp", tmp_path / "tcp6"))
    assert not guard.is_listed(8123), "there is no list"
    (tmp_path / "tcp").write_text(LISTED)
    assert guard.is_listed(8123)
    assert not guard.is_listed(8124)
    assert guard.asker((guard.HOST, 40000), 8124, listed=False) is OWNER, "where nothing is listed nothing can be seen"
    assert guard.asker(("127.0.0.2", 40000), 8124, listed=False) is OTHER


@pytest.mark.parametrize("why", [errno.EMFILE, errno.ENFILE, errno.EACCES, errno.ENOMEM])
def test_a_list_that_cannot_be_read_admits_nobody(why: int, tmp_path: Path, monkeypatch: Patch) -> None:
    """Another user can take all the files that a process may open."""

    def read_text(_: Path) -> str:
        raise OSError(why, os.strerror(why))

    monkeypatch.setattr(guard, "CONNECTIONS", (tmp_path / "tcp",))
    monkeypatch.setattr(Path, "read_text", read_text)
    assert asker(40000) is UNKNOWN
    with pytest.raises(OSError, match=re.escape(os.strerror(why))):
        guard.is_listed(8123)


def test_another_window_is_told_its_address_once() -> None:
    told: list[str] = []
    access = Access(port=1, token="t")
    serving: Any = SimpleNamespace(access=access, tell=told.append)
    page = lambda **headers: awaited(server._page(serving, Request(headers=headers)))  # type: ignore[arg-type]  # noqa: E731
    assert page().status_code == 200
    assert told == []
    cookie = access.exchange("t")
    assert cookie is not None
    page(cookie=cookie.partition(";")[0])
    assert told == []
    page()
    assert told == [f"To open the studio in another window: {access.address}"]
    page()
    assert len(told) == 1


def test_files_of_the_page_are_its_own() -> None:
    found = awaited(server._static(None, Request(name="studio.css")))  # type: ignore[arg-type]
    assert (found.status_code, found.media_type) == (200, "text/css; charset=utf-8")
    assert awaited(server._static(None, Request(name="../page.py"))).status_code == 404  # type: ignore[arg-type]


def test_a_violation_is_counted_and_told() -> None:
    told: list[str] = []
    serving = SimpleNamespace(violations=0, tell=told.append)
    for number in (1, 2):
        assert answer(server._violation, serving, Request()) == (200, {})
        assert (serving.violations, len(told)) == (number, number)


@pytest.mark.parametrize(("idle", "slept"), [(8.0, 1.0), (2.0, 0.5)])
def test_the_server_ends_when_nobody_asked_for_a_while(idle: float, slept: float, monkeypatch: Patch) -> None:
    clock, ended, told, waits = [100.0], list[float](), list[str](), list[float]()

    async def sleep(seconds: float) -> None:
        waits.append(seconds)
        clock[0] += seconds

    monkeypatch.setattr(server.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(server.asyncio, "sleep", sleep)
    # A job that runs for longer than that is waited for.
    desk: Any = SimpleNamespace(worker=SimpleNamespace(is_busy=lambda: clock[0] <= 150.0))
    access: Any = None
    serving = Serving(
        desk=desk, access=access, idle=idle, tell=told.append, used=100.0, end=lambda: ended.append(clock[0])
    )
    awaited(serving.watch())
    assert ended == [150.0 + idle]
    assert set(waits) == {slept}
    assert len(waits) == (50 + idle) / slept
    assert told == [
        "Nobody has used the studio for a while: it ends. What was chosen is kept; start it again to go on."
    ]
    clock[0] = 500.0
    serving.seen()
    assert serving.used == 500.0
    assert Serving(desk=None, access=None).idle == 3600.0  # type: ignore[arg-type]
    assert Serving(desk=None, access=None).violations == 0  # type: ignore[arg-type]


def test_the_server_has_small_limits_and_says_nothing_of_itself() -> None:
    serving = Serving(desk=Noting(), access=Access(port=1))  # type: ignore[arg-type]
    made = server.uvicorn_server(serving)
    config = made.config
    assert (config.limit_concurrency, config.h11_max_incomplete_event_size) == (64, 16_384)
    assert (config.timeout_keep_alive, config.timeout_graceful_shutdown) == (30, 1)
    assert (config.access_log, config.server_header, config.proxy_headers) == (False, False, False)
    assert (config.http, config.ws, config.loop, config.lifespan) == ("h11", "none", "asyncio", "on")
    assert not made.should_exit
    serving.end()
    assert made.should_exit


@pytest.mark.parametrize("browser", [True, False])
def test_the_address_is_told_and_opened(browser: bool, monkeypatch: Patch) -> None:
    told: list[str] = []
    opened: list[str] = []
    ran: list[Any] = []
    made: list[Any] = []
    monkeypatch.setattr(server.webbrowser, "open", opened.append)
    monkeypatch.setattr(
        server,
        "uvicorn_server",
        lambda serving: made.append(serving) or SimpleNamespace(run=lambda sockets: ran.extend(sockets)),
    )
    desk: Any = Noting()
    server.serve(desk, browser=browser, tell=told.append, idle=7.0)
    (serving,) = made
    assert (serving.desk, serving.idle) == (desk, 7.0)
    assert told == [f"The studio is at {serving.access.address}"]
    assert opened == ([serving.access.address] if browser else [])
    assert len(ran) == 1


# A plan from a form.


FORM = Form(
    records="r.csv",
    headed=True,
    unit=("id",),
    sums={"emp": "100"},
    steps={"emp": "1", "pay": "0.01"},
    by=("county", "kind"),
    codes={"kind": "a, b,", "county": "1", "other": "x", "none": " , "},
    lists={"places.csv": "state, county"},
    sizes="",
    size_columns={"emp": "employees", "pay": "payroll", "count": ""},
    tuned_on="public",
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "r.csv").write_text("id,county,kind,emp,pay\n1,1,a,2,3\n")
    (tmp_path / "places.csv").write_text("state,county\nA,1\n")
    (tmp_path / "sizes.csv").write_text("county,kind,employees\n1,a,5\n")
    (tmp_path / "partly.csv").write_text("county,employees\n1,5\n")
    return tmp_path


def test_wishes_are_those_of_the_form(folder: Path, monkeypatch: Patch) -> None:
    monkeypatch.setattr("recordwise.plan.file.first.Wishes.check", lambda wishes, found: None)
    plan = folder / "plan.toml"
    found = begin._wishes(folder, FORM, [], plan)
    assert (found.unit, found.sums, found.steps, found.tuned_on) == (("id",), {"emp": "100"}, {"emp": "1"}, "public")
    # The county comes with its list, and codes are those of columns that the tables are by.
    assert found.by == ("kind",)
    assert found.keys == {"kind": ("a", "b"), "county": ("1",)}
    (listed,) = found.code_lists
    assert (listed.name, listed.path, listed.levels) == ("places", "places.csv", ("state", "county"))
    assert found.sizes is None
    for name, whole in (("sizes.csv", True), ("partly.csv", False)):
        sizes = begin._wishes(folder, replace(FORM, sizes=name), [], plan).sizes
        assert sizes is not None
        assert (sizes.path, sizes.columns, sizes.all_keys) == (name, {"emp": "employees"}, whole)
    bare = begin._wishes(folder, replace(FORM, sizes="partly.csv", by=(), lists={}), [], plan).sizes
    assert bare is not None
    assert bare.all_keys is False


def test_columns_are_taken_for_what_they_may_be(folder: Path) -> None:
    found = begin.propose(folder, "r.csv", headed=True)
    assert found["csv"] is True
    assert [each["name"] for each in found["columns"]] == ["id", "county", "kind", "emp", "pay"]
    assert {each["name"]: each["role"] for each in found["columns"]}["county"] == "group"
    assert {each["name"]: each["role"] for each in found["columns"]}["id"] == "unit"
    assert {each["step"] for each in found["columns"]} == {"1"}
    assert found["lists"] == {"places.csv": "state, county"}
    assert found["sizes"] == {"sizes.csv": ["kind", "employees"], "partly.csv": ["employees"]}


def test_the_last_of_three_levels_is_the_column_that_records_are_grouped_by(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text("id,county,emp\n1,001,5\n2,003,7\n")
    (tmp_path / "places.csv").write_text("region,state,county\nSouth,A,001\nSouth,A,003\n")
    (tmp_path / "sizes.csv").write_text("county,employees\n001,5\n003,7\n")
    found = begin.propose(tmp_path, "r.csv", headed=True)
    assert found["lists"] == {"places.csv": "region, state, county"}
    assert {each["name"]: each["role"] for each in found["columns"]}["county"] == "group"
    assert found["sizes"] == {"sizes.csv": ["employees"]}
