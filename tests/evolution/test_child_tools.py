"""Tools that need more than an evaluation has: it shows them, and a call is told so."""

from __future__ import annotations

import io
from pathlib import Path
from typing import get_args

import pytest

from agents.turn import AccessLevel, Limits, Turn, TurnOutcome, View
from core.paths import HaloHome
from core.settings_file import Settings
from evolution import child
from evolution.environment import Keys
from evolution.phases.context import ChildSpec
from evolution.wire import Answer
from sessions_app.logs import read_session

SCRIPT = """
- calls: [{tool: start_session, arguments: {agent: helper, message: do it}}]
- text: Then I do it myself.
"""


def spec_of(root: Path, *, access: AccessLevel = "workspace", limits: Limits | None = None) -> ChildSpec:
    return ChildSpec(
        agent_id="helper",
        surface=root / ".halo",
        global_folder=root / "global",
        workspace=root,
        brief="",
        view=View(root=root, mounts=()),
        access=access,
        tools=None,
        model=None,
        session_folder=root / "session",
        log=root / "log",
        limits=limits or Limits(),
        model_like="helper",
    )


def run_child(spec: ChildSpec, monkeypatch: pytest.MonkeyPatch) -> Answer:
    monkeypatch.setattr("sys.stdin", io.StringIO("go"))
    return child.run(spec, keys=Keys(Settings.load(HaloHome(spec.workspace / "home"), None), {}))


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
    spec = spec_of(tmp_path, access=access)
    answer = run_child(spec, monkeypatch)

    assert (answer.exit_code, answer.text) == (child.COMPLETED, "Then I do it myself.")
    ui, _ = read_session(spec.session_folder, "session")
    (call,) = [block for row in ui.rows for block in row.get("blocks", ()) if block["type"] == "tool_call"]
    assert call["result"] == {
        "text": "start_session is not available in an evaluation. Answer without it.",
        "is_error": True,
    }


def test_its_turn_is_bounded_like_one_of_a_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the limits it was handed, and by its own agent's context, so that it compacts when a session would."""
    agent = tmp_path / ".halo" / "agents" / "helper"
    agent.mkdir(parents=True)
    (agent / "agent.yaml").write_text("name: Helper\ncontext: {maxTokens: 5000, compressAt: 0.5}\n")
    turns: list[Turn] = []

    async def taken(turn: Turn, **_: object) -> TurnOutcome:
        turns.append(turn)
        return TurnOutcome("completed", "Done.")

    monkeypatch.setattr(child, "run_turn", taken)
    answer = run_child(spec_of(tmp_path, limits=Limits(sandbox_processes=77)), monkeypatch)

    assert answer.text == "Done."
    [turn] = turns
    assert turn.limits.sandbox_processes == 77
    assert (turn.context.max_tokens, turn.context.compress_at, turn.context.keep_messages) == (5000, 0.5, 5)
