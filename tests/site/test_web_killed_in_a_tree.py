"""The web process dies by SIGKILL while a parent waits for a running child: one nudge, one report, one answer."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from agents.providers.testing import Step, text, tool_calls
from sessions_app.models import QueuedMessage, RunningSession, Session
from sessions_app.session_tools import NAMES
from tests.site.test_web_killed_working import World, nudges
from tests.site.web_world import Mind, in_rest, until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(400)]


class Parent(Mind):
    """As the root it starts a sub-session, and goes on with it when told that it was cut off."""

    def next_step(self, body: dict[str, Any]) -> Step:
        with self._lock:
            self.requests.append(body)
        messages = body["messages"]
        said = [str(message.get("content")) for message in messages if message["role"] == "user"]
        called = messages[-1]["role"] == "tool"
        if "part of it" in said[0]:
            command = f"touch {self.folder / 'marker'}; {self.command}"
            return text("Done: the part.") if called else tool_calls(("shell_exec", {"command": command}))
        if called:
            return text("I wait.")
        if "Report of" in said[-1]:
            return text("Seen.")
        cut_off = re.search(r"stopped now: (\w+>\w+)", said[-1])
        if cut_off:
            return tool_calls(("continue_task", {"session_id": cut_off[1]}))
        return tool_calls(("start_session", {"agent": "helper", "message": "do part of it"}))


def test_a_parent_that_waited_is_nudged_once_and_told_once(tmp_path: Path) -> None:
    with Parent(tmp_path, command="sleep 300") as mind:
        world = World(tmp_path, mind)
        agent = tmp_path / "ws/.halo/agents/helper/agent.yaml"
        tools = ", ".join(("shell_exec", *NAMES))
        agent.write_text(agent.read_text().replace("[shell_exec]", f"[{tools}]\nteam: [helper]"))
        session = world.session()
        with world.web() as running:
            running.say(session, "q1")
            until((tmp_path / "marker").exists)
            until(lambda: Session.objects.get(pk=session.pk).output == "I wait.")
            running.kill()
        mind.command = "true"
        for _ in range(2):  # the second start finds nothing to tell
            with world.web():
                until(lambda: in_rest(session) and Session.objects.get(pk=session.pk).output == "Seen.")

    child = Session.objects.get(parent=session)
    rows = QueuedMessage.objects.filter(session=session, sender="system")
    reports = list(rows.filter(source_session=child.pk).values_list("text", flat=True))
    assert len(reports) == 1 and "Done: the part." in reports[0]
    [nudge] = [said for said in nudges(session) if said not in reports]
    assert "You were idle" in nudge and child.pk in nudge
    assert not child.report_due and child.exchange_count == 1
    assert not RunningSession.objects.exists()
    assert not QueuedMessage.objects.filter(worked_at=None).exists()
