"""Text of models and people on every page: shown as text, never obeyed."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from core import clock, hashes
from core.db.models import record_event
from evolution import manifest as manifests
from evolution.admin.log import note
from evolution.artifacts.files import AttemptFiles
from evolution.manifest import Manifest, ManifestFile
from evolution.models import EvolutionApply, EvolutionRun
from sessions_app.logs.records import add, assistant_row, system_row, user_row
from sessions_app.models import Session
from sessions_app.places import log_folder, log_leaf
from tests.evolution.rows import Rows
from tests.evolution.run_folders import fill
from tests.site.people import browser, person

pytestmark = pytest.mark.django_db

MARK = "evilmark"
HOSTILE = (
    f"\"'><script>{MARK}()</script><img src=//{MARK}.example onerror={MARK}()>"
    f"</textarea></title><b x-init='{MARK}()'>{{{{ {MARK} }}}}\u202e\0\ufffd"
)
_READ_BY_SCRIPTS = ("x-", "hx-", ":", "@", "on")


class Page(HTMLParser):
    """What of the page a browser would act on."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.acting: list[str] = []
        self.text: list[str] = []
        self._script = False
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._script = tag == "script"
        if MARK in tag:
            self.acting.append(tag)
        for name, value in attrs:
            acts = name.startswith(_READ_BY_SCRIPTS) or name in (
                "src",
                "srcset",
                "style",
                "action",
                "formaction",
            )
            if MARK in name or (MARK in (value or "") and acts):
                self.acting.append(f"{tag} {name}={value}")

    def handle_endtag(self, tag: str) -> None:
        self._script = False

    def handle_data(self, data: str) -> None:
        if self._script and MARK in data:
            self.acting.append(data)
        self.text.append(data)


def assert_harmless(html: str, *, shown: bool = True) -> None:
    page = Page(html)
    assert page.acting == []
    assert (MARK in "".join(page.text)) == shown


@pytest.fixture
def session(tmp_path: Path) -> Session:
    rows = Rows.make(tmp_path, name="ws<b x-init='evilmark()'>")
    rows.in_review(user_hint=HOSTILE.replace("\0", ""), agent_id=f"<i>{MARK}")
    rows.claimed(user_hint=HOSTILE.replace("\0", ""))
    rows.pending(user_hint=HOSTILE.replace("\0", ""))
    for kind in ("settings:changed", "session:changed", "evolution:run_changed", "nobody:knows"):
        record_event(
            kind=kind,
            object_id=HOSTILE.replace("\0", "")[:250],
            workspace_id=None,
            payload={"to": HOSTILE, "change": HOSTILE, "phase": HOSTILE},
            now=clock.now(),
        )
    made = Session.objects.create(
        id="s0123456789abcdef",
        workspace=rows.workspace,
        agent_id="writer",
        agent_name=HOSTILE.replace("\0", ""),
        title=HOSTILE.replace("\0", "")[:200],
        access_level="full",
        created_at=rows.now,
        last_activity_at=rows.now,
    )
    _write_log(made)
    return made


def _write_log(session: Session) -> None:
    at = "2026-01-31T09:30:00.123Z"
    call = {
        "type": "tool_call",
        "tool": HOSTILE,
        "arguments": {HOSTILE: HOSTILE},
        "result": {"text": HOSTILE},
    }
    blocks = [{"type": "text", "text": HOSTILE}, {"type": "thinking", "text": HOSTILE}, call]
    rows = [
        user_row(row_id="a", at=at, stamp="1", text=HOSTILE, source=HOSTILE),
        assistant_row(row_id="b", at=at, blocks=blocks, status=HOSTILE),
        system_row(row_id="c", at=HOSTILE, kind="note", text=HOSTILE),
    ]
    folder = log_folder(session)
    folder.mkdir(parents=True)
    lines = [{**add(row), "e": 0, "seq": number} for number, row in enumerate(rows, 1)]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (folder / f"{log_leaf(session)}.ui.jsonl").write_text(text)


@pytest.mark.parametrize(
    "path",
    [
        "/admin/",
        "/admin/dashboard/",
        "/admin/sessions_app/session/",
        "/admin/sessions_app/session/s0123456789abcdef/change/",
        "/admin/sessions_app/session/s0123456789abcdef/chat/",
        "/admin/sessions_app/session/new/",
        "/admin/workspaces/workspace/",
        "/admin/core/event/",
        "/admin/evolution/evolutionrun/",
    ],
)
def test_hostile_text_is_shown_and_does_nothing(session: Session, path: str) -> None:
    answer = browser("administrator").get(path)

    assert answer.status_code == 200
    assert_harmless(answer.content.decode())


@pytest.fixture
def landed(tmp_path: Path) -> EvolutionApply:
    """An apply from a run whose every text is hostile; a published file has been edited since, to the same end."""
    rows = Rows.make(tmp_path, name="ws<b x-init='evilmark()'>")
    run = rows.in_review(user_hint=HOSTILE.replace("\0", ""), agent_id=f"<i>{MARK}")
    fill(run, text=HOSTILE)
    apply = rows.applied(rows.approved([run]))
    plain = HOSTILE.replace("\0", "")
    EvolutionApply.objects.filter(pk=apply.pk).update(
        reviewer_hint=plain,
        failure_reason=plain,
        drifted=[plain],
        rollback_outcome={"left": [plain], plain: plain},
    )
    EvolutionRun.objects.filter(pk=run.pk).update(
        decision_reason=plain, failure_reason=plain, skip_reason=plain, has_observation=True
    )
    files = AttemptFiles(apply.workspace.paths.evolution.apply_attempt(apply.pk, apply.attempts))
    files.apply_log.parent.mkdir(parents=True, exist_ok=True)
    files.apply_log.write_text(HOSTILE)
    files.abort.write_text(HOSTILE)
    _published(apply, f"agents/<img src=x onerror={MARK}()>/AGENT.md", HOSTILE.encode())
    return apply


def _published(apply: EvolutionApply, rel: str, text: bytes) -> None:
    """A snapshot of one overwritten file, and what a person has put in its place since."""
    paths = apply.workspace.paths
    snapshot = paths.evolution.snapshot(apply.pk, apply.snapshot_attempt or 0)
    for path, was in ((snapshot / "before" / rel, b"before "), (paths.halo / rel, b"edited ")):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(was + text)
    file = ManifestFile(
        rel, "overwrite", hashes.of_bytes(b"before " + text), hashes.of_bytes(b"after " + text)
    )
    manifests.write(snapshot, Manifest(apply.pk, (), "2026-03-01T12:00:00.000Z", (file,), ()))


@pytest.mark.parametrize("page", ["change", "delete", "history"])
def test_a_run_shows_hostile_text_and_does_nothing_of_it(landed: EvolutionApply, page: str) -> None:
    run = landed.source_runs.get()
    note(user=person("administrator"), model=EvolutionRun, row_id=run.pk, text=HOSTILE.replace("\0", ""))

    answer = browser("administrator").get(f"/admin/evolution/evolutionrun/{run.pk}/{page}/")

    assert answer.status_code == 200
    assert_harmless(answer.content.decode())


@pytest.mark.parametrize("page", ["change", "rollback", "history"])
def test_an_apply_shows_hostile_text_and_does_nothing_of_it(landed: EvolutionApply, page: str) -> None:
    note(user=person("administrator"), model=EvolutionApply, row_id=landed.pk, text=HOSTILE.replace("\0", ""))

    answer = browser("administrator").get(f"/admin/evolution/evolutionapply/{landed.pk}/{page}/")

    assert answer.status_code == 200
    assert_harmless(answer.content.decode())


def test_the_rollback_shows_what_would_be_lost_and_what_comes_back(landed: EvolutionApply) -> None:
    shown = browser("administrator").get(f"/admin/evolution/evolutionapply/{landed.pk}/rollback/")

    html = shown.content.decode()
    assert "what is there now, against what comes back" in html
    assert re.search(r'<td class="t old">edited .*?<td class="t new">before ', html, re.DOTALL)


def test_refusals_repeat_hostile_text_as_text(landed: EvolutionApply) -> None:
    run = landed.source_runs.get()
    client = browser("administrator")
    given = {"action": "approve", "attempt": "1", "apply": HOSTILE, "text": HOSTILE, "run": HOSTILE}

    for path in (f"/admin/evolution/evolutionrun/{run.pk}/decide/", "/admin/evolution/evolutionrun/"):
        answer = client.post(path, given)
        assert answer.status_code == 409
        assert Page(answer.content.decode()).acting == []


def test_the_workspace_and_its_settings_show_hostile_names_as_text(session: Session) -> None:
    client = browser("administrator")
    number = session.workspace_id

    assert_harmless(client.get(f"/admin/workspaces/workspace/{number}/change/").content.decode())
    assert_harmless(client.get(f"/admin/settings/?workspace={number}").content.decode())


def test_what_is_searched_for_comes_back_as_text(session: Session) -> None:
    client = browser("administrator")

    for path in ("/admin/sessions_app/session/", "/admin/core/event/", "/admin/workspaces/workspace/"):
        answer = client.get(path, {"q": HOSTILE.replace("\0", "")})
        assert answer.status_code == 200
        assert Page(answer.content.decode()).acting == []


def test_a_damaged_and_a_vanished_log_are_told_not_raised(session: Session) -> None:
    path = "/admin/sessions_app/session/s0123456789abcdef/change/"
    log = log_folder(session) / f"{log_leaf(session)}.ui.jsonl"
    before = log.read_bytes()
    log.write_bytes(b"{not json\n" + before)
    assert "are damaged" in browser("administrator").get(path).content.decode()
    assert log.read_bytes() == b"{not json\n" + before

    log.unlink()

    assert "Nothing was said yet." in browser("administrator").get(path).content.decode()
    assert not log.exists()
