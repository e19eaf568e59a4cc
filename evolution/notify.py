"""One line in the conversation that a change came from, once it has landed through its own gates."""

from __future__ import annotations

import logging
from datetime import datetime

from django.db import transaction

from evolution.artifacts.patch import read_observation
from evolution.manifest import Manifest
from evolution.models import EvolutionApply, EvolutionRun
from sessions_app import queue
from sessions_app.create import announce
from sessions_app.errors import SessionRefused
from sessions_app.models import QueuedMessage, Session

logger = logging.getLogger(__name__)

NAMED_FILES = 3
OBSERVATION_CHARS = 200


def notify(*, apply: EvolutionApply, manifest: Manifest, now: datetime) -> None:
    """Queue the notice of an auto apply, once; call it in the transaction that ends the apply.

    It starts no turn. A session that is gone or archived gets none, and is not asked again.
    """
    if not apply.is_auto:
        return
    with transaction.atomic():
        unsent = EvolutionApply.objects.filter(pk=apply.pk, notified_at=None)
        if not unsent.update(notified_at=now):
            return
        for run in apply.source_runs.select_related("workspace").order_by("pk"):
            session = Session.objects.filter(pk=run.source_session_id).first()
            if session is not None:
                _queue(session, apply, text=_text(apply, run, manifest), now=now)


def _queue(session: Session, apply: EvolutionApply, *, text: str, now: datetime) -> None:
    try:
        queue.accept(
            session=session,
            text=text,
            sender=QueuedMessage.Sender.SYSTEM,
            client_id=str(apply),
            starts_turn=False,
            now=now,
        )
    except SessionRefused as refused:
        logger.info("%s is not told of %s: %s", session.pk, apply, refused)
        return
    announce(session, change="message_queued", now=now)


def _text(apply: EvolutionApply, run: EvolutionRun, manifest: Manifest) -> str:
    score = "" if run.score_avg is None else f" (score {run.score_avg:.0f})"
    text = f"{apply} landed by its own gates{score}: {_files(manifest)}. A person can roll it back."
    observation = _observation(run)
    return f"{text} Larger observation: “{observation}”" if observation else text


def _files(manifest: Manifest) -> str:
    """Without the copies that only complete a new folder."""
    rels = [file.rel for file in manifest.files if not file.unchanged]
    if len(rels) <= NAMED_FILES:
        return ", ".join(rels)
    return f"{', '.join(rels[:NAMED_FILES])} and {len(rels) - NAMED_FILES} more"


def _observation(run: EvolutionRun) -> str:
    """Its start, on one line: the run page has all of it."""
    try:
        text = read_observation(run.workspace.paths.evolution.run_attempt(run.pk, run.attempts))
    except OSError:
        return ""
    flat = " ".join(text.split())
    return flat if len(flat) <= OBSERVATION_CHARS else f"{flat[:OBSERVATION_CHARS]}…"
