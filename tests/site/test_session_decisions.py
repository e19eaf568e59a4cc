"""What a person decides about a session: on its page, in the chat, over REST; each stands in the admin's log."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.admin.models import ADDITION, CHANGE, DELETION, LogEntry
from django.core.management import CommandError, call_command
from django.db import OperationalError
from django.test import Client

from core import clock
from core.db.models import Event
from sessions_app import queue
from sessions_app.create import create_session
from sessions_app.end_turn import Way, end_turn
from sessions_app.models import QueuedMessage, Session
from sessions_app.running_sessions import RunningSessions
from sessions_app.worker import Worker
from tests.site.api_world import bearer, call, token_for
from tests.site.api_world import person as with_token
from tests.site.chat_world import make_session
from tests.site.people import browser

pytestmark = pytest.mark.django_db


@pytest.fixture
def session(db: None, tmp_path: Path, halo_home: Path) -> Session:
    return make_session(tmp_path / "workspace")


def page(session: Session, more: str = "change") -> str:
    return f"/admin/sessions_app/session/{session.pk.replace('>', '_3E')}/{more}/"


def shown(client: Client, session: Session, more: str = "change") -> str:
    answer = client.get(page(session, more))
    assert answer.status_code == 200
    return str(answer.content.decode())


def said() -> list[tuple[str, str, int, str]]:
    rows = LogEntry.objects.order_by("pk").select_related("user")
    return [(row.user.username, row.object_id or "", row.action_flag, row.change_message) for row in rows]


def child_of(session: Session) -> Session:
    return Session.objects.create(
        id=f"{session.pk}>child",
        workspace=session.workspace,
        parent=session,
        agent_id="helper",
        agent_name="Helper",
        title="the child",
        access_level="full",
        report_due=True,
        created_at=clock.now(),
        last_activity_at=clock.now(),
    )


class TestAuthoring:
    def test_the_button_opens_for_an_hour_and_ends_it(self, session: Session) -> None:
        client = browser("operator")
        assert "Open for authoring</button>" in shown(client, session)
        began = clock.now()

        answer = client.post(page(session, "authoring"), {"action": "open"})

        assert (answer.status_code, answer["Location"]) == (302, page(session))
        session.refresh_from_db()
        assert session.authoring_until is not None
        assert timedelta(0) <= session.authoring_until - began - timedelta(hours=1) < timedelta(seconds=30)
        assert "Open for authoring until" in shown(client, session)
        client.post(page(session, "authoring"), {"action": "close"})
        session.refresh_from_db()
        assert session.authoring_until is not None and session.authoring_until <= clock.now()
        html = shown(client, session)
        assert "Open for authoring until" not in html.split("Recent")[0].split('id="authoring"')[1]
        [opened, closed] = said()
        assert opened[:3] == closed[:3] == ("a-operator", session.pk, CHANGE)
        assert opened[3].startswith("Opened for authoring until")
        assert closed[3] == "Closed for authoring."

    @pytest.mark.parametrize("kind", ["reviewer", "plain", "anonymous"])
    @pytest.mark.parametrize("action", ["open", "close"])
    def test_without_the_permission_nothing_changes(self, session: Session, kind: str, action: str) -> None:
        Session.objects.update(
            authoring_until=clock.now() + timedelta(minutes=9) if action == "close" else None
        )
        before = Session.objects.values().get()

        answer = browser(kind).post(page(session, "authoring"), {"action": action})

        assert answer.status_code == (403 if kind == "reviewer" else 302)
        assert Session.objects.values().get() == before
        assert said() == []

    def test_who_only_looks_sees_that_it_is_open_and_no_button(self, session: Session) -> None:
        Session.objects.update(authoring_until=clock.now() + timedelta(minutes=9))

        html = shown(browser("reviewer"), session)

        assert "Open for authoring until" in html
        assert "Close it for authoring" not in html

    def test_one_session_of_a_workspace(self, session: Session) -> None:
        client = browser("operator")
        other = create_session(
            workspace=session.workspace,
            agent_id="helper",
            agent_name="H",
            access_level="full",
            now=clock.now(),
        )
        client.post(page(session, "authoring"), {"action": "open"})

        html = shown(client, other)
        assert "disabled" in html.split('id="authoring"')[1].split("</form>")[0]
        assert f"Session {session.pk} of this workspace is open" in html
        client.post(page(other, "authoring"), {"action": "open"})
        other.refresh_from_db()
        assert other.authoring_until is None
        Session.objects.filter(pk=session.pk).update(archived_at=clock.now())
        client.post(page(other, "authoring"), {"action": "open"})
        other.refresh_from_db()
        assert other.authoring_until is not None, "one that is archived keeps no other from it"

    def test_neither_a_sub_session_nor_by_looking(self, session: Session) -> None:
        child, client = child_of(session), browser("operator")

        assert 'id="authoring"' not in shown(client, child)
        client.post(page(child, "authoring"), {"action": "open"})
        assert client.get(page(session, "authoring")).status_code == 405
        assert client.post(page(session, "authoring"), {"action": "else"}).status_code == 404
        assert not Session.objects.exclude(authoring_until=None).exists()


class TestArchiving:
    def form(self, client: Client, session: Session) -> dict[str, str]:
        html = shown(client, session, "archive")
        names = ("sessions", "newest")
        return {name: html.split(f'name="{name}" value="')[1].split('"')[0] for name in names}

    def test_what_goes_is_listed_and_then_goes(self, session: Session) -> None:
        client, child = browser("operator"), child_of(session)
        queue.accept(session=child, text="waits", now=clock.now())
        html = shown(client, session, "archive")
        assert "2 sessions" in html and "the child" in html and "1 message not answered yet" in html
        assert not Session.objects.exclude(archived_at=None).exists(), "looking archives nothing"

        answer = client.post(page(session, "archive"), self.form(client, session))

        assert (answer.status_code, answer["Location"]) == (302, page(session))
        assert Session.objects.filter(archived_at=None).count() == 0
        assert not QueuedMessage.objects.filter(worked_at=None).exists()
        assert said() == [
            (
                "a-operator",
                session.pk,
                CHANGE,
                "Archived with 1 below it; 1 waiting messages were cleared.",
            )
        ]
        assert "Archive…" not in shown(client, session)
        client.post(page(session, "archive"), {"sessions": "0", "newest": "0"})
        assert len(said()) == 1, "archived once"

    @pytest.mark.parametrize("came", ["message", "session"])
    def test_what_came_in_since_is_asked_about_again(self, session: Session, came: str) -> None:
        client = browser("operator")
        seen = self.form(client, session)
        if came == "message":
            queue.accept(session=session, text="one more", now=clock.now())
        else:
            child_of(session)
        before = list(Session.objects.values())

        answer = client.post(page(session, "archive"), seen)

        assert answer.status_code == 409
        assert "Something came in since" in answer.content.decode()
        assert list(Session.objects.values()) == before
        assert not QueuedMessage.objects.exclude(worked_at=None).exists()
        assert said() == []
        assert client.post(page(session, "archive"), self.form(client, session)).status_code == 302

    @pytest.mark.parametrize("kind", ["reviewer", "plain", "anonymous"])
    def test_without_the_permission_nothing_changes(self, session: Session, kind: str) -> None:
        answer = browser(kind).post(page(session, "archive"), {"sessions": "1", "newest": "0"})

        assert answer.status_code == (403 if kind == "reviewer" else 302)
        assert Session.objects.get().archived_at is None
        assert said() == []

    def test_who_may_not_is_shown_no_way_there(self, session: Session) -> None:
        assert "Archive…" in shown(browser("operator"), session)
        assert "Archive…" not in shown(browser("reviewer"), session)


class TestRenaming:
    def test_the_name_stays_whatever_is_said(self, session: Session) -> None:
        client = browser("operator")
        Session.objects.update(title="Hello, I am Ann")
        assert 'value="Hello, I am Ann"' in shown(client, session)

        answer = client.post(page(session, "rename"), {"title": "  The <b>sky</b>\n question "})

        assert (answer.status_code, answer["Location"]) == (302, page(session))
        html = shown(client, session)
        assert 'value="The &lt;b&gt;sky&lt;/b&gt; question"' in html and "<b>sky</b>" not in html
        assert said() == [("a-operator", session.pk, CHANGE, "Named The <b>sky</b> question.")]
        event = Event.objects.latest("pk")
        assert (event.object_id, event.payload) == (session.pk, {"change": "renamed"})

    @pytest.mark.parametrize("title", ["", " \n ", "x" * 201, "a\x07b", "a\x00b"])
    def test_what_is_no_title_changes_nothing(self, session: Session, title: str) -> None:
        Session.objects.update(title="before")
        events = Event.objects.count()

        answer = browser("operator").post(page(session, "rename"), {"title": title}, follow=True)

        assert "Not renamed: A title is one line of 1 to 200 characters" in answer.content.decode()
        assert Session.objects.get().title == "before"
        assert Event.objects.count() == events and said() == []

    @pytest.mark.parametrize("kind", ["reviewer", "anonymous"])
    def test_who_may_not_is_refused(self, session: Session, kind: str) -> None:
        answer = browser(kind).post(page(session, "rename"), {"title": "mine"})
        assert answer.status_code == (403 if kind == "reviewer" else 302)
        assert Session.objects.get().title == ""
        assert said() == [] and not Event.objects.filter(payload={"change": "renamed"}).exists()

    def test_looking_renames_nothing(self, session: Session) -> None:
        assert browser("operator").get(page(session, "rename")).status_code == 405
        assert 'name="title"' not in shown(browser("reviewer"), session)


def something_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """As far as this process's worker can tell, in every session."""
    monkeypatch.setattr(RunningSessions, "is_at_work", lambda _self, _id: True)
    monkeypatch.setattr(RunningSessions, "is_tree_at_work", lambda _self, _id: True)


class TestTheLog:
    """Starting, stopping, interrupting; deleting an exchange has a test beside its others."""

    def test_over_rest(self, session: Session, working: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
        user = with_token("operator")
        client, headers = Client(), bearer(token_for(user))

        def ask(method: str, path: str, body: Any = None) -> int:
            return int(call(client, method, f"/api{path}", body, **headers).status_code)

        assert ask("POST", f"/sessions/{session.pk}/stop") == 409
        assert said() == [], "nothing ran, nothing was decided"
        started = {"workspace": session.workspace_id, "agent": "helper", "access": "workspace"}
        assert ask("POST", "/sessions", started) == 201
        something_runs(monkeypatch)
        assert ask("POST", f"/sessions/{session.pk}/stop") == 202
        assert ask("POST", f"/sessions/{session.pk}/interrupt") == 202
        new = Session.objects.exclude(pk=session.pk).get()
        assert said() == [
            (user.username, new.pk, ADDITION, "Started with helper at access level workspace."),
            (user.username, session.pk, CHANGE, "Stopped its turn."),
            (user.username, session.pk, CHANGE, "Interrupted its turn."),
        ]

    def test_on_the_page(self, session: Session, working: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
        client = browser("operator")
        chat = page(session, "chat")
        form = {"agent": f"{session.workspace_id}:helper", "access": "workspace"}
        assert client.post("/admin/sessions_app/session/new/", form).status_code == 302
        assert client.post(chat, {"action": "stop"}).status_code == 409
        something_runs(monkeypatch)
        for action in ("stop", "interrupt"):
            assert client.post(chat, {"action": action}).status_code == 302
        for number, text in enumerate(("/stop", "/interrupt", "/new")):
            client.post(chat, {"action": "send", "text": text, "client_id": f"c{number}"})

        assert [(who, text) for who, _, _, text in said()] == [
            ("a-operator", text)
            for text in (
                "Started with helper at access level workspace.",
                "Stopped its turn.",
                "Interrupted its turn.",
                "Stopped its turn.",
                "Interrupted its turn.",
                "Started with helper at access level full.",
            )
        ]

    def test_at_the_terminal(self, session: Session) -> None:
        child_of(session)
        user = with_token("operator")

        call_command("session", "archive", session.pk, "--as", user.username)
        call_command("session", "delete", session.pk, "--yes", "--as", user.username)

        assert said() == [
            (user.username, session.pk, CHANGE, "Archived with 1 below it."),
            (user.username, session.pk, DELETION, "Deleted with 1 below it."),
        ]
        assert not Session.objects.exists()

    @pytest.mark.parametrize("verb", [("archive",), ("delete", "--yes")])
    @pytest.mark.parametrize(
        ("name", "shell_of", "words"),
        [
            ("nobody", "", "no active user 'nobody'"),
            ("reviewer", "", "lacks the permission workspaces.chat"),
            ("operator", "an-agent", "this shell belongs to an agent"),
        ],
    )
    def test_who_may_not_decide_at_the_terminal_changes_nothing(
        self,
        session: Session,
        monkeypatch: pytest.MonkeyPatch,
        verb: tuple[str, ...],
        name: str,
        shell_of: str,
        words: str,
    ) -> None:
        user = name if name == "nobody" else with_token(name).username
        monkeypatch.setenv("HALO_SESSION", shell_of)
        before = Session.objects.values().get(), Event.objects.count()

        with pytest.raises(CommandError, match=words):
            call_command("session", *verb, session.pk, "--as", user)

        assert (Session.objects.values().get(), Event.objects.count()) == before
        assert said() == []

    @pytest.mark.parametrize("way", ["stop", "interrupt"])
    def test_what_can_not_be_noted_is_not_done(
        self, session: Session, working: Worker, monkeypatch: pytest.MonkeyPatch, way: Way
    ) -> None:
        def full(_text: str) -> str:
            raise OperationalError("database or disk is full")

        ended: list[str] = []
        something_runs(monkeypatch)
        monkeypatch.setattr(RunningSessions, way, lambda _self, name, **_more: ended.append(name))
        monkeypatch.setattr("sessions_app.admin_log.storable", full)
        before = Session.objects.values().get()
        with pytest.raises(OperationalError):
            end_turn(session, way, user=with_token("operator"), now=clock.now())
        assert ended == []
        assert Session.objects.values().get() == before
        assert [row.payload for row in Event.objects.all()] == [{"change": "created"}]

    def test_a_sessions_log_is_shown(self, session: Session) -> None:
        client = browser("operator")
        client.post(page(session, "authoring"), {"action": "open"})

        assert "Opened for authoring until" in shown(client, session, "history")
