"""Trees for tests: sub-sessions by their rows, turns without a model."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from django.db import transaction

from agents.turn import TurnOutcome
from core import clock
from core.paths import HaloHome
from sessions_app import queue, sub_sessions
from sessions_app.models import QueuedMessage, Session
from sessions_app.settlement import settle_turn

MAX_CHARS = 40
NO_HOME = HaloHome(Path("/nonexistent/halo-home"))


def write_agent(folder: Path, *, team: Sequence[str] = (), tools: Sequence[str] = (), **more: str) -> None:
    """``folder`` is ``.halo/agents/<id>``."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [f"name: {folder.name.title()}", f"team: [{', '.join(team)}]", f"tools: [{', '.join(tools)}]"]
    lines += [f"{name}: {value}" for name, value in more.items()]
    (folder / "agent.yaml").write_text("\n".join(lines) + "\n")
    (folder / "AGENT.md").write_text(f"You are {folder.name}.\n")


def start(caller: Session, message: str = "do it", agent: str = "helper") -> Session:
    return sub_sessions.start(
        caller_id=caller.pk,
        agent_id=agent,
        message=message,
        working_dir="",
        team=[agent],
        home=NO_HOME,
        now=clock.now(),
    )


def end_turn(
    session: Session,
    text: str = "done",
    *,
    status: str = "completed",
    error: str = "",
    arrived: Sequence[str] = (),
    now: datetime | None = None,
) -> Sequence[str]:
    """Work off what waits as the engine does; ``arrived`` comes in during the turn. Returns whom to wake."""
    now = now or clock.now()
    taken = [row.pk for row in queue.waiting(session.pk)]
    for message in arrived:
        queue.accept(session=session, text=message, now=now)
    outcome = TurnOutcome(status, text, error)  # type: ignore[arg-type]
    with transaction.atomic():
        queue.mark_worked(taken, now=now)
        return settle_turn(session.pk, outcome, max_chars=MAX_CHARS, now=now)


def told(session: Session, source: Session | None = None) -> list[str]:
    """What stands in its queue from other sessions, worked off or not, in order."""
    rows = QueuedMessage.objects.filter(session=session).exclude(source_session="").order_by("pk")
    return [row.text for row in rows if source is None or row.source_session == source.pk]
