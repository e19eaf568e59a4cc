"""Asking for a run: what is frozen, who may ask, what is refused and then leaves nothing behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.db import IntegrityError, transaction

from core.db.models import Event
from core.paths import halo_home
from core.processes import host_name
from evolution import enqueue as module
from evolution import selectors
from evolution.artifacts import frozen
from evolution.artifacts.files import AttemptFiles
from evolution.enqueue import EnqueueOutcome, enqueue
from evolution.errors import Refused
from evolution.models import EvolutionRun
from sessions_app import commands
from sessions_app.create import create_session
from sessions_app.logs import records
from sessions_app.logs.session_log import SessionLog
from sessions_app.models import Session
from sessions_app.places import log_folder, log_leaf
from tests.evolution.phase_world import conversation, patch_text, write
from tests.evolution.rows import Rows
from workspaces.models import Workspace

NOW = datetime(2026, 1, 31, 9, 40, tzinfo=UTC)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HALO_HOME", str(tmp_path / "home"))
    write(halo_home().global_folder / "agents/scout/agent.yaml", "name: Scout\ndescription: Scouts.\n")
    write(halo_home().global_folder / "USER.md", "Ada.\n")
    return halo_home().root


@pytest.fixture
def workspace(db: None, home: Path, tmp_path: Path) -> Workspace:
    root = tmp_path / "ws"
    write(root / ".halo/INSTRUCTIONS.md", "Answer well.\n")
    write(root / ".halo/agents/guide/agent.yaml", "name: Guide\ntools: [file_read]\n")
    write(root / ".halo/agents/guide/AGENT.md", "You are the guide.\n")
    write(
        root / ".halo/skills/review/SKILL.md", "---\nname: review\ndescription: Reviews.\n---\nSecret body.\n"
    )
    return Workspace.objects.create(path=str(root), host=host_name(), created_at=NOW)


@pytest.fixture
def session(workspace: Workspace) -> Session:
    return make_session(workspace, conversation())


def make_session(workspace: Workspace, messages: list[Any], **values: Any) -> Session:
    session = create_session(
        workspace=workspace, agent_id="guide", agent_name="Guide", access_level="full", now=NOW, **values
    )
    write_log(session, messages)
    return session


def write_log(session: Session, messages: list[Any]) -> None:
    log = SessionLog(log_folder(session), log_leaf(session))
    log.load()
    log.append(raw=[records.message(message) for message in messages])


def ask(session: Session, hint: str = "", **values: Any) -> EnqueueOutcome:
    given: dict[str, Any] = {"requested_by": None, "trigger": "note", "now": NOW, **values}
    return enqueue(session=session, hint=hint, **given)


def folders(workspace: Workspace) -> list[Path]:
    runs = workspace.paths.evolution.root / "runs"
    return sorted(runs.iterdir()) if runs.is_dir() else []


class TestFreezing:
    def test_the_whole_conversation_and_the_prompts_of_this_moment(self, session: Session) -> None:
        outcome = ask(session, "  numbers first ")
        folder = session.workspace.paths.evolution.run(outcome.run_id)
        assert outcome.created
        assert frozen.read_messages(folder) == conversation()
        assert frozen.changed_inputs(folder) == []
        meta = frozen.read_meta(folder)
        assert (meta.run_id, meta.hint, meta.trigger) == (outcome.run_id, "numbers first", "note")
        assert (meta.session_id, meta.agent_id, meta.source_access) == (session.pk, "guide", "full")
        assert meta.created_at == "2026-01-31T09:40:00.000Z"

    def test_the_context_names_scopes_and_inlines_no_skill(self, session: Session) -> None:
        folder = session.workspace.paths.evolution.run(ask(session).run_id)
        context = frozen.read_context(folder)
        scopes = {(file.rel, file.scope): file.content for file in context.files}
        assert scopes["INSTRUCTIONS.md", "workspace"] == "Answer well.\n"
        assert scopes["USER.md", "global"] == "Ada.\n"
        assert scopes["agents/guide/AGENT.md", "workspace"] == "You are the guide.\n"
        assert ("scout", "global") in {(item.id, item.scope) for item in context.agents}
        assert not any(item.id.startswith("__") for item in context.agents)
        assert ("review", "workspace") in {(item.id, item.scope) for item in context.skills}
        assert "You are the guide." in context.system_prompt
        assert "Secret body." not in (folder / "evo-context.json").read_text()

    def test_the_row_is_pending_with_its_event(self, session: Session) -> None:
        user = person(may=True)
        run = EvolutionRun.objects.get(pk=ask(session, "h", requested_by=user).run_id)
        assert (run.status, run.attempts, run.user_hint, run.agent_id) == ("pending", 0, "h", "guide")
        assert (run.requested_by, run.source_session_id, run.created_at) == (user, session.pk, NOW)
        event = Event.objects.get(kind="evolution:run_changed", object_id=run.pk)
        assert event.payload["to"] == "pending"

    def test_files_come_first_and_the_row_last(
        self, session: Session, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        seen: list[set[str]] = []

        def insert(meta: frozen.Meta, *_rest: object) -> None:
            folder = session.workspace.paths.evolution.run(meta.run_id)
            seen.append({path.name for path in folder.iterdir()})
            raise KeyboardInterrupt

        monkeypatch.setattr(module, "_insert", insert)
        with pytest.raises(KeyboardInterrupt):
            ask(session)
        assert seen == [
            {"source-snapshot.json", "tool-flow.md", "meta.json", "evo-context.json", "inputs.json"}
        ]
        assert folders(session.workspace) == []
        assert not EvolutionRun.objects.exists()

    def test_each_file_and_folder_is_made_durable_once_before_the_row(
        self, session: Session, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The bench's fsync floor counts the very same."""
        picture = {"kind": "binary", "media_type": "image/png", "data": "aGk="}
        write_log(
            session, [{"kind": "request", "parts": [{"part_kind": "user-prompt", "content": [picture]}]}]
        )
        ask(session, "first")
        synced: list[Path] = []
        fsync = os.fsync

        def noting(descriptor: int) -> None:
            assert not EvolutionRun.objects.filter(user_hint="second").exists()
            synced.append(Path(f"/proc/self/fd/{descriptor}").readlink())
            fsync(descriptor)

        monkeypatch.setattr(os, "fsync", noting)
        folder = session.workspace.paths.evolution.run(ask(session, "second").run_id)
        files = [path for path in folder.rglob("*") if path.is_file()]
        assert len(files) == 7
        assert sorted(synced[:7]) == sorted(files)
        assert synced[7:] == [folder / "images", folder, folder.parent]

    def test_the_source_conversation_is_not_written_to(self, session: Session) -> None:
        before = {path: path.read_bytes() for path in log_folder(session).iterdir()}
        ask(session)
        assert {path: path.read_bytes() for path in log_folder(session).iterdir()} == before


class TestSourceAccess:
    @pytest.mark.parametrize("level", ["full", "workspace", "readonly"])
    def test_is_the_level_of_this_moment(self, session: Session, level: str) -> None:
        Session.objects.filter(pk=session.pk).update(access_level=level)
        run = EvolutionRun.objects.get(pk=ask(session).run_id)
        assert run.source_access == level

    def test_is_webhook_once_data_came_from_outside(self, session: Session) -> None:
        Session.objects.filter(pk=session.pk).update(outside_data_at=NOW)
        run = EvolutionRun.objects.get(pk=ask(session).run_id)
        assert run.source_access == "webhook"
        assert frozen.read_meta(session.workspace.paths.evolution.run(run.pk)).source_access == "webhook"


class TestOncePending:
    def test_the_same_hint_is_answered_with_the_run_it_has(self, session: Session) -> None:
        first = ask(session, "shorter")
        assert ask(session, " shorter\n") == EnqueueOutcome(first.run_id, created=False)
        assert [folder.name for folder in folders(session.workspace)] == [first.run_id]

    def test_no_hint_is_the_empty_text(self, session: Session) -> None:
        assert ask(session).run_id == ask(session, "   ").run_id

    def test_another_hint_or_session_is_another_run(self, session: Session, workspace: Workspace) -> None:
        other = make_session(workspace, conversation())
        assert len({ask(session).run_id, ask(session, "x").run_id, ask(other).run_id}) == 3

    def test_a_run_at_work_does_not_stand_in_the_way(self, session: Session) -> None:
        from evolution import transitions

        first = ask(session).run_id
        assert transitions.claim_run(run_id=first, attempts=0, now=NOW)
        assert ask(session).created

    def test_losing_a_race_leaves_no_folder(self, session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
        winner: list[str] = []
        real = module._insert

        def late(meta: frozen.Meta, *rest: Any) -> None:
            if not winner:
                winner.append(meta.run_id)
                winner.append(ask(session).run_id)
            real(meta, *rest)

        monkeypatch.setattr(module, "_insert", late)
        outcome = ask(session)
        assert outcome == EnqueueOutcome(winner[1], created=False)
        assert [folder.name for folder in folders(session.workspace)] == [winner[1]]

    def test_the_winner_of_a_race_may_be_claimed_before_the_loser_looks(
        self, session: Session, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from evolution import transitions

        winner: list[str] = []
        real = module._insert

        def late(meta: frozen.Meta, *rest: Any) -> None:
            if not winner:
                winner.append("")
                winner.append(ask(session).run_id)
                try:
                    real(meta, *rest)
                finally:
                    assert transitions.claim_run(run_id=winner[1], attempts=0, now=NOW)
            real(meta, *rest)

        monkeypatch.setattr(module, "_insert", late)
        outcome = ask(session)
        assert outcome.created
        assert sorted(EvolutionRun.objects.values_list("pk", "status")) == sorted(
            [(winner[1], "running"), (outcome.run_id, "pending")]
        )
        assert {folder.name for folder in folders(session.workspace)} == {winner[1], outcome.run_id}

    def test_a_hint_that_no_database_takes_as_it_is(self, session: Session) -> None:
        first = ask(session, "a\0b\ud800c")
        assert EvolutionRun.objects.get().user_hint == "a\ufffdb?c"
        assert ask(session, "a\0b\ud800c") == EnqueueOutcome(first.run_id, created=False)

    def test_prompt_files_that_can_not_be_read_are_a_refusal(
        self, session: Session, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def broken(*_args: Any, **_kwargs: Any) -> Any:
            raise OSError(5, "Input/output error")

        monkeypatch.setattr(module, "compose", broken)
        with pytest.raises(Refused, match="Input/output error") as caught:
            ask(session)
        assert caught.value.code == "not_frozen"
        assert not EvolutionRun.objects.exists()

    def test_the_index_holds_without_the_look(self, session: Session) -> None:
        run = EvolutionRun.objects.get(pk=ask(session).run_id)
        run.pk = "0" * 26
        with pytest.raises(IntegrityError), transaction.atomic():
            run.save(force_insert=True)


def person(*, may: bool) -> User:
    user = User.objects.create_user("ada" if may else "bob")
    if may:
        user.user_permissions.add(Permission.objects.get(codename="use_full_access"))
    return user


class TestRefusals:
    def refused(self, session: Session, code: str, **values: Any) -> str:
        with pytest.raises(Refused) as caught:
            ask(session, **values)
        assert caught.value.code == code
        assert folders(session.workspace) == []
        assert not EvolutionRun.objects.exists()
        return str(caught.value)

    def test_a_sub_session(self, session: Session) -> None:
        child = make_session(session.workspace, conversation(), session_id=f"{session.pk}>kid")
        self.refused(child, "no_root")

    def test_a_person_without_full_access(self, session: Session) -> None:
        self.refused(session, "permission", requested_by=person(may=False))

    @pytest.mark.parametrize(
        "messages", [[], [{"kind": "response", "parts": [{"part_kind": "text", "content": "hi"}]}]]
    )
    def test_a_session_without_a_user_message(self, workspace: Workspace, messages: list[Any]) -> None:
        self.refused(make_session(workspace, messages), "no_user_message")

    def test_a_hint_without_end(self, session: Session) -> None:
        self.refused(session, "hint_too_long", hint="x" * 5000)

    def test_a_workspace_that_is_gone(self, session: Session) -> None:
        root = Path(session.workspace.path)
        root.rename(root.with_name("moved"))
        assert "halo workspace move" in self.refused(session, "workspace_missing")

    def test_an_agent_that_is_gone(self, session: Session) -> None:
        agent = session.workspace.paths.halo / "agents/guide"
        agent.rename(agent.with_name("renamed"))
        assert "guide" in self.refused(session, "agent_unusable")

    def test_a_full_disk(self, session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
        def full(path: Path, data: bytes) -> None:
            if path.name == "evo-context.json":
                raise OSError(28, "No space left on device")
            path.write_bytes(data)

        monkeypatch.setattr(frozen, "_write", full)
        assert "No space left" in self.refused(session, "not_frozen")


class TestChatCommand:
    def say(self, session: Session, text: str, user: User | None = None) -> commands.CommandResult:
        return commands.run(text, session=session, user=user, now=NOW)

    def test_answers_with_one_line(self, session: Session) -> None:
        result = self.say(session, "/evo numbers first")
        run = EvolutionRun.objects.get()
        assert result.ok
        assert f"run-{run.pk}" in result.text
        assert "\n" not in result.text
        assert (run.user_hint, run.trigger_kind, run.requested_by) == ("numbers first", "note", None)

    def test_asking_twice_names_the_one_that_waits(self, session: Session) -> None:
        self.say(session, "/evo")
        assert f"run-{EvolutionRun.objects.get().pk} waits already" in self.say(session, "/evo").text

    def test_any_level_will_do_for_someone_who_may(self, session: Session) -> None:
        Session.objects.filter(pk=session.pk).update(access_level="readonly")
        session.refresh_from_db()
        assert self.say(session, "/evo", person(may=True)).ok

    def test_is_refused_without_the_permission(self, session: Session) -> None:
        assert not self.say(session, "/evo", person(may=False)).ok
        assert not EvolutionRun.objects.exists()

    def test_a_refusal_says_why(self, workspace: Workspace) -> None:
        result = self.say(make_session(workspace, []), "/evo")
        assert not result.ok
        assert "nobody has written" in result.text


class TestMemory:
    """The last five drafts for the agent that weren't kept."""

    def with_patch(self, run: EvolutionRun) -> EvolutionRun:
        folder = run.workspace.paths.evolution.run_attempt(run.pk, run.attempts)
        write(AttemptFiles(folder).patch, patch_text(target="INDEX.md"))
        return run

    def test_newest_first_five_at_most_with_reason_and_target(self, rows: Rows) -> None:
        failed = [self.with_patch(rows.failed()) for _ in range(6)]
        current = rows.pending()
        found = selectors.earlier_drafts(current)
        assert [item.run_id for item in found] == [run.pk for run in failed[:0:-1]]
        assert {(item.outcome, item.reason, item.target) for item in found} == {
            ("failed", "provider down", "INDEX.md")
        }

    def test_what_never_was_a_draft_or_was_kept_or_is_anothers_is_left_out(self, rows: Rows) -> None:
        rows.failed()
        self.with_patch(rows.in_review())
        self.with_patch(rows.failed(agent_id="other"))
        assert selectors.earlier_drafts(rows.pending()) == ()


def test_enqueue_does_not_import_the_model_library(home: Path) -> None:
    code = (
        "import os, sys, django\n"
        "os.environ['DJANGO_SETTINGS_MODULE'] = 'halo_site.settings.slim'\n"
        "django.setup()\n"
        "import evolution.enqueue, sessions_app.freeze\n"
        "print([name for name in sys.modules if name.startswith(('pydantic_ai', 'pydantic'))])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout.replace("'", '"')) == []
