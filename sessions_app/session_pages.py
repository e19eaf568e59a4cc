"""What a person decides on a session's own page: its name, opening it for authoring, ending that, archiving it."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from typing import Any, cast

from django.contrib import messages
from django.contrib.admin.utils import quote
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse

from core import clock
from core.db.admin import since
from core.texts import moment_words
from sessions_app import authoring
from sessions_app.archive_session import archive_session, what_ends
from sessions_app.errors import NotInServer, SessionRefused
from sessions_app.models import Session
from sessions_app.rename_session import rename_session
from sessions_app.send_message import CHAT
from sessions_app.worker import worker

_STATUS = {"forbidden": 403}
_MAX_DIGITS = 18


def decisions(session: Session, user: User, *, now: datetime) -> dict[str, Any]:
    """For the session's page: what this person may decide here, and why not where it can't be."""
    may_author = user.has_perm(authoring.AUTHOR) and session.is_root
    is_open = authoring.is_open(session, now=now)
    return {
        "open_until": session.authoring_until if is_open else None,
        "may_author": may_author,
        "why_not_authoring": authoring.why_not(session, now=now) if may_author and not is_open else "",
        "may_archive": user.has_perm(CHAT) and session.archived_at is None,
        "may_rename": user.has_perm(CHAT),
    }


def decide_authoring(request: HttpRequest, session: Session) -> HttpResponse:
    if request.method != "POST":
        return HttpResponseNotAllowed(["POST"])
    user, now, action = cast(User, request.user), clock.now(), request.POST.get("action", "")
    if action not in ("open", "close"):
        raise Http404("There is no such decision.")
    if not user.has_perm(authoring.AUTHOR):
        raise PermissionDenied
    who: dict[str, Any] = {"user": user, "may": user.has_perm, "now": now}
    try:
        if action == "open":
            until = authoring.open_authoring(session, **who)
            messages.success(request, f"Open for authoring until {moment_words(until)}.")
        elif authoring.close_authoring(session, **who):
            messages.success(request, "Closed for authoring.")
        else:
            messages.info(request, "It was not open for authoring any more.")
    except SessionRefused as refused:
        messages.error(request, f"Not opened: {refused}")
    return HttpResponseRedirect(_address(session))


def rename(request: HttpRequest, session: Session) -> HttpResponse:
    if request.method != "POST":
        return HttpResponseNotAllowed(["POST"])
    user = cast(User, request.user)
    if not user.has_perm(CHAT):
        raise PermissionDenied
    try:
        rename_session(session, title=request.POST.get("title", ""), user=user, now=clock.now())
        messages.success(request, "Renamed.")
    except SessionRefused as refused:
        messages.error(request, f"Not renamed: {refused}")
    return HttpResponseRedirect(_address(session))


def archive_page(request: HttpRequest, session: Session, context: dict[str, Any]) -> HttpResponse:
    """What goes is listed first; the answer says what it was about."""
    user = cast(User, request.user)
    if not user.has_perm(CHAT):
        raise PermissionDenied
    if request.method != "POST":
        return _archive_form(request, session, context)
    seen = _number(request, "sessions"), _number(request, "newest")
    try:
        count, to_wake = archive_session(session.pk, user=user, seen=seen, now=clock.now())
    except SessionRefused as refused:
        return _archive_form(request, session, context, refused=refused)
    with suppress(NotInServer):  # the rows say it: whoever works the session, or waits for it, finds it there
        worker().abort(session.pk)
        for name in to_wake:
            worker().wake(name)
    messages.success(
        request,
        f"Archived {count} session{'' if count == 1 else 's'}." if count else "It had been archived before.",
    )
    return HttpResponseRedirect(_address(session))


def _archive_form(
    request: HttpRequest, session: Session, context: dict[str, Any], *, refused: SessionRefused | None = None
) -> HttpResponse:
    given = {
        **context,
        **since(request),
        "title": "Archive a session",
        "original": session,
        "here": "Archive",
        "session": session,
        "ends": what_ends(session.pk),
        "refused": refused,
    }
    status = _STATUS.get(refused.code, 409) if refused else 200
    return render(request, "sessions/archive.html", given, status=status)


def _number(request: HttpRequest, name: str) -> int:
    text = request.POST.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS else 0


def _address(session: Session) -> str:
    return reverse("admin:sessions_app_session_change", args=[quote(session.pk)])
