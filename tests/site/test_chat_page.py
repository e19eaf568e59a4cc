"""The chat page without a script: a form and a transcript; and what its script is handed."""

from __future__ import annotations

import base64
import re
from pathlib import Path
from typing import Any

import pytest
from django.contrib.admin.models import ADDITION, LogEntry
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from core import clock
from core.db.models import Event
from sessions_app import lease, queue
from sessions_app.errors import SessionRefused
from sessions_app.logs.records import add, assistant_row, encode, inflight, user_row
from sessions_app.models import QueuedMessage, Session
from sessions_app.places import ui_log
from sessions_app.worker import Worker
from tests.sessions.streams_in_tests import Streaming
from tests.sessions.test_worker import until
from tests.site.chat_world import make_session, rows_in_log
from tests.site.people import browser
from workspaces.models import Workspace

PNG = b"\x89PNG\r\n\x1a\n" + b"0" * 20
NEW = "/admin/sessions_app/session/new/"


@pytest.fixture
def session(db: None, tmp_path: Path, halo_home: Path) -> Session:
    return make_session(tmp_path / "workspace")


def address(session: Session) -> str:
    return f"/admin/sessions_app/session/{session.pk}/chat/"


def html(client: Client, session: Session) -> str:
    answer = client.get(address(session))
    assert answer.status_code == 200
    return answer.content.decode()


def say(client: Client, session: Session, **fields: Any) -> Any:
    return client.post(address(session), {"action": "send", **fields})


def filled_in(client: Client, session: Session) -> dict[str, str]:
    """What a browser sends of the form for a new session."""
    [client_id] = re.findall(r'name="client_id" value="(\w+)"', client.get(NEW).content.decode())
    return {
        "client_id": client_id,
        "agent": f"{session.workspace_id}:helper",
        "access": "workspace",
        "working_dir": "",
        "text": "Hello",
    }


def write(session: Session, *records: dict[str, Any]) -> bytes:
    ui_log(session).parent.mkdir(parents=True, exist_ok=True)
    with ui_log(session).open("ab") as stream:
        stream.write(encode([{"e": 0, "seq": seq, **record} for seq, record in enumerate(records, 1)]))
    return ui_log(session).read_bytes()


@pytest.mark.django_db
class TestTheForm:
    def test_a_message_is_stored_and_shown_as_waiting(self, session: Session) -> None:
        client = browser("operator")
        answer = say(client, session, text="Hello <b>there</b>", client_id="c1")

        assert (answer.status_code, answer["Location"]) == (302, f"{address(session)}#end")
        assert [row.text for row in queue.waiting(session.pk)] == ["Hello <b>there</b>"]
        assert "Hello &lt;b&gt;there&lt;/b&gt;" in html(client, session)

    def test_posted_twice_it_is_stored_once(self, session: Session) -> None:
        client = browser("operator")
        for _ in range(2):
            say(client, session, text="Once", client_id="c1")

        assert QueuedMessage.objects.count() == 1

    def test_each_page_has_a_client_id_of_its_own(self, session: Session) -> None:
        client = browser("operator")
        found = [re.findall(r'name="client_id" value="(\w+)"', html(client, session)) for _ in range(2)]

        assert found[0] != found[1]
        assert len(found[0]) == 1

    def test_an_empty_message_is_refused_in_words(self, session: Session) -> None:
        answer = say(browser("operator"), session, text="  ", client_id="c1")

        assert answer.status_code == 409
        assert "The message is empty." in answer.content.decode()
        assert not QueuedMessage.objects.exists()

    def test_a_picture_comes_along_and_what_is_none_does_not(self, session: Session) -> None:
        client = browser("operator")
        good = SimpleUploadedFile("a.png", PNG, content_type="image/png")
        bad = SimpleUploadedFile("a.png", b"<svg onload=x>", content_type="image/png")

        assert say(client, session, text="Look", client_id="c1", image=bad).status_code == 409
        assert not QueuedMessage.objects.exists()
        assert say(client, session, text="Look", client_id="c1", image=good).status_code == 302
        [image] = QueuedMessage.objects.get().images
        assert base64.urlsafe_b64decode(image["data"]) == PNG

    def test_a_command_is_answered_on_the_next_page(self, session: Session) -> None:
        client = browser("operator")
        answer = say(client, session, text="/session info", client_id="c1")

        assert answer["Location"] == address(session)
        assert f"session {session.pk}" in html(client, session)
        assert not QueuedMessage.objects.exists()

    def test_slash_new_leads_to_the_new_session(self, session: Session) -> None:
        answer = say(browser("operator"), session, text="/new", client_id="c1")

        made = Session.objects.exclude(pk=session.pk).get()
        assert answer["Location"] == address(made)

    @pytest.mark.parametrize("action", ["stop", "interrupt"])
    def test_outside_a_server_nothing_is_ended(self, session: Session, action: str) -> None:
        answer = browser("operator").post(address(session), {"action": action})

        assert answer.status_code == 409
        assert "only inside the server" in answer.content.decode()

    def test_a_deletion_is_asked_for_twice(self, session: Session) -> None:
        stamp = "2026-01-31T09:30:00.123Z"
        before = write(session, add(user_row(row_id="u", at="", stamp=stamp, text="Forget this")))
        client = browser("operator")
        assert f'name="delete" value="{stamp}"' in html(client, session)
        assert "said-delete" not in html(browser("reviewer"), session)

        asked = client.post(address(session), {"delete": stamp, "archives": "0"})
        assert "There is no way back." in asked.content.decode()
        assert ui_log(session).read_bytes() == before
        sure = client.post(address(session), {"delete": stamp, "archives": "0", "sure": "yes"})
        assert sure.status_code == 409  # this message never reached the model
        assert "can&#x27;t be matched" in sure.content.decode()
        refused = browser("reviewer").post(address(session), {"delete": stamp, "sure": "yes"})
        assert refused.status_code == 403

    @pytest.mark.parametrize("who", ["reviewer", "plain", "anonymous"])
    @pytest.mark.parametrize("action", ["send", "stop", "interrupt"])
    def test_who_may_not_is_refused_and_nothing_changes(
        self, session: Session, who: str, action: str
    ) -> None:
        events = Event.objects.count()
        answer = browser(who).post(address(session), {"action": action, "text": "Hello", "client_id": "c1"})

        assert answer.status_code in (302, 403)
        assert "Location" not in answer or answer["Location"].startswith("/admin/login/")
        assert (QueuedMessage.objects.count(), Event.objects.count()) == (0, events)

    def test_a_token_of_the_form_is_asked_for(self, session: Session) -> None:
        client = Client(enforce_csrf_checks=True)
        client.cookies = browser("operator").cookies

        assert say(client, session, text="Hello", client_id="c1").status_code == 403
        assert not QueuedMessage.objects.exists()

    def test_who_may_not_write_is_shown_no_field_and_told_why(self, session: Session) -> None:
        shown = html(browser("reviewer"), session)

        assert "<textarea" not in shown
        assert "takes the permission workspaces.chat" in shown

    def test_an_archived_session_takes_nothing(self, session: Session) -> None:
        Session.objects.update(archived_at=clock.now())
        client = browser("operator")

        assert "<textarea" not in html(client, session)
        assert say(client, session, text="Hello", client_id="c1").status_code == 409
        assert not QueuedMessage.objects.exists()

    def test_no_such_session(self, session: Session) -> None:
        for name in ("nothing", "a_3Eb", "%00"):
            answer = browser("operator").get(f"/admin/sessions_app/session/{name}/chat/")
            assert answer.status_code == 404


@pytest.mark.django_db
class TestThePage:
    def test_says_from_where_its_script_goes_on(self, session: Session) -> None:
        write(session, add(user_row(row_id="u", at="", stamp="1", text="Hello")))
        shown = html(browser("operator"), session)

        assert f'data-session="{session.pk}" data-after="1"' in shown
        last = Event.objects.order_by("-id").values_list("pk", flat=True)[0]
        assert f'<meta name="halo-since" content="{last}">' in shown

    def test_looking_writes_nothing(self, session: Session) -> None:
        client = browser("operator")
        html(client, session)
        assert not ui_log(session).parent.exists()
        before = write(session, inflight("r", "", {"0": {"type": "text", "text": "Half"}}))
        rows = list(Session.objects.values())
        with CaptureQueriesContext(
            connection,
        ) as queries:
            html(client, session)

        assert ui_log(session).read_bytes() == before
        assert list(Session.objects.values()) == rows
        wrote = [query["sql"] for query in queries if not query["sql"].startswith(("SELECT", "PRAGMA"))]
        assert wrote == []

    def test_a_reply_nobody_finishes_is_interrupted_and_one_in_the_making_is_not(
        self, session: Session
    ) -> None:
        write(session, inflight("r", "", {"0": {"type": "text", "text": "Half"}}))
        assert '<span class="page-bad">interrupted</span>' in html(browser("operator"), session)
        held = lease.acquire(session.pk)
        shown = html(browser("operator"), session)
        assert "interrupted</span>" not in shown
        assert "Works on an answer." in shown
        lease.release(held)

    def test_pictures_are_shown_from_the_page_itself(self, session: Session) -> None:
        kept = {"media_type": "image/png", "data": base64.urlsafe_b64encode(PNG + b"\xff\xfe\xfd").decode()}
        evil = {"media_type": 'image/svg+xml" onload="x', "data": "PHN2Zz4="}
        row = user_row(row_id="u", at="", stamp="1", text="Look", images=[kept, evil, "odd"])
        write(session, add(row))
        shown = html(browser("operator"), session)

        assert re.findall(r'<img[^>]* src="(data:[^;]+);base64,([^"]+)"', shown) == [
            ("data:image/png", base64.b64encode(PNG + b"\xff\xfe\xfd").decode())
        ]
        assert shown.count("a picture that can&#x27;t be shown") + shown.count("can't be shown") == 2

    @pytest.mark.parametrize("odd", [[], {}, 5, None, "image/png"])
    def test_a_picture_whose_type_is_none_is_called_so(self, session: Session, odd: Any) -> None:
        images = [{"media_type": odd, "data": odd}]
        write(session, add(user_row(row_id="u", at="", stamp="1", text="look", images=images)))
        assert "be shown" in html(browser("operator"), session)

    def test_half_a_character_and_endless_nesting_are_shown_somehow(self, session: Session) -> None:
        deep: Any = "bottom"
        for _ in range(200):
            deep = [deep]
        call = {"type": "tool_call", "tool": "glob", "arguments": {"x": deep}}
        write(
            session,
            add(user_row(row_id="u", at="", stamp="1", text="half \ud800")),
            add(assistant_row(row_id="a", at="", blocks=[call])),
        )
        shown = html(browser("operator"), session)

        assert "half \ufffd" in shown
        assert "nested too deeply" in shown

    def test_asks_the_database_a_few_times_however_much_was_said(self, session: Session) -> None:
        rows = [add(user_row(row_id=f"u{n}", at="", stamp=str(n), text="x")) for n in range(300)]
        client = browser("operator")
        html(client, session)
        with CaptureQueriesContext(connection) as few:
            html(client, session)
        write(session, *rows)
        with CaptureQueriesContext(connection) as many:
            shown = html(client, session)

        assert shown.count('<article class="said') == 200
        assert len(many) == len(few) <= 25


@pytest.mark.django_db
class TestANewSession:
    def test_starts_with_its_first_message(self, session: Session) -> None:
        place = session.workspace_id
        client = browser("operator")
        assert f'value="{place}:helper"' in client.get(NEW).content.decode()
        answer = client.post(
            NEW, {"agent": f"{place}:helper", "access": "workspace", "working_dir": "", "text": "Hello"}
        )

        made = Session.objects.exclude(pk=session.pk).get()
        assert answer["Location"] == f"{address(made)}#end"
        assert (made.access_level, made.agent_id, made.working_dir) == ("workspace", "helper", ".")
        assert [row.text for row in queue.waiting(made.pk)] == ["Hello"]

    @pytest.mark.parametrize("text", ["Hello", "/session info", ""])
    def test_one_form_sent_again_is_one_session_with_one_message(self, session: Session, text: str) -> None:
        client = browser("operator")
        wanted = {**filled_in(client, session), "text": text}
        first, again = client.post(NEW, wanted), client.post(NEW, wanted)

        made = Session.objects.exclude(pk=session.pk).get()
        assert first["Location"] == again["Location"]
        assert address(made) in first["Location"]
        assert QueuedMessage.objects.count() == (1 if text == "Hello" else 0)
        assert LogEntry.objects.filter(object_id=made.pk, action_flag=ADDITION).count() == 1
        assert Event.objects.filter(kind="session:changed", payload__change="created").count() == 2

    def test_sent_again_while_it_is_still_being_made_it_is_one_session(
        self, session: Session, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The second click comes between the session and its message."""
        client = browser("operator")
        wanted = filled_in(client, session)
        accept, answers = queue.accept, []

        def meanwhile(**given: Any) -> Any:
            monkeypatch.setattr(queue, "accept", accept)
            answers.append(client.post(NEW, wanted))
            return accept(**given)

        monkeypatch.setattr(queue, "accept", meanwhile)
        answers.append(client.post(NEW, wanted))

        made = Session.objects.exclude(pk=session.pk).get()
        assert {answer["Location"] for answer in answers} == {f"{address(made)}#end"}
        assert QueuedMessage.objects.get().session_id == made.pk

    def test_another_form_or_another_text_or_person_is_another_session(self, session: Session) -> None:
        client = browser("operator")
        wanted = filled_in(client, session)
        for given in (wanted, {**wanted, "text": "Goodbye"}, filled_in(client, session)):
            client.post(NEW, given)
        browser("administrator").post(NEW, wanted)
        client.post(NEW, {**wanted, "client_id": ""})
        client.post(NEW, {**wanted, "client_id": ""})

        assert Session.objects.exclude(pk=session.pk).count() == QueuedMessage.objects.count() == 6

    @pytest.mark.parametrize(
        ("text", "told"),
        [
            ("/session info", "directory ."),
            ("/nosuch", "There is no command /nosuch."),
            ("/compact", "nothing to"),
        ],
    )
    def test_a_first_message_that_is_a_command_is_answered(
        self, session: Session, text: str, told: str
    ) -> None:
        client = browser("operator")
        wanted = {"agent": f"{session.workspace_id}:helper", "access": "workspace", "text": text}
        answer = client.post(NEW, wanted)

        made = Session.objects.exclude(pk=session.pk).get()
        assert (answer.status_code, answer["Location"]) == (302, address(made))
        assert told in html(client, made)

    def test_a_first_message_that_is_refused_says_why(
        self, session: Session, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def busy(**_given: object) -> None:
            raise SessionRefused("Too many messages arrived in one moment; send it again.", "busy")

        monkeypatch.setattr(queue, "accept", busy)
        client = browser("operator")
        wanted = {"agent": f"{session.workspace_id}:helper", "access": "workspace", "text": "Hello"}
        answer = client.post(NEW, wanted)

        made = Session.objects.exclude(pk=session.pk).get()
        assert (answer.status_code, answer["Location"]) == (302, address(made))
        assert "Too many messages arrived" in html(client, made)

    def test_begins_at_the_highest_level_its_user_may_use(self, session: Session) -> None:
        from django.contrib.auth.models import User

        from tests.site.chat_world import give

        chatter = give(User.objects.create_user("chatter"), "view", "chat")
        client = Client()
        client.force_login(chatter, backend="django.contrib.auth.backends.ModelBackend")

        assert 'value="full" checked' in browser("operator").get(NEW).content.decode()
        shown = client.get(NEW).content.decode()
        assert 'value="workspace" checked' in shown
        assert 'value="full"' not in shown
        wanted = {"agent": f"{session.workspace_id}:helper", "access": "full", "text": "Hello"}
        assert client.post(NEW, wanted).status_code == 400
        assert Session.objects.count() == 1

    @pytest.mark.parametrize(
        "fields",
        [
            {"agent": ""},
            {"agent": "1"},
            {"agent": "999999:helper"},
            {"agent": "x:helper"},
            {"agent": "PLACE:nobody"},
            {"agent": "PLACE:../../etc"},
            {"access": "root"},
            {"access": ""},
            {"working_dir": "../elsewhere"},
            {"working_dir": "/etc"},
            {"working_dir": "a\x00b"},
        ],
    )
    def test_what_can_not_be_is_refused_and_makes_nothing(
        self, session: Session, fields: dict[str, str]
    ) -> None:
        good = {"agent": "PLACE:helper", "access": "readonly", "working_dir": "", "text": "Hello"}
        wanted = {
            name: value.replace("PLACE", str(session.workspace_id))
            for name, value in {**good, **fields}.items()
        }
        answer = browser("operator").post(NEW, wanted)

        assert answer.status_code == 400
        assert 'role="alert"' in answer.content.decode()
        assert (Session.objects.count(), QueuedMessage.objects.count()) == (1, 0)

    def test_a_workspace_that_is_gone_is_named(self, session: Session, tmp_path: Path) -> None:
        Workspace.objects.update(path=str(tmp_path / "gone"))

        assert "its folder is missing" in browser("operator").get(NEW).content.decode()

    def test_a_reviewer_is_refused(self, session: Session) -> None:
        wanted = {"agent": f"{session.workspace_id}:helper", "access": "readonly", "text": "Hello"}
        assert browser("reviewer").post(NEW, wanted).status_code == 403
        assert (Session.objects.count(), QueuedMessage.objects.count()) == (1, 0)
        assert "New session" not in browser("reviewer").get("/admin/sessions_app/session/").content.decode()
        assert "New session" in browser("operator").get("/admin/sessions_app/session/").content.decode()


@pytest.mark.django_db(transaction=True)
class TestWithAWorker:
    def test_the_whole_way_by_form(
        self, session: Session, working: Worker, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        model = Streaming().install(monkeypatch)
        client = browser("administrator")
        model.say("Hello **Ann**.")
        model.end()
        say(client, session, text="Hello", client_id="c1")
        until(lambda: len(rows_in_log(session)) == 2 and not queue.waiting(session.pk))
        assert "Hello <strong>Ann</strong>." in html(client, session)

        say(client, session, text="Go on", client_id="c2")
        model.say("Once upon ")
        until(lambda: model.calls == 2)
        shown = html(client, session)
        assert (
            f'<noscript><meta http-equiv="refresh" content="5; url={address(session)}"></noscript>' in shown
        )
        assert client.post(address(session), {"action": "stop"}).status_code == 302
        until(lambda: not queue.waiting(session.pk) and lease.live_holder(session.pk) is None)
        assert client.post(address(session), {"action": "stop"}).status_code == 409
