"""The trigger of level L1: a conversation that was compacted is examined by a run (evolution.md, "Enqueue")."""

from __future__ import annotations

import logging
from datetime import datetime

from evolution.errors import Refused
from evolution.models import EvolutionRun
from sessions_app import turn_compacted
from sessions_app.models import Session

logger = logging.getLogger(__name__)


def register() -> None:
    turn_compacted.register("evolution", ask_for_a_run)


def ask_for_a_run(session: Session, now: datetime) -> None:
    """Queue a run when the level asks for one; the snapshot is the history as it stands now.

    A turn that owes its outcome to cron teaches nothing: nobody was there, and its text is a stored one.
    """
    # Only wanted when something was compacted.
    from core.paths import halo_home
    from core.settings_file import Settings
    from evolution.enqueue import enqueue

    settings = Settings.load(halo_home())
    if settings.get("general.evolution.level") == "L0":
        return
    if not settings.get("general.evolution.triggers.pre_compact"):
        return
    if not session.is_root or "cron" in (session.reply_to or {}):
        return
    try:
        outcome = enqueue(
            session=session, hint="", requested_by=None, trigger=EvolutionRun.Trigger.PRE_COMPACT, now=now
        )
    except Refused as refusal:
        logger.warning("No run for compacted session %s: %s", session.pk, refusal)
        return
    logger.info("Session %s was compacted: run-%s", session.pk, outcome.run_id)
