"""What a session may do with the sessions it started: the verbs behind ``session_tools``.

An id outside the caller's own tree (what it started, and what those started) is answered like one that
doesn't exist. Every function is whole and synchronous, and returns what the engine has to do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction

from core.db.text import storable
from core.paths import HaloHome
from core.settings_file import Settings
from sessions_app import queue, trees
from sessions_app.agent_choice import choose_agent
from sessions_app.create import announce, checked_working_dir
from sessions_app.errors import SessionRefused
from sessions_app.levels import effective_level
from sessions_app.models import QueuedMessage, Session
from sessions_app.outside_data import carry, title_for
from sessions_app.tree_view import state_of

LISTED = 100
CONTINUE = (
    "Go on with your task from where it was cut off. Your history is intact up to the last finished tool call; a "
    "call that was in flight may or may not have had its effect: check before you repeat it. Do not start over."
)


@dataclass(frozen=True, slots=True)
class Listed:
    session: Session
    state: str
    title: str


def start(
    *,
    caller_id: str,
    agent_id: str,
    message: str,
    working_dir: str,
    team: Sequence[str],
    home: HaloHome,
    now: datetime,
) -> Session:
    """A sub-session with its first message in its queue. Raises SessionRefused, and then nothing was made."""
    caller = Session.objects.select_related("workspace").get(pk=caller_id)
    settings = Settings.load(home, caller.workspace.paths)
    if agent_id not in team:
        names = ", ".join(team) or "nobody"
        raise SessionRefused(f"You can't delegate to {agent_id[:64]!r}. Your team: {names}.", "not_in_team")
    agent = choose_agent(caller.workspace, agent_id, home=home)
    if agent.internal or agent.broken:
        raise SessionRefused(f"The agent {agent_id} can't be used.", "unusable_agent")
    identifier = trees.child_id(caller_id)
    deepest = settings.get("general.session.max_nesting_depth")
    if trees.depth_of(identifier) > deepest or len(identifier) > trees.MAX_ID_LENGTH:
        raise SessionRefused(
            f"Sub-sessions can't be nested deeper than {min(deepest, trees.depth_of(caller_id))} "
            "(setting general.session.max_nesting_depth). Do this part yourself.",
            "too_deep",
        )
    folder = checked_working_dir(caller.workspace.paths.root, working_dir or caller.working_dir)
    with transaction.atomic():
        # Read under the lock: a stop or an archive that came first counts.
        caller = Session.objects.select_for_update(of=("self",)).select_related("workspace").get(pk=caller_id)
        if caller.archived_at is not None or caller.stopped_at is not None:
            raise SessionRefused("This session was stopped; it starts nothing any more.", "stopped")
        session = Session.objects.create(
            id=identifier,
            workspace=caller.workspace,
            parent=caller,
            agent_id=agent.id,
            agent_name=storable(agent.name),
            working_dir=folder,
            access_level=effective_level(caller),
            kind=caller.kind,
            outside_data_at=caller.outside_data_at,
            created_at=now,
            last_activity_at=now,
        )
        announce(session, change="created", now=now)
        send(caller_id=caller_id, session=session, message=message, home=home, now=now)
    return session


def send(*, caller_id: str, session: Session, message: str, home: HaloHome, now: datetime) -> None:
    """Queue the caller's message. Raises SessionRefused (archived, empty), QueueFull."""
    settings = Settings.load(home, session.workspace.paths)
    queue.accept(
        session=session,
        text=message,
        sender=QueuedMessage.Sender.AGENT,
        source_session=caller_id,
        max_waiting=settings.get("general.session.max_queue_size"),
        now=now,
    )


def query(*, caller_id: str, session_id: str, message: str, home: HaloHome, now: datetime) -> Session:
    session = find(caller_id=caller_id, session_id=session_id)
    send(caller_id=caller_id, session=session, message=message, home=home, now=now)
    return session


def go_on(*, caller_id: str, session_id: str, note: str, home: HaloHome, now: datetime) -> Session:
    """Refuses a session that is at work: it goes on anyway."""
    session = find(caller_id=caller_id, session_id=session_id)
    if state_of(session) == "running":
        raise SessionRefused(
            f"{session.pk} is at work and goes on by itself; its report comes as a message.", "running"
        )
    message = f"{CONTINUE}\n\n{note}" if note.strip() else CONTINUE
    send(caller_id=caller_id, session=session, message=message, home=home, now=now)
    return session


def find(*, caller_id: str, session_id: str) -> Session:
    """A session below the caller. Raises SessionRefused ``not_found`` for every other id, the caller's too."""
    row = None
    if trees.is_below(session_id, caller_id) and "\0" not in session_id:
        row = Session.objects.select_related("workspace").filter(pk=session_id).first()
    if row is None:
        raise SessionRefused(
            f"There is no sub-session {session_id[:300]!r}; session_list shows yours.", "not_found"
        )
    return row


def listing(*, caller_id: str) -> tuple[list[Listed], int]:
    """The newest sub-sessions, parents ahead of their children, and how many there are in all."""
    rows = Session.objects.filter(trees.below(caller_id))
    newest = sorted(
        rows.order_by("-created_at", "-pk")[:LISTED], key=lambda row: row.pk.split(trees.SEPARATOR)
    )
    caller = Session.objects.get(pk=caller_id)
    return [Listed(row, state_of(row), title_for(row, reader=caller)) for row in newest], rows.count()


def output_of(*, caller_id: str, session_id: str, now: datetime) -> tuple[Session, str]:
    """The session with its last final text; the caller has then seen whatever the session had seen."""
    session = find(caller_id=caller_id, session_id=session_id)
    carry(source_id=session.pk, target_id=caller_id, now=now)
    return session, session.output
