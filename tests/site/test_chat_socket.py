"""``chat:*`` over ``/ws/``: what is acknowledged is stored, what is in the log is shown once and in order."""

from __future__ import annotations

import asyncio
import base64
import threading
import time
from collections.abc import Collection, Iterator
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError

from core import clock
from core.db.hub import in_thread
from sessions_app import queue
from sessions_app.live import follow
from sessions_app.live.condition import Condition, read_condition
from sessions_app.logs.records import add, assistant_row, encode, inflight, system_row
from sessions_app.models import QueuedMessage, Session
from sessions_app.places import raw_log, ui_log
from sessions_app.worker import Worker
from tests.sessions.streams_in_tests import Streaming
from tests.sessions.working import at_work
from tests.site.chat_world import ChatSocket, ChatView, chatting, give, make_session, rows_in_log
from tests.site.live_world import cookie_of

pytestmark = pytest.mark.django_db(transaction=True)

PNG = b"\x89PNG\r\n\x1a\n" + b"0" * 20


@pytest.fixture
def session(transactional_db: None, tmp_path: Path) -> Session:
    return make_session(tmp_path / "workspace")


@pytest.fixture
def olga(transactional_db: None) -> User:
    return give(User.objects.create_user("olga"), "view", "chat", "use_full_access")


@pytest.fixture
def cookie(olga: User) -> str:
    return cookie_of(olga)


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Streaming:
    return Streaming().install(monkeypatch)


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[Worker]:
    with at_work(tmp_path / "home") as worker:
        yield worker


async def said(socket: ChatSocket, session: Session, text: str, client_id: str = "c1") -> dict[str, object]:
    """Send a message; returns its acknowledgement."""
    await socket.send_chat("send", session, client_id=client_id, text=text)
    return await socket.chat_until("chat:ack", client_id=client_id)


def texts(rows: list[dict[str, object]]) -> list[str]:
    return [
        str(row["text"])
        if "text" in row
        else "+".join(str(block.get("text", block["type"])) for block in row["blocks"])  # type: ignore[attr-defined]
        for row in rows
    ]


class TestATurn:
    async def test_is_followed_from_the_message_to_its_end(
        self, session: Session, cookie: str, model: Streaming, worker: Worker
    ) -> None:
        async with chatting(cookie) as socket:
            subscribed = await socket.follow(session)
            assert (subscribed["last"], subscribed["working"]) == (0, False)
            ack = await said(socket, session, "Hello")
            user = await socket.chat_until("chat:user")
            model.say("Hel", "lo ", "Ann.")
            while "".join(socket.streamed.values()) != "Hello Ann.":
                await socket.chat_frame()
            model.end()
            answer = await socket.chat_until("chat:assistant")
            await socket.chat_until("chat:complete")

        assert user["row"]["stamp"] == ack["stamp"]
        assert texts(socket.rows) == ["Hello", "Hello Ann."]
        assert socket.rows == await in_thread(lambda: rows_in_log(session))
        assert [row for row, _ in socket.streamed] == [answer["row"]["id"]]
        kinds = [frame["type"] for frame in socket.frames]
        assert kinds.index("chat:working") < kinds.index("chat:assistant") < kinds.index("chat:complete")
        assert [frame for frame in socket.frames if frame["type"] == "chat:usage"][-1]["output_tokens"] > 0

    async def test_tool_calls_and_results_are_shown_as_they_come(
        self, session: Session, cookie: str, model: Streaming, worker: Worker
    ) -> None:
        from tests.sessions.models_in_tests import call_tool

        async with chatting(cookie) as socket:
            await socket.follow(session)
            await said(socket, session, "List")
            model.say("Looking.", call_tool("glob", '{"pattern": "*"}'))
            model.end()
            call = await socket.chat_until("chat:tool_call")
            result = await socket.chat_until("chat:tool_result")
            model.say("Done.")
            model.end()
            await socket.chat_until("chat:complete")

        assert (call["tool"], call["arguments"], call["call_id"]) == ("glob", {"pattern": "*"}, "c1")
        assert (result["row"], result["block"], result["call_id"]) == (call["row"], call["block"], "c1")
        assert texts(socket.rows) == ["List", "Looking.+tool_call", "Done."]
        assert socket.rows == await in_thread(lambda: rows_in_log(session))

    async def test_what_a_failed_call_had_streamed_disappears(
        self, session: Session, cookie: str, model: Streaming, worker: Worker, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from pydantic_ai.exceptions import ModelHTTPError

        from agents import retries

        monkeypatch.setattr(retries, "backoff_sec", lambda *_args, **_options: 0.0, raising=False)
        async with chatting(cookie) as socket:
            await socket.follow(session)
            await said(socket, session, "Hello")
            model.say("Half an ans")
            first = await socket.chat_until("chat:stream")
            model.say(ModelHTTPError(503, "model"))
            gone = await socket.chat_until("chat:discard")
            model.say("Whole.")
            model.end()
            await socket.chat_until("chat:complete")

        assert gone["row"] == first["row"]
        assert [row["id"] for row in socket.rows if row["id"] == first["row"]] == []
        assert socket.rows == await in_thread(lambda: rows_in_log(session))
        assert texts(socket.rows)[-1] == "Whole."

    async def test_streamed_text_is_merged_to_thirty_frames_a_second(
        self, session: Session, cookie: str, model: Streaming, worker: Worker
    ) -> None:
        async with chatting(cookie) as socket:
            await socket.follow(session)
            await said(socket, session, "Count")
            began = time.monotonic()
            for number in range(400):
                model.say(f"{number} ")
                await asyncio.sleep(0.002)
            model.end()
            await socket.chat_until("chat:complete")
            took = time.monotonic() - began

        frames = [frame for frame in socket.frames if frame["type"] == "chat:stream"]
        assert 1 < len(frames) <= took * 30 + 1
        assert texts(socket.rows)[-1].split() == [str(number) for number in range(400)]


class TestSending:
    async def test_what_is_acknowledged_is_stored(self, session: Session, cookie: str) -> None:
        async with chatting(cookie) as socket:
            ack = await said(socket, session, "Keep this")

        row = await in_thread(QueuedMessage.objects.get)
        assert (row.text, row.stamp, row.client_id, row.worked_at) == ("Keep this", ack["stamp"], "c1", None)

    async def test_sent_again_it_is_acknowledged_again_and_stored_once(
        self, session: Session, cookie: str
    ) -> None:
        async with chatting(cookie) as socket:
            first = await said(socket, session, "Once")
        async with chatting(cookie) as socket:
            again = await said(socket, session, "Once, with other words")

        assert first == again
        assert await in_thread(lambda: [row.text for row in QueuedMessage.objects.all()]) == ["Once"]

    async def test_a_waiting_message_is_shown_to_every_view(self, session: Session, cookie: str) -> None:
        async with chatting(cookie) as socket, chatting(cookie) as other:
            await other.follow(session)
            ack = await said(socket, session, "Wait")
            shown = await other.chat_until(
                "chat:waiting", messages=[{"stamp": ack["stamp"], "text": "Wait", "source": ""}]
            )
            assert shown["session"] == session.pk

    async def test_pictures_are_kept_as_the_model_is_given_them(self, session: Session, cookie: str) -> None:
        image = {"media_type": "image/png", "data": base64.b64encode(PNG).decode()}
        async with chatting(cookie) as socket:
            await socket.send_chat("send", session, client_id="c1", text="Look", images=[image])
            await socket.chat_until("chat:ack")

        [row] = await in_thread(lambda: queue.waiting(session.pk))
        assert [base64.urlsafe_b64decode(kept["data"]) for kept in row.images] == [PNG]

    @pytest.mark.parametrize(
        "image",
        [
            {"media_type": "image/svg+xml", "data": base64.b64encode(b"<svg onload=x>").decode()},
            {"media_type": "image/png", "data": base64.b64encode(b"<script>").decode()},
            {"media_type": "image/png", "data": "not base64!"},
            {"media_type": "image/png", "data": ""},
        ],
    )
    async def test_what_is_no_picture_is_refused(
        self, session: Session, cookie: str, image: dict[str, str]
    ) -> None:
        async with chatting(cookie) as socket:
            await socket.send_chat("send", session, client_id="c1", text="Look", images=[image])
            error = await socket.chat_until("error")

        assert (error["code"], error["client_id"]) == ("bad_image", "c1")
        assert not await in_thread(QueuedMessage.objects.exists)

    async def test_a_command_acts_at_once_and_is_stored_nowhere(self, session: Session, cookie: str) -> None:
        async with chatting(cookie) as socket:
            await socket.follow(session, html=True)
            await socket.send_chat("send", session, client_id="c1", text="/session info")
            answer = await socket.chat_until("chat:system")
            ack = await socket.chat_until("chat:ack")

        assert (answer["seq"], answer["row"]["kind"], ack["stamp"]) == (None, "answer", "")
        assert session.pk in answer["row"]["text"]
        assert session.pk in answer["html"]
        assert not await in_thread(QueuedMessage.objects.exists)
        assert not ui_log(session).exists()

    async def test_a_command_sent_again_is_answered_again_and_run_once(
        self, session: Session, cookie: str
    ) -> None:
        async with chatting(cookie) as socket:
            for _ in range(2):
                await socket.send_chat("send", session, client_id="c1", text="/new")
                answer = await socket.chat_until("chat:system")
        assert await in_thread(Session.objects.count) == 2
        assert await in_thread(lambda: Session.objects.filter(pk=answer["follow"]).exists())

    async def test_an_archived_session_takes_nothing(self, session: Session, cookie: str) -> None:
        await in_thread(lambda: Session.objects.update(archived_at=clock.now()))
        async with chatting(cookie) as socket:
            await socket.send_chat("send", session, client_id="c1", text="Hello")
            error = await socket.chat_until("error")

        assert (error["code"], error["session"], error["client_id"]) == ("archived", session.pk, "c1")
        assert not await in_thread(QueuedMessage.objects.exists)


class TestEndingATurn:
    async def test_a_stop_ends_it_and_what_waits_stays_unanswered(
        self, session: Session, cookie: str, model: Streaming, worker: Worker
    ) -> None:
        async with chatting(cookie) as socket:
            await socket.follow(session)
            await said(socket, session, "Tell me")
            model.say("Once upon")
            await socket.chat_until("chat:stream")
            await said(socket, session, "And then?", "c2")
            await socket.send_chat("stop", session)
            await socket.chat_until("chat:complete")

        assert texts(socket.rows)[:3] == ["Tell me", "Once upon", "And then?"]
        assert model.calls == 1
        assert not await in_thread(lambda: queue.waiting(session.pk))

    async def test_an_interrupt_ends_it_and_what_waits_is_answered(
        self, session: Session, cookie: str, model: Streaming, worker: Worker
    ) -> None:
        async with chatting(cookie) as socket:
            await socket.follow(session)
            await said(socket, session, "Tell me")
            model.say("Once upon")
            await socket.chat_until("chat:stream")
            await said(socket, session, "Something else", "c2")
            await socket.send_chat("interrupt", session)
            model.end()
            model.say("Else.")
            model.end()
            while "Else." not in texts(socket.rows):
                await socket.chat_frame()

        assert texts(socket.rows)[:3] == ["Tell me", "Once upon", "Something else"]

    async def test_where_nothing_runs_that_is_said(
        self, session: Session, cookie: str, worker: Worker
    ) -> None:
        async with chatting(cookie) as socket:
            for kind in ("stop", "interrupt"):
                await socket.send_chat(kind, session)
                assert (await socket.chat_until("error"))["code"] == "not_working"


class TestDeleting:
    async def test_an_exchange_is_greyed_in_every_view(
        self, session: Session, cookie: str, model: Streaming, worker: Worker
    ) -> None:
        async with chatting(cookie) as socket, chatting(cookie) as other:
            await socket.follow(session)
            await other.follow(session)
            ack = await said(socket, session, "Forget this")
            model.say("Forgotten.")
            model.end()
            await socket.chat_until("chat:complete")
            await socket.send_chat("delete", session, stamp=ack["stamp"], archives=0)
            answer = await socket.chat_until("chat:system")
            for view in (socket, other):
                while [row.get("deleted") for row in view.rows if row["role"] != "system"] != [True, True]:
                    await view.chat_frame()

        assert "deleted" in answer["row"]["text"]
        assert answer["seq"] is None
        assert other.rows == await in_thread(lambda: rows_in_log(session))
        assert "Forget this" not in raw_log(session).read_text()

    async def test_not_while_it_runs(
        self, session: Session, cookie: str, model: Streaming, worker: Worker
    ) -> None:
        async with chatting(cookie) as socket:
            await socket.follow(session)
            ack = await said(socket, session, "Keep this")
            model.say("Word")
            await socket.chat_until("chat:stream")
            await socket.send_chat("delete", session, stamp=ack["stamp"], archives=0)
            assert (await socket.chat_until("error"))["code"] == "running"
            model.end()
            await socket.chat_until("chat:complete")
        assert [row.get("deleted") for row in socket.rows] == [None, None]


class TestFollowing:
    async def test_who_comes_later_gets_what_is_there_and_then_the_stream(
        self, session: Session, cookie: str, model: Streaming, worker: Worker
    ) -> None:
        async with chatting(cookie) as socket:
            await socket.follow(session)
            await said(socket, session, "Hello")
            model.say("One ")
            await socket.chat_until("chat:stream")
            async with chatting(cookie) as other:
                subscribed = await other.follow(session)
                assert (texts(other.rows), subscribed["working"]) == (["Hello"], True)
                model.say("two")
                while "".join(other.streamed.values()) != "One two":
                    await other.chat_frame()
                model.end()
                await other.chat_until("chat:complete")

        assert other.rows == await in_thread(lambda: rows_in_log(session))

    async def test_a_storm_of_reconnects_in_the_middle_of_a_stream_loses_nothing(
        self, session: Session, cookie: str, model: Streaming, worker: Worker
    ) -> None:
        """15 views come and go while four turns stream; each shows what the log holds, in its order."""
        done = asyncio.Event()

        async def follow(pause: float) -> list[dict[str, object]]:
            view = ChatView()
            while True:
                finished = done.is_set()
                async with chatting(cookie) as socket:
                    socket.view = view
                    await socket.follow(session, after=view.after)
                    if not finished:
                        await asyncio.sleep(pause)
                        while not await socket.receive_nothing(timeout=0.001):
                            await socket.chat_frame()
                if finished:
                    return view.rows

        views = [asyncio.create_task(follow(0.01 + 0.01 * number)) for number in range(15)]
        async with chatting(cookie) as socket:
            await socket.follow(session)
            for number in range(4):
                await said(socket, session, f"Question {number}", f"c{number}")
                for word in range(30):
                    model.say(f"word{word} ")
                    await asyncio.sleep(0.005)
                model.end()
                await socket.chat_until("chat:complete")
        done.set()
        shown = await asyncio.gather(*views)

        wanted = await in_thread(lambda: rows_in_log(session))
        assert len(wanted) == 8
        assert [rows for rows in shown if rows != wanted] == []

    async def test_a_view_that_can_not_keep_up_is_told_and_comes_back_without_loss(
        self, session: Session, cookie: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from sessions_app.live import view as views

        monkeypatch.setattr(views, "QUEUE_LENGTH", 3)
        _append(session, 1)
        async with chatting(cookie) as socket:
            await socket.follow(session)
            _append(session, 50)
            reload = await socket.chat_until("reload")
            assert (reload["reason"], reload["session"]) == ("too_slow", session.pk)
            await socket.follow(session, after=socket.view.after)

        assert socket.rows == await in_thread(lambda: rows_in_log(session))
        assert len(socket.rows) == 51

    async def test_a_log_written_anew_is_told(self, session: Session, cookie: str) -> None:
        _append(session, 2)
        async with chatting(cookie) as socket:
            await socket.follow(session)
            path = ui_log(session)
            other = path.with_suffix(".new")
            other.write_bytes(path.read_bytes())
            other.rename(path)
            assert await socket.chat_until("reload") == {
                "type": "reload",
                "reason": "rewritten",
                "session": session.pk,
            }
            socket.view.rows = []
            await socket.follow(session)
            _append(session, 1, start=3)
            await socket.chat_until("chat:system", seq=3)
        assert texts(socket.rows) == ["row 1", "row 2", "row 3"]

    async def test_a_database_that_does_not_answer_costs_no_view_a_row(
        self, session: Session, cookie: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The log had been read by then, and what was read used to be thrown away with the error."""
        away = threading.Event()

        def condition(session_id: str, *, shown: Collection[str]) -> Condition:
            if away.is_set() and shown_rows() > 1:
                away.clear()
                raise OperationalError("the server is restarting")
            return read_condition(session_id, shown=shown)

        def shown_rows() -> int:
            return len(rows_in_log(session))

        monkeypatch.setattr(follow, "read_condition", condition)
        _append(session, 1)
        async with chatting(cookie) as socket:
            await socket.follow(session)
            away.set()
            _append(session, 2, start=2)
            await socket.chat_until("chat:system", seq=3)
            assert not away.is_set()
        assert texts(socket.rows) == ["row 1", "row 2", "row 3"]

    async def test_a_row_that_can_not_be_shown_ends_the_view_with_a_word(
        self, session: Session, cookie: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        _append(session, 1)
        async with chatting(cookie) as socket:
            await socket.follow(session)
            with monkeypatch.context() as patch:
                patch.setattr(follow, "row_item", _unshowable)
                _append(session, 1, start=2)
                assert (await socket.chat_until("reload"))["reason"] == "rewritten"
            socket.view.rows = []
            await socket.follow(session)
        assert texts(socket.rows) == ["row 1", "row 2"]

    async def test_a_place_of_another_log_is_told(self, session: Session, cookie: str) -> None:
        _append(session, 2)
        async with chatting(cookie) as socket:
            await socket.send_chat("subscribe", session, after=77)
            assert (await socket.chat_until("reload"))["reason"] == "rewritten"

    async def test_too_much_at_once_is_told(
        self, session: Session, cookie: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from sessions_app.live import catch_up

        monkeypatch.setattr(catch_up, "REPLAY_LIMIT", 3)
        _append(session, 5)
        async with chatting(cookie) as socket:
            await socket.send_chat("subscribe", session, after=1)
            assert (await socket.chat_until("reload"))["reason"] == "too_many"
            await socket.follow(session, after=2)
        assert texts(socket.rows) == ["row 3", "row 4", "row 5"]

    async def test_looking_writes_nothing(self, session: Session, cookie: str) -> None:
        before = await in_thread(lambda: Session.objects.values().get())
        async with chatting(cookie) as socket:
            await socket.follow(session)
            assert not ui_log(session).parent.exists()
            _append(session, 1)
            content = ui_log(session).read_bytes() + b'{"t":"add","torn'
            ui_log(session).write_bytes(content)
            await socket.chat_until("chat:system")

        assert ui_log(session).read_bytes() == content
        assert await in_thread(lambda: Session.objects.values().get()) == before

    async def test_hostile_text_comes_laid_out_without_what_acts(
        self, session: Session, cookie: str, model: Streaming, worker: Worker
    ) -> None:
        evil = "<script>alert(1)</script> ![x](http://evil.example/x.png) <img src=x onerror=alert(1)>"
        async with chatting(cookie) as socket:
            await socket.follow(session, html=True)
            await said(socket, session, evil)
            model.say(evil)
            model.end()
            await socket.chat_until("chat:complete")

        laid_out = [frame["html"] for frame in socket.frames if frame.get("html")]
        assert len(laid_out) == 2
        assert not any("<script" in html or "<img" in html for html in laid_out)
        assert all("&lt;script&gt;" in html for html in laid_out)

    async def test_half_a_character_and_endless_nesting_do_no_harm(
        self, session: Session, cookie: str
    ) -> None:
        deep: object = "bottom"
        for _ in range(200):
            deep = [deep]
        call = {"type": "tool_call", "call_id": "c", "tool": "glob \ud800", "arguments": {"x": deep}}
        rows = [
            system_row(row_id="a", at="", kind="note", text="half \ud800"),
            assistant_row(row_id="b", at="", blocks=[call]),
        ]
        _write(session, encode([{**add(row), "seq": n, "e": 0} for n, row in enumerate(rows, 1)]))
        _write(session, encode([{**inflight("c", "", {"0": call}), "seq": 3, "e": 0}]))
        async with chatting(cookie) as socket:
            await socket.follow(session, html=True)
            growing = await socket.chat_until("chat:tool_call")
        assert [row["id"] for row in socket.rows] == ["a", "b"]
        assert "half \ufffd" in socket.frames[0]["html"]
        assert growing["tool"] == "glob \ufffd"
        assert "nested too deeply" in str(growing["arguments"])

    async def test_the_order_is_that_in_which_rows_began(self, session: Session, cookie: str) -> None:
        """A note that came while a reply streamed stands behind it, for who saw it live and who came later."""
        note = system_row(row_id="note", at="", kind="note", text="a note")
        reply = assistant_row(row_id="reply", at="", blocks=[{"type": "text", "text": "Hello"}])
        growing = inflight("reply", "", {"0": {"type": "text", "text": "He"}})
        _append(session, 1)
        async with chatting(cookie) as socket:
            await socket.follow(session)
            for seq, record in enumerate([growing, add(note), add(reply)], 2):
                _write(session, encode([{**record, "seq": seq, "e": 0}]))
                await socket.chat_until(("chat:stream", "chat:system", "chat:assistant")[seq - 2])
            async with chatting(cookie) as other:
                other.view.rows = socket.rows[:1]
                await other.follow(session, after=1)
        assert texts(socket.rows) == texts(other.rows) == ["row 1", "Hello", "a note"]


def _unshowable(*_args: object, **_options: object) -> object:
    raise TypeError("nothing can show this")


def _append(session: Session, count: int, *, start: int | None = None) -> None:
    """Rows as a process that isn't this one writes them."""
    first = start if start is not None else len(rows_in_log(session)) + 1
    numbers = range(first, first + count)
    rows = [system_row(row_id=f"r{n}", at="", kind="note", text=f"row {n}") for n in numbers]
    _write(session, encode([{**add(row), "seq": n, "e": 0} for n, row in zip(numbers, rows, strict=True)]))


def _write(session: Session, data: bytes) -> None:
    ui_log(session).parent.mkdir(parents=True, exist_ok=True)
    with ui_log(session).open("ab") as stream:
        stream.write(data)
