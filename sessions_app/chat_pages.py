"""The chat page and the form for a new session. Both work without a script; ``chat.js`` makes the page live."""

from __future__ import annotations

import secrets
from typing import Any

from django.contrib import messages
from django.contrib.admin.utils import quote
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils.crypto import salted_hmac

from core import clock
from core.db.admin import since
from core.db.callers import Caller
from core.ids import session_segment_of
from core.paths import halo_home
from sessions_app import commands, queue
from sessions_app.agents_to_choose import agents_to_choose
from sessions_app.at_work import is_working
from sessions_app.delete_exchange import delete_exchange
from sessions_app.end_turn import end_turn
from sessions_app.errors import SessionError, SessionRefused
from sessions_app.images import MAX_IMAGES, kept_image
from sessions_app.models import Session
from sessions_app.named_pages import linked, pages_named
from sessions_app.send_message import (
    CHAT,
    USE_FULL_ACCESS,
    Sent,
    check_may_send,
    missing_to_send,
    send_message,
)
from sessions_app.start_chat import ChatRequest, chat_session
from sessions_app.transcript_window import window
from workspaces.models import Workspace

_STATUS = {"forbidden": 403, "not_found": 404}


def chat_page(request: HttpRequest, session: Session, context: dict[str, Any]) -> HttpResponse:
    """``context``: what the admin site gives every page. Whoever gets here may look; writing is asked for again."""
    if request.method != "POST":
        return _page(request, session, context)
    caller = Caller(_user(request))
    stamp = request.POST.get("delete", "")
    if stamp and "sure" not in request.POST and caller.may(CHAT):
        return _page(request, session, context, asked_to_delete=stamp)
    try:
        return HttpResponseRedirect(_done(request, session, caller))
    except SessionError as error:
        status = _STATUS.get(error.code, 409)
        return _page(request, session, context, refused=str(error), status=status)


def _done(request: HttpRequest, session: Session, caller: Caller) -> str:
    """Do what was asked; the address that shows it. Raises SessionRefused."""
    if "delete" in request.POST:
        return _deleted(request, session)
    action = request.POST.get("action", "send")
    if action in ("stop", "interrupt"):
        if not caller.may(CHAT):
            raise SessionRefused(f"The permission {CHAT} is needed.", "forbidden")
        end_turn(session, "stop" if action == "stop" else "interrupt", user=caller.user, now=clock.now())
        return chat_address(session.pk)
    check_may_send(session, caller)
    sent = send_message(
        session=session,
        text=request.POST.get("text", ""),
        images=_posted_images(request),
        client_id=request.POST.get("client_id", "")[:128] or secrets.token_hex(16),
        caller=caller,
        now=clock.now(),
    )
    return _shown_at(request, session, sent)


def _deleted(request: HttpRequest, session: Session) -> str:
    archives = request.POST.get("archives", "")
    deleted = delete_exchange(
        session=session,
        stamp=request.POST["delete"],
        archives=int(archives) if archives.isascii() and archives.isdigit() and len(archives) < 10 else None,
        user=_user(request),
        now=clock.now(),
    )
    messages.info(request, deleted.text)
    return chat_address(session.pk)


def _posted_images(request: HttpRequest) -> list[dict[str, Any]]:
    files = [file for file in request.FILES.getlist("image") if file.size]
    if len(files) > MAX_IMAGES:
        raise SessionRefused(f"{len(files)} pictures; a message holds {MAX_IMAGES} at most.", "bad_image")
    return [kept_image(str(file.content_type), file.read()) for file in files]


def _page(
    request: HttpRequest,
    session: Session,
    context: dict[str, Any],
    *,
    refused: str = "",
    asked_to_delete: str = "",
    status: int = 200,
) -> HttpResponse:
    transcript = window(session, part=request.GET.get("part", ""), before=request.GET.get("before", ""))
    missing = missing_to_send(session, Caller(_user(request)))
    waiting = [row for row in queue.waiting(session.pk) if row.stamp not in transcript.stamps]
    return render(
        request,
        "sessions/chat.html",
        {
            **context,
            "title": session.title or "New session",
            "original": session,
            "here": "Chat",
            "session": session,
            "transcript": transcript,
            "waiting": waiting,
            "working": is_working(session),
            "missing": missing,
            "may_chat": _user(request).has_perm(CHAT),
            "client_id": secrets.token_hex(16),
            "commands": [*commands.known(), *commands.of_session(session)],
            **since(request),
            "refused": refused,
            "asked_to_delete": asked_to_delete,
            "entered": request.POST.get("text", ""),
            "chat_address": chat_address("SESSION"),
        },
        status=status,
    )


def new_session_page(request: HttpRequest, context: dict[str, Any]) -> HttpResponse:
    user = _user(request)
    if not user.has_perm(CHAT):
        raise PermissionDenied
    if request.method != "POST":
        return _form(request, context, user)
    try:
        session = _started(request, user)
    except (SessionError, OSError) as error:
        return _form(request, context, user, refused=str(error))
    return HttpResponseRedirect(_with_first_message(request, session, user))


def _with_first_message(request: HttpRequest, session: Session, user: User) -> str:
    """The address that shows what became of it. The session is there in any case."""
    text = request.POST.get("text", "")
    if not text.strip():
        return chat_address(session.pk)
    try:
        sent = send_message(
            session=session,
            text=text,
            client_id=f"first-{session.pk}",
            caller=Caller(user),
            now=clock.now(),
        )
    except SessionError as error:
        messages.error(request, str(error))
        return chat_address(session.pk)
    return _shown_at(request, session, sent)


def _shown_at(request: HttpRequest, session: Session, sent: Sent) -> str:
    """Where the message stands; a command's answer stands on the page that comes next, once."""
    if sent.answer is None:
        return f"{chat_address(session.pk)}#end"
    tell = messages.info if sent.answer.ok else messages.error
    tell(request, linked(sent.answer.text, pages_named([sent.answer.text])))
    return chat_address(sent.answer.session_id or session.pk)


def _started(request: HttpRequest, user: User) -> Session:
    number, _, agent_id = request.POST.get("agent", "").partition(":")
    is_number = number.isascii() and number.isdigit() and len(number) < 10
    workspace = Workspace.objects.filter(pk=int(number)).first() if is_number else None
    level = request.POST.get("access", "")
    if workspace is None or not agent_id:
        raise SessionRefused("Choose an agent.", "unknown_agent")
    if level not in Session.AccessLevel.values:
        raise SessionRefused("Choose an access level.", "bad_level")
    wanted = ChatRequest(
        workspace=workspace,
        agent_id=agent_id,
        new=True,
        new_id=_id_of_this_sending(request, user),
        access=level,
        working_dir=request.POST.get("working_dir", "").strip(),
        user=user,
    )
    session, _ = chat_session(wanted, home=halo_home(), now=clock.now())
    return session


def _id_of_this_sending(request: HttpRequest, user: User) -> str:
    """One form sent twice (two clicks, a page loaded anew) names one session; filled in otherwise, another one."""
    names = ("client_id", "agent", "access", "working_dir", "text")
    sent = [request.POST.get(name, "") for name in names]
    if not sent[0]:
        return ""
    return session_segment_of(
        salted_hmac("sessions_app.new_session", repr([user.pk, *sent]), algorithm="sha256").digest()
    )


def _form(request: HttpRequest, context: dict[str, Any], user: User, *, refused: str = "") -> HttpResponse:
    levels = [
        (value, label)
        for value, label in Session.AccessLevel.choices
        if value != Session.AccessLevel.FULL or user.has_perm(USE_FULL_ACCESS)
    ]
    given = {
        **context,
        "title": "New session",
        "places": agents_to_choose(home=halo_home()),
        "levels": levels,
        "refused": refused,
        "entered": request.POST,
        "chosen": request.POST.get("agent", "") or request.GET.get("agent", ""),
        "level": request.POST.get("access", "") or levels[0][0],
        "client_id": secrets.token_hex(16),
    }
    return render(request, "sessions/new.html", given, status=400 if refused else 200)


def chat_address(session_id: str) -> str:
    return reverse("admin:sessions_app_session_chat", args=[quote(session_id)])


def _user(request: HttpRequest) -> User:
    assert isinstance(request.user, User)  # noqa: S101 - the admin lets in nobody else
    return request.user
