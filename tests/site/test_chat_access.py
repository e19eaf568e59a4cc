"""Who may send which ``chat:*`` frame: everybody, with a cookie and with a token; a refusal changes nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User

from core import clock
from core.db.api_tokens import issue, revoke
from core.db.hub import in_thread
from core.db.models import Event
from halo_site import consumers
from sessions_app.models import QueuedMessage, Session
from tests.site.chat_world import ChatSocket, chatting, give, make_session
from tests.site.live_world import PATIENCE_SEC, cookie_of

pytestmark = pytest.mark.django_db(transaction=True)

FRAMES: dict[str, dict[str, Any]] = {
    "subscribe": {},
    "send": {"client_id": "c1", "text": "Hello"},
    "stop": {},
    "interrupt": {},
    "delete": {"stamp": "2026-01-31T09:30:00.123Z", "archives": 0},
}
ALLOWED = {
    "plain": set(),
    "reviewer": {"subscribe"},
    "chatter": {"subscribe", "stop", "interrupt", "delete"},  # these take the permission to chat alone
    "operator": set(FRAMES),
}
"""To a session of full access; ``chatter`` has view and chat, and may not use full access."""
GOOD = {"chat:subscribed", "chat:ack", "not_working", "not_in_server", "not_found"}


@pytest.fixture
def session(transactional_db: None, tmp_path: Path) -> Session:
    return make_session(tmp_path / "workspace")


def person(kind: str) -> User:
    """With what the ready groups give, which is tested elsewhere."""
    user = User.objects.create_user(f"a-{kind}")
    wanted = {
        "plain": (),
        "reviewer": ("view", "review", "rollback"),
        "chatter": ("view", "chat"),
        "operator": ("view", "review", "rollback", "author", "chat", "use_full_access", "change_settings"),
    }
    return give(user, *wanted[kind])


async def answer(socket: ChatSocket, session: Session, kind: str) -> str:
    """The type of what comes back, or the code of the error."""
    await socket.send_chat(kind, session, **FRAMES[kind])
    while True:
        frame = await socket.chat_frame()
        if frame["type"] == "error":
            return str(frame["code"])
        if frame["type"] in ("chat:subscribed", "chat:ack"):
            return str(frame["type"])


def facts() -> list[Any]:
    return [
        list(QueuedMessage.objects.values()),
        list(Session.objects.values()),
        list(Event.objects.values()),
    ]


@pytest.mark.parametrize("way", ["cookie", "token"])
@pytest.mark.parametrize("who", sorted(ALLOWED))
@pytest.mark.parametrize("kind", sorted(FRAMES))
async def test_everybody_may_what_their_permissions_say(
    session: Session, kind: str, who: str, way: str
) -> None:
    def let_in() -> dict[str, Any]:
        user = person(who)
        if way == "cookie":
            return {"cookie": cookie_of(user)}
        scopes = ["view", "chat", "use_full_access"]
        secret = issue(user=user, name="t", scopes=scopes, days=1, now=clock.now()).secret
        return {"cookie": None, "origin": None, "token": secret}

    options = await in_thread(let_in)
    before = await in_thread(facts)
    async with chatting(**options) as socket:
        came = await answer(socket, session, kind)

    may = kind in ALLOWED[who]
    assert (came in GOOD) == may, came
    if not may:
        assert came == "forbidden"
    if not may or kind in ("subscribe", "stop", "interrupt"):
        assert await in_thread(facts) == before


async def test_below_full_access_the_permission_to_chat_is_enough(session: Session) -> None:
    await in_thread(lambda: Session.objects.update(access_level="workspace"))
    cookie = await in_thread(lambda: cookie_of(person("chatter")))
    async with chatting(cookie) as socket:
        assert await answer(socket, session, "send") == "chat:ack"


@pytest.mark.parametrize(
    ("scopes", "allowed"),
    [
        (["view"], {"subscribe"}),
        (["review"], set()),
        (["view", "chat"], {"subscribe", "stop", "interrupt", "delete"}),
        (["chat", "use_full_access"], {"send", "stop", "interrupt", "delete"}),
    ],
)
async def test_a_token_is_narrowed_to_its_scopes(
    session: Session, scopes: list[str], allowed: set[str]
) -> None:
    secret = await in_thread(lambda: _token(person("operator"), *scopes))
    async with chatting(None, origin=None, token=secret) as socket:
        came = {kind: await answer(socket, session, kind) for kind in FRAMES}

    assert {kind for kind, code in came.items() if code != "forbidden"} == allowed


async def test_a_tokens_scope_is_asked_for_in_commands_as_well(session: Session) -> None:
    await in_thread(lambda: Session.objects.update(access_level="workspace"))
    secret = await in_thread(lambda: _token(person("operator"), "chat"))
    before = await in_thread(facts)
    async with chatting(None, origin=None, token=secret) as socket:
        await socket.send_chat("send", session, client_id="c1", text="/evo shorter")
        row = (await socket.chat_until("chat:system"))["row"]

    assert row["kind"] == "refused"
    assert "workspaces.use_full_access" in row["text"]
    assert await in_thread(facts) == before


async def test_events_take_the_scope_to_view(session: Session) -> None:
    secret = await in_thread(lambda: _token(person("operator"), "chat"))
    async with chatting(None, origin=None, token=secret) as socket:
        await socket.send_json_to({"type": "subscribe", "topics": ["session"]})
        assert (await socket.chat_until("error"))["code"] == "forbidden"


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer halo_wrong", "Basic YTpi", "halo_x", "Bearer \x00"])
async def test_a_wrong_token_is_nobody_even_beside_a_good_session(session: Session, header: str) -> None:
    cookie = await in_thread(lambda: cookie_of(person("operator")))
    connected, _ = await ChatSocket(cookie, authorization=header).connect(timeout=PATIENCE_SEC)

    assert not connected


async def test_a_token_opens_nothing_on_another_host(session: Session) -> None:
    secret = await in_thread(lambda: _token(person("operator"), "view"))
    connected, _ = await ChatSocket(None, host="evil.example", token=secret).connect(timeout=PATIENCE_SEC)

    assert not connected


async def test_a_revoked_token_ends_what_it_opened(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumers, "ACCESS_CHECK_SEC", 0.05)
    made = await in_thread(
        lambda: issue(user=person("operator"), name="t", scopes=["view"], days=1, now=clock.now())
    )
    socket = ChatSocket(None, origin=None, token=made.secret)
    await socket.connect(timeout=PATIENCE_SEC)
    await socket.follow(session)
    await in_thread(lambda: revoke(made.token.pk, now=clock.now()))

    assert await socket.closed() == 4401
    await socket.disconnect(timeout=PATIENCE_SEC)


async def test_a_permission_taken_away_ends_the_view(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumers, "ACCESS_CHECK_SEC", 0.05)
    user = await in_thread(lambda: person("reviewer"))
    async with chatting(await in_thread(lambda: cookie_of(user))) as socket:
        await socket.follow(session)
        await in_thread(user.user_permissions.clear)
        error = await socket.chat_until("error")
        assert (error["code"], error["session"]) == ("forbidden", session.pk)
        await in_thread(lambda: Session.objects.update(context_tokens=77))
        await socket.send_json_to({"type": "__ping__"})
        await socket.chat_until("__pong__")
    assert not [frame for frame in socket.frames if frame.get("context_tokens") == 77]


@pytest.mark.parametrize("name", ["nothing", "../../etc/passwd", "a>b", "\x00", "'", "x" * 300])
async def test_a_session_that_is_not_there_is_not_found(session: Session, name: str) -> None:
    cookie = await in_thread(lambda: cookie_of(person("operator")))
    async with chatting(cookie) as socket:
        for kind, fields in FRAMES.items():
            await socket.send_json_to({"type": f"chat:{kind}", "session": name, **fields})
            assert (await socket.chat_until("error"))["code"] == "not_found"


@pytest.mark.parametrize(
    "frame",
    [
        {"type": "chat:subscribe"},
        {"type": "chat:subscribe", "session": ""},
        {"type": "chat:subscribe", "session": "x" * 301},
        {"type": "chat:subscribe", "session": "x", "after": -1},
        {"type": "chat:subscribe", "session": "x", "after": "1"},
        {"type": "chat:subscribe", "session": "x", "after": 2**63},
        {"type": "chat:send", "session": "x", "text": "no client id"},
        {"type": "chat:send", "session": "x", "text": "t", "client_id": ""},
        {"type": "chat:send", "session": "x", "text": "t", "client_id": "c" * 129},
        {"type": "chat:send", "session": "x", "text": None, "client_id": "c"},
        {"type": "chat:send", "session": "x", "text": "t", "client_id": "c", "images": [{}] * 9},
        {"type": "chat:send", "session": "x", "text": "t", "client_id": "c", "images": [{"data": "x"}]},
        {"type": "chat:stop", "session": ["x"]},
        {"type": "chat:interrupt", "session": "x", "more": 1},
        {"type": "chat:delete", "session": "x", "stamp": "s"},
        {"type": "chat:delete", "session": "x", "stamp": "", "archives": 0},
        {"type": "chat:ack", "session": "x"},
    ],
)
async def test_a_bad_frame_is_refused_and_the_connection_stays(
    session: Session, frame: dict[str, Any]
) -> None:
    cookie = await in_thread(lambda: cookie_of(person("operator")))
    before = await in_thread(facts)
    async with chatting(cookie) as socket:
        await socket.send_json_to(frame)
        assert (await socket.chat_until("error"))["code"] == "bad_frame"
        await socket.send_json_to({"type": "__ping__"})
        await socket.chat_until("__pong__")
    assert await in_thread(facts) == before


def _token(user: User, *scopes: str) -> str:
    return issue(user=user, name="t", scopes=list(scopes), days=1, now=clock.now()).secret
