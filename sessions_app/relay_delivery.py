"""Bringing a relayed session's outcome back: one message in the queue of the session that had asked."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sessions_app import reply_to
from sessions_app.models import Session
from sessions_app.reply_to import Report

KIND = "relay"

logger = logging.getLogger(__name__)


class Delivery:
    """Brings a relayed session's outcome to the session that had asked (``reply_to.Deliverer``)."""

    interims = True

    def deliver(self, owed: Mapping[str, Any], report: Report, *, now: datetime) -> Sequence[str]:
        from sessions_app import reports  # every process registers this, few deliver anything

        caller_id = str(owed.get("session", ""))
        to_wake = reports.post(caller_id, _text(report), source_id=report.session.pk, now=now)
        if not Session.objects.filter(pk=caller_id, archived_at=None).exists():
            logger.warning(
                "Session %s can't be told what came of %s: it is archived or gone.",
                caller_id,
                report.session.pk,
            )
        return to_wake


def register() -> None:
    reply_to.register(KIND, Delivery())


def _text(report: Report) -> str:
    from sessions_app import reports

    row = report.session
    head = f"Relay report of session {row.pk} in workspace {row.workspace.path}, status {report.status}"
    if report.status == "superseded":
        return f"{head}: somebody else asked it for something, so its outcome goes there and not to you."
    return reports.body(head, report, whole=f'relay_read(session_id="{row.pk}", offset={report.max_chars})')
