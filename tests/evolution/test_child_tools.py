"""Tools that need more than an evaluation has: it shows them, and a call is told so."""

from __future__ import annotations

import io
from pathlib import Path
from typing import get_args

import pytest

from agents.turn import AccessLevel, View
from core.paths import HaloHome
from core.settings_file import Settings
from evolution import child
from evolution.environment import Keys
from evolution.phases.context import ChildSpec
from sessions_app.logs import read_session

SCRIPT = """
- calls: [{tool: start_session, arguments: {agent: helper, message: do it}}]
- text: Then I do it myself.
"""


@pytest.mark.parametrize("access", get_args(AccessLevel))
def test_a_sub_session_is_not_started_in_an_evaluation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, access: AccessLevel
) -> None:
    (tmp_path / "script").write_text(SCRIPT)
    agent = tmp_path / ".halo" / "agents" / "helper"
    agent.mkdir(parents=True)
    (agent / "agent.yaml").write_text(
        f"name: Helper\ntools: [start_session]\nteam: [helper]\n"
        f"model: {{provider: offline, id: 'script:{tmp_path / 'script'}'}}\n"
    )
    spec = ChildSpec(
        agent_id="helper",
        surface=tmp_path / ".halo",
        global_folder=tmp_path / "global",
        workspace=tmp_path,
        brief="",
        view=View(root=tmp_path, mounts=()),
        access=access,
        tools=None,
        model=None,
        session_folder=tmp_path / "session",
        log=tmp_path / "log",
        model_like="helper",
    )
    monkeypatch.setattr("sys.stdin", io.StringIO("go"))
    answer = child.run(spec, keys=Keys(Settings.load(HaloHome(tmp_path / "home"), None), {}))

    assert (answer.exit_code, answer.text) == (child.COMPLETED, "Then I do it myself.")
    ui, _ = read_session(spec.session_folder, "session")
    (call,) = [block for row in ui.rows for block in row.get("blocks", ()) if block["type"] == "tool_call"]
    assert call["result"] == {
        "text": "start_session is not available in an evaluation. Answer without it.",
        "is_error": True,
    }
