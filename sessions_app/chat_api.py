"""REST: what a person does in a conversation: start one, send a message, stop, interrupt, delete an exchange.

On the router of ``sessions_app.api``: one path belongs to one router.
"""

from __future__ import annotations

from typing import Annotated, Any

from django.http import HttpRequest
from ninja import Query, Schema, Status
from pydantic import ConfigDict, Field

from core import clock
from core.db.callers import Caller
from core.db.rest.auth import caller_of, guard
from core.db.rest.errors import ApiError, responses
from core.paths import halo_home
from sessions_app.api import SessionOut, described, found_session, router
from sessions_app.delete_exchange import delete_exchange
from sessions_app.end_turn import end_turn
from sessions_app.errors import SessionRefused
from sessions_app.images import MAX_IMAGES, checked_images
from sessions_app.models import Session
from sessions_app.send_message import USE_FULL_ACCESS, missing_to_send, send_message
from sessions_app.start_chat import ChatRequest, chat_session
from workspaces.models import Workspace

__all__ = ["router"]

MAX_NUMBER = 2**63 - 1
MAX_TEXT = 1_000_000
CHAT = guard("chat", "workspaces.chat")
CHAT_ALSO_AT_FULL = guard("chat", "workspaces.chat", at_full=USE_FULL_ACCESS)


class Body(Schema):
    """A misspelled field is an error, not something left out in silence."""

    model_config = ConfigDict(extra="forbid")


class StartIn(Body):
    """``agent`` empty: the usable one with the highest priority. ``access`` null: the highest you may use."""

    workspace: Annotated[int, Field(ge=1, le=MAX_NUMBER)]
    agent: Annotated[str, Field(max_length=64)] = ""
    access: Session.AccessLevel | None = None
    workingDir: Annotated[str, Field(max_length=1024)] = "."


class ImageIn(Body):
    """``data`` in base64."""

    mediaType: Annotated[str, Field(max_length=64)]
    data: str


class MessageIn(Body):
    """``clientId``: yours, new for each message. The same one again is acknowledged and stored once."""

    clientId: Annotated[str, Field(min_length=1, max_length=128)]
    text: Annotated[str, Field(max_length=MAX_TEXT)] = ""
    images: Annotated[list[ImageIn], Field(max_length=MAX_IMAGES)] = []


class AnswerOut(Schema):
    """Of a command, which is run at once and stored nowhere; ``session`` when another one follows."""

    ok: bool
    text: str
    session: str | None


class SentOut(Schema):
    """``stamp``: of the stored message (docs/sessions.md)."""

    stamp: str | None
    answer: AnswerOut | None


class DeletedOut(Schema):
    """``text``: for a person; it says when a summary may still hold the content."""

    stamp: str
    text: str


class EndedOut(Schema):
    session: str


@router.post(
    "/sessions",
    response=responses(ok=SessionOut, status=201),
    summary="Start a root session",
    **CHAT,
)
def start_session(request: HttpRequest, body: StartIn) -> Any:
    caller = caller_of(request)
    level = _level(caller.person, body.access)
    workspace = Workspace.objects.filter(pk=body.workspace).first()
    if workspace is None:
        raise SessionRefused("There is no such workspace; GET /api/workspaces lists them.", "not_found")
    wanted = ChatRequest(
        workspace=workspace,
        agent_id=body.agent,
        new=True,
        access=level,
        working_dir=body.workingDir,
        user=caller.user,
    )
    session, _ = chat_session(wanted, home=halo_home(), now=clock.now())
    return Status(201, described(session))


@router.post(
    "/sessions/{session_id}/messages",
    response=responses(ok=SentOut, status=202),
    summary="Send a message; 202 means stored. A command (/evo, /stop, ...) is run at once",
    **CHAT_ALSO_AT_FULL,
)
def send(request: HttpRequest, session_id: str, body: MessageIn) -> Any:
    session = found_session(session_id)
    caller = caller_of(request).person
    missing = missing_to_send(session, caller)
    if missing:
        raise _lacks(missing, "send to a session of full access")
    sent = send_message(
        session=session,
        text=body.text,
        images=checked_images((image.mediaType, image.data) for image in body.images),
        client_id=body.clientId,
        caller=caller,
        now=clock.now(),
    )
    answer = sent.answer
    shown = answer and {"ok": answer.ok, "text": answer.text, "session": answer.session_id or None}
    return Status(202, {"stamp": sent.stamp or None, "answer": shown})


@router.post(
    "/sessions/{session_id}/stop",
    response=responses(ok=EndedOut, status=202),
    summary="End the turn that runs and those below; what waits is folded into the history, unanswered",
    **CHAT,
)
def stop(request: HttpRequest, session_id: str) -> Any:
    session = found_session(session_id)
    end_turn(session, "stop", user=caller_of(request).user, now=clock.now())
    return Status(202, {"session": session.pk})


@router.post(
    "/sessions/{session_id}/interrupt",
    response=responses(ok=EndedOut, status=202),
    summary="Abort the turn that runs; what waits is worked next",
    **CHAT,
)
def interrupt(request: HttpRequest, session_id: str) -> Any:
    session = found_session(session_id)
    end_turn(session, "interrupt", user=caller_of(request).user, now=clock.now())
    return Status(202, {"session": session.pk})


@router.delete(
    "/sessions/{session_id}/exchanges/{stamp}",
    response=responses(ok=DeletedOut),
    summary="Delete one message with its answers: greyed in what is shown, gone from what the model reads",
    **CHAT,
)
def delete_one_exchange(
    request: HttpRequest,
    session_id: str,
    stamp: str,
    archives: Annotated[int | None, Query(ge=0, le=MAX_NUMBER)] = None,
) -> Any:
    session = found_session(session_id)
    deleted = delete_exchange(
        session=session, stamp=stamp, archives=archives, user=caller_of(request).user, now=clock.now()
    )
    return {"stamp": stamp, "text": deleted.text}


def _level(caller: Caller, wanted: Session.AccessLevel | None) -> str:
    """What was asked for, else the highest the caller may use."""
    may_use_full = caller.may(USE_FULL_ACCESS)
    level = wanted or (Session.AccessLevel.FULL if may_use_full else Session.AccessLevel.WORKSPACE)
    if level == Session.AccessLevel.FULL and not may_use_full:
        raise _lacks(USE_FULL_ACCESS, "start a session of full access")
    return level


def _lacks(permission: str, what: str) -> ApiError:
    return ApiError(
        403,
        "forbidden",
        f"To {what}, the permission {permission} is needed, which an administrator can give (and a token needs "
        "its scope).",
        permission=permission,
    )
