"""What a person sets reaches the turn: limits, context rules, the web, the sandbox's view, secrets."""

from __future__ import annotations

from pathlib import Path

import pytest

from agents.tools.context import WebRules
from agents.turn import ContextRules
from core.paths import HaloHome
from sessions_app.models import Session
from sessions_app.prepare import CannotStart, prepare

SETTINGS = """
general:
  session: {max_model_calls: 7}
  limits:
    shell_timeout_sec: 11
    shell_output_bytes: 20000
    tool_result_chars: 3000
    tool_result_ui_chars: 4000
    web_fetch_bytes: 50000
  compact: {keep_messages: 3, summarize_timeout_sec: 40}
  web_fetch: {allow_private: ["*.lab.internal"]}
  sandbox: {allow: ["%s"]}
"""


@pytest.fixture
def home(tmp_path: Path) -> HaloHome:
    home = HaloHome(tmp_path / "home")
    home.settings_file.parent.mkdir(parents=True)
    allowed = tmp_path / "allowed"
    allowed.mkdir()
    home.settings_file.write_text(SETTINGS % allowed)
    return home


def test_what_is_set_reaches_the_turn(session: Session, agent: Path, home: HaloHome, tmp_path: Path) -> None:
    (agent / "agent.yaml").write_text(
        "name: Helper\ntools: [shell_exec]\nteam: [helper]\ncontext: {maxTokens: 9000, compressAt: 0.5}\n"
    )
    Session.objects.update(access_level="workspace")
    session.refresh_from_db()
    ready = prepare(session, home=home)

    limits = ready.limits
    assert limits.max_model_calls == 7
    assert (limits.shell_timeout_sec, limits.shell_output_bytes) == (11, 20_000)
    assert (limits.tool_result_chars, limits.tool_result_ui_chars) == (3_000, 4_000)
    assert ready.context == ContextRules(
        max_tokens=9_000, compress_at=0.5, keep_messages=3, summarize_timeout_sec=40
    )
    assert ready.web == WebRules(max_bytes=50_000, allow_private=("*.lab.internal",))
    assert (ready.tools, ready.team, ready.access) == (("shell_exec",), ("helper",), "workspace")
    assert ready.view.mount_of(tmp_path / "allowed" / "x") is not None
    assert ready.view.mount_of(tmp_path / "other") is None


@pytest.mark.parametrize(
    ("root", "child", "shell", "writes"),
    [
        ("full", "full", "host", True),
        ("workspace", "full", "sandbox", True),
        ("readonly", "full", "sandbox", False),
        ("full", "readonly", "sandbox", False),
        ("full", "a level of no version", "sandbox", False),
    ],
)
def test_a_turn_has_the_lowest_level_of_its_line(
    session: Session, agent: Path, home: HaloHome, root: str, child: str, shell: str, writes: bool
) -> None:
    Session.objects.update(access_level=root)
    below = Session.objects.create(
        id=f"{session.pk}>child",
        workspace=session.workspace,
        parent=session,
        agent_id="helper",
        agent_name="Helper",
        access_level=child,
        created_at=session.created_at,
        last_activity_at=session.created_at,
    )
    view = prepare(below, home=home).view
    assert view.shell == shell
    assert view.may_write(session.workspace.paths.root / "file.txt") is writes


def test_a_working_directory_that_is_gone_is_named(session: Session, agent: Path, home: HaloHome) -> None:
    session.working_dir = "src"
    with pytest.raises(CannotStart, match=r"src is no folder in the workspace"):
        prepare(session, home=home)
    folder = session.workspace.paths.root / "src"
    folder.mkdir()
    assert prepare(session, home=home).view.folder == folder
    folder.rmdir()
    folder.symlink_to("/")
    with pytest.raises(CannotStart, match="leads out of"):
        prepare(session, home=home)
