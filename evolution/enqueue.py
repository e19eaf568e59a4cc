"""Asking for a run: freeze the conversation and the prompt surface, then insert the row.

Files first, row last: a crash leaves at most a folder without a row, never a row without its files. The model
library is not imported on this way; a person waits for the answer.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from django.contrib.auth.models import AnonymousUser
from django.db import IntegrityError, transaction

from core import clock
from core.db.models import record_event
from core.db.text import storable
from core.ids import new_row_id
from core.paths import UnsafePathError, halo_home
from evolution.artifacts.frozen import EvoContext, Listing, Meta, PromptFile, write_frozen
from evolution.conversation import has_user_message
from evolution.errors import Refused
from evolution.hints import hint_values
from evolution.models import EvolutionRun
from evolution.permissions import USE_FULL_ACCESS
from evolution.states import RunStatus
from evolution.ticker import request_tick
from evolution.transitions import RUN_EVENT
from evolution.words import check_length
from sessions_app.freeze import frozen_history
from sessions_app.models import Session
from workspaces.compose import Composed, SurfaceError, compose
from workspaces.overrides import Surface
from workspaces.publish_lock import LockHeld, MarkerUnreadable, locked_surface_files, shared

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser

    from agents.events import Message

INSERT_TRIES = 3
WEBHOOK = "webhook"
"""``source_access`` of a session that holds data from outside, whatever its level."""


@dataclass(frozen=True, slots=True)
class EnqueueOutcome:
    """``created`` False: the same session with the same hint waits already, as ``run_id``."""

    run_id: str
    created: bool


def enqueue(
    *, session: Session, hint: str, requested_by: AbstractBaseUser | None, trigger: str, now: datetime
) -> EnqueueOutcome:
    """Queue a run on ``session`` as it stands at its last save point.

    ``requested_by`` None: the person at this machine's terminal, or a trigger. Raises Refused (``no_root``,
    ``permission``, ``hint_too_long``, ``workspace_missing``, ``no_user_message``, ``agent_unusable``,
    ``lock_held``, ``not_frozen``); then nothing was queued and nothing is left behind.
    """
    hint = storable(hint.strip())
    _check(session, hint, requested_by)
    if waiting := _waiting(session, hint):
        return EnqueueOutcome(waiting, created=False)
    messages = _messages(session)
    context = _context(session)
    meta = _meta(session, hint, trigger, now)
    folder = session.workspace.paths.evolution.run(meta.run_id)
    _freeze(folder, messages, context, meta)
    try:
        waiting = _insert_unless_waiting(meta, session, requested_by, now)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    if waiting:
        shutil.rmtree(folder)
        return EnqueueOutcome(waiting, created=False)
    return EnqueueOutcome(meta.run_id, created=True)


def _insert_unless_waiting(
    meta: Meta, session: Session, requested_by: AbstractBaseUser | None, now: datetime
) -> str | None:
    """None once the row is in; else the id of the same request, which another process queued meanwhile.

    That one may have been claimed before we look: then nothing waits any more and ours is inserted after all.
    """
    for _ in range(INSERT_TRIES - 1):
        try:
            _insert(meta, session, requested_by, now)
            return None
        except IntegrityError:
            if waiting := _waiting(session, meta.hint):
                return waiting
    _insert(meta, session, requested_by, now)
    return None


def _check(session: Session, hint: str, requested_by: AbstractBaseUser | AnonymousUser | None) -> None:
    if not session.is_root:
        raise Refused("no_root", "Only a root session can be learned from; this one was started by another.")
    if requested_by is not None and not requested_by.has_perm(USE_FULL_ACCESS):  # type: ignore[union-attr]
        raise Refused("permission", "Asking for a prompt change needs the permission to use full access.")
    check_length(hint, "hint")
    if not session.workspace.paths.halo.is_dir():
        raise Refused(
            "workspace_missing",
            f"{session.workspace.path} has no .halo folder now. Bring it back, or tell Halo where it went "
            "with `halo workspace move`.",
        )


def _waiting(session: Session, hint: str) -> str | None:
    rows = EvolutionRun.objects.filter(source_session_id=session.pk, user_hint=hint, status=RunStatus.PENDING)
    return rows.values_list("pk", flat=True).first()


def _messages(session: Session) -> list[Message]:
    try:
        messages = frozen_history(session)
    except OSError as error:
        raise Refused("not_frozen", f"The session's log can't be read: {error}.") from error
    if not has_user_message(messages):
        raise Refused("no_user_message", "There is nothing to learn from yet: nobody has written a message.")
    return messages


def _context(session: Session) -> EvoContext:
    """The surface of this moment, read while no publisher is at work."""
    workspace = session.workspace
    try:
        with shared(workspace.paths.evolution):
            surface = Surface(locked_surface_files(workspace.paths.halo), halo_home().global_folder)
            composed = compose(
                surface,
                session.agent_id,
                workspace_root=Path(workspace.path),
                working_dir=session.working_dir,
            )
    except (SurfaceError, UnsafePathError) as error:
        raise Refused("agent_unusable", str(error)) from error
    except (LockHeld, MarkerUnreadable) as error:
        raise Refused("lock_held", str(error)) from error
    except OSError as error:
        raise Refused(
            "not_frozen", f"The prompt files can't be read: {error}. Nothing was queued."
        ) from error
    return _frozen(composed)


def _frozen(composed: Composed) -> EvoContext:
    return EvoContext(
        agent_id=composed.agent.id,
        agent_name=composed.agent.name,
        system_prompt=composed.system_prompt,
        files=tuple(PromptFile(file.rel, file.scope, file.content) for file in composed.files),
        agents=tuple(
            Listing(agent.id, agent.scope, agent.description)
            for agent in composed.agents
            if not agent.internal
        ),
        skills=tuple(Listing(skill.id, skill.scope, skill.description) for skill in composed.skills),
    )


def _source_access(session: Session) -> str:
    """As the row says at this moment: another process may have lowered the level or handed in a payload."""
    level, outside = (
        Session.objects.filter(pk=session.pk).values_list("access_level", "outside_data_at").get()
    )
    return level if outside is None else WEBHOOK


def _meta(session: Session, hint: str, trigger: str, now: datetime) -> Meta:
    return Meta(
        run_id=new_row_id(),
        trigger=trigger,
        session_id=session.pk,
        agent_id=session.agent_id,
        hint=hint,
        workspace=session.workspace.path,
        working_dir=session.working_dir,
        source_access=_source_access(session),
        created_at=clock.stamp(now),
    )


def _freeze(folder: Path, messages: list[Message], context: EvoContext, meta: Meta) -> None:
    try:
        write_frozen(folder, messages=messages, context=context, meta=meta)
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise Refused(
            "not_frozen", f"The conversation can't be frozen: {error}. Nothing was queued."
        ) from error


def _insert(
    meta: Meta,
    session: Session,
    requested_by: AbstractBaseUser | None,
    now: datetime,
) -> None:
    with transaction.atomic():
        EvolutionRun.objects.create(
            id=meta.run_id,
            workspace_id=session.workspace_id,
            source_session_id=session.pk,
            agent_id=session.agent_id,
            trigger_kind=meta.trigger,
            requested_by_id=requested_by.pk if requested_by is not None else None,
            **hint_values(meta.hint),
            source_access=meta.source_access,
            created_at=now,
        )
        record_event(
            kind=RUN_EVENT,
            object_id=meta.run_id,
            workspace_id=session.workspace_id,
            payload={"from": "", "to": RunStatus.PENDING, "attempt": 0},
            now=now,
        )
        request_tick()
