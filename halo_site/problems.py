"""What is told when a page can't be shown: what happened, why, and what to do.

A browser gets a page that stands alone, since nothing may be known yet about who asks; a program under ``/api/`` gets
the same as one of its errors (docs/rest.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.core.exceptions import (
    DisallowedHost,
    RequestDataTooBig,
    TooManyFieldsSent,
    TooManyFilesSent,
)
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.middleware import csrf
from django.template.loader import render_to_string
from django.urls import Resolver404
from django.utils.deprecation import MiddlewareMixin

from core import clock
from core.db.rest.errors import error_response
from core.texts import counted
from halo_site.api_middleware import PATH, VERSION, VERSION_HEADER

MEGABYTE = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Problem:
    """``code``: for programs. ``why`` and ``todo`` are sentences; ``todo`` may have several paragraphs."""

    status: int
    code: str
    heading: str
    why: str
    todo: tuple[str, ...]


NOT_READ = Problem(
    400,
    "bad_request",
    "This can't be read",
    "What the browser sent is damaged or incomplete. Nothing was changed.",
    ("Go back, load the page again, and send it once more.",),
)
OTHER_HOST = Problem(
    400,
    "bad_host",
    "Halo isn't served under this name",
    "The address names a host that isn't among ALLOWED_HOSTS.",
    (
        "Use the address that halo up printed. To have Halo answer to this name as well, add it to ALLOWED_HOSTS "
        "and start Halo again.",
    ),
)
NOT_ALLOWED = Problem(
    403,
    "forbidden",
    "You may not do this",
    "Your account lacks the permission for it. Nothing was changed.",
    ("An administrator can give it, for instance through the groups Reviewers and Operators.",),
)
NOTHING_HERE = Problem(
    404,
    "not_found",
    "There is nothing here",
    "The address is wrong, or what it named was deleted.",
    ("Look at the address again, or find your way from the dashboard.",),
)
ONLY_FORMS = Problem(
    405,
    "method_not_allowed",
    "There is nothing to see at this address",
    "It only takes what a form sends. Nothing was changed.",
    ("Find your way from the dashboard, and use the page's own button.",),
)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    if isinstance(exception, RequestDataTooBig | TooManyFieldsSent | TooManyFilesSent):
        return answer(request, _too_large(exception))
    return answer(request, OTHER_HOST if isinstance(exception, DisallowedHost) else NOT_READ)


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    return answer(request, _with_its_words(NOT_ALLOWED, exception))


def page_not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    known = NOTHING_HERE if isinstance(exception, Resolver404) else _with_its_words(NOTHING_HERE, exception)
    return answer(request, known)


def server_error(request: HttpRequest) -> HttpResponse:
    moment = clock.now().strftime("%Y-%m-%d %H:%M:%S UTC")
    failed = Problem(
        500,
        "internal",
        "This page failed",
        "Something went wrong in Halo itself. What you sent may have been done all the same.",
        (
            "Look whether it was done before you send it again.",
            f"If it keeps failing, show an administrator this time: {moment}. What went wrong stands in the log "
            "of the web process.",
        ),
    )
    return answer(request, failed)


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """``CSRF_FAILURE_VIEW``: the form could have been sent by another site's page."""
    heading, why, todo = (
        "This form is out of date",
        "",
        "Go back, load the page again, and send it once more.",
    )
    if reason == csrf.REASON_NO_CSRF_COOKIE:
        heading = "The browser sent no cookie"
        why = "Without it Halo can't tell that the form came from one of its own pages."
        todo = "Allow cookies for this address, load the page again, and send it once more."
    elif reason.startswith(("Origin", "Referer")):
        heading = "This form came from another address"
        why = "The page that sent it isn't served under the address it was sent to."
        todo = (
            "Open Halo under one address only. A proxy in front has to pass on Host, and where it ends TLS also "
            "X-Forwarded-Proto, with HALO_TLS=1 set for Halo."
        )
    else:
        why = "Somebody has logged in or out in this browser since the page was loaded."
    return answer(request, Problem(403, "csrf", heading, f"{why} Nothing was changed.", (todo,)))


def locked_out(request: HttpRequest, *_: Any) -> HttpResponse:
    """``AXES_LOCKOUT_CALLABLE``."""
    wait: timedelta = settings.AXES_COOLOFF_TIME
    minutes = counted(int(wait.total_seconds()) // 60, "minute")
    problem = Problem(
        429,
        "locked_out",
        "Too many wrong passwords",
        f"{settings.AXES_FAILURE_LIMIT} logins in a row failed for this name from this address, so for {minutes} "
        "no more are tried.",
        (
            "The right password works again after that. Who has forgotten it asks an administrator for a new one.",
        ),
    )
    response = answer(request, problem)
    response["Retry-After"] = str(int(wait.total_seconds()))
    return response


def answer(request: HttpRequest, problem: Problem) -> HttpResponse:
    if request.path_info.startswith(PATH):
        told = error_response(problem.status, problem.code, " ".join((problem.why, *problem.todo)))
        told[VERSION_HEADER] = VERSION
        return told
    return HttpResponse(render_to_string("halo/problem.html", {"problem": problem}), status=problem.status)


class ProblemPagesMiddleware(MiddlewareMixin):
    """A page where Django answers a browser with an empty one."""

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        if response.status_code != ONLY_FORMS.status or getattr(response, "content", b"") != b"":
            return response
        page = answer(request, ONLY_FORMS)
        page["Allow"] = response["Allow"]
        return page


def _with_its_words(problem: Problem, exception: Exception) -> Problem:
    """With what whoever raised it says of it, where that is a sentence of ours."""
    said = exception.args[0] if exception.args else ""
    if not isinstance(said, str) or not said.strip():
        return problem
    return Problem(problem.status, problem.code, problem.heading, said, problem.todo)


def _too_large(exception: Exception) -> Problem:
    limit = f"{(settings.DATA_UPLOAD_MAX_MEMORY_SIZE or 0) / MEGABYTE:g} MB of text"
    if isinstance(exception, TooManyFieldsSent):
        limit = counted(settings.DATA_UPLOAD_MAX_NUMBER_FIELDS or 0, "field")
    elif isinstance(exception, TooManyFilesSent):
        limit = counted(settings.DATA_UPLOAD_MAX_NUMBER_FILES or 0, "file")
    return Problem(
        413,
        "too_large",
        "This is too much at once",
        f"A form holds {limit} at most, and this one held more. Nothing was stored.",
        (
            "Go back; most browsers still have what you wrote. Send it in parts, or put it into a file in the "
            "workspace and have the agent read that.",
        ),
    )
