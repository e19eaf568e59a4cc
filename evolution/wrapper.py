"""The director of one attempt: names the phases' keeper, holds claim and heartbeat, and turns what went wrong
into the row's state. How a phase works, and what a row's states mean to it, is not known here.

What isn't needed to write who works the row is imported after that: it is half of what a wrapper loads.
"""

from __future__ import annotations

import logging
import signal
import sys
from collections.abc import Callable
from functools import partial
from types import FrameType

from django.db import DatabaseError, connection

from core import clock
from core.db.clock import database_now
from core.paths import halo_home
from core.processes import ProcessIdentity
from core.settings_file import Settings
from evolution import ticker, transitions
from evolution.artifacts.patch import read_observation
from evolution.children import Children
from evolution.claim import Claim, apply_claim, run_claim
from evolution.errors import ClaimLost, PhaseFailed, PhaseSkipped
from evolution.heartbeat import Heartbeat
from evolution.job import Job, Step
from evolution.limits import Limits
from evolution.models import EvolutionApply, EvolutionRun
from evolution.spawn import Order, Verb
from evolution.states import ApplyStatus
from evolution.zygote import Zygote
from sessions_app.models import TokensOnDay
from workspaces.publish_lock import LockHeld

logger = logging.getLogger(__name__)

DONE, GAVE_UP = 0, 1

Work = Callable[[Job], None]


def work(
    order: Order,
    *,
    zygote: Zygote | None,
    step: Step = lambda name: None,
    afterwards: Callable[[], object] = ticker.tick,
) -> int:
    """Work one attempt to its end; the exit code. What comes next is claimed at once."""
    signal.signal(signal.SIGTERM, _leave)
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(message)s")
    try:
        code = _attempt(order, zygote, step)
    finally:
        if zygote is not None:
            zygote.close()
    afterwards()
    connection.close()
    return code


def _attempt(order: Order, zygote: Zygote | None, step: Step) -> int:
    try:
        job = _take_up(order, zygote, step)
    except ClaimLost as lost:
        logger.info("%s", lost)
        return DONE
    try:
        return _guarded(job)
    finally:
        job.heart.stop()
        _reduce(order)


def _reduce(order: Order) -> None:
    from evolution.reduce import reduce_apply, reduce_run

    if order.verb == "run":
        reduce_run(order.row_id)
    else:
        reduce_apply(order.row_id)


def _take_up(order: Order, zygote: Zygote | None, step: Step) -> Job:
    """Write who works the row and start to beat. Raises ClaimLost for an attempt that came too late."""
    sent = clock.suspended_seconds()
    claim = _claim_of(order)
    transitions.write_process(claim, process=ProcessIdentity.current(), now=database_now())
    limits = Limits.load()
    model = EvolutionRun if claim.kind == "run" else EvolutionApply
    row = model._default_manager.select_related("workspace").get(pk=order.row_id)
    heart = Heartbeat(
        claim=claim,
        timeout=limits.run_timeout if claim.kind == "run" else limits.apply_timeout,
        on_lost=lambda: children.abort() if children is not None else None,
    )
    children = (
        None
        if zygote is None
        else Children(zygote, check=heart.check, account=partial(_account, row.workspace_id))
    )
    heart.start(since=sent)
    settings = Settings.load(halo_home(), row.workspace.paths)
    return Job(order, row, heart, children, settings, step)


def _account(workspace_id: int, spent: tuple[int, int]) -> None:
    """A day's figure that can't be written is no reason to give up what was paid for."""
    from agents.events import Usage
    from sessions_app.count_tokens import count_tokens

    try:
        count_tokens(
            workspace_id=workspace_id,
            use=TokensOnDay.Use.EVOLUTION,
            spent=Usage(*spent),
            now=database_now(),
        )
    except DatabaseError:
        logger.exception("%s and %s tokens could not be counted", *spent)


def _claim_of(order: Order) -> Claim:
    if order.verb == "run":
        return run_claim(order.row_id, order.attempt)
    if order.verb == "rollback":
        return apply_claim(order.row_id, order.attempt, ApplyStatus.ROLLING_BACK)
    status = EvolutionApply.objects.filter(pk=order.row_id).values_list("status", flat=True).first()
    syncing = status == ApplyStatus.SYNCING
    return apply_claim(order.row_id, order.attempt, ApplyStatus.SYNCING if syncing else ApplyStatus.RUNNING)


def _guarded(job: Job) -> int:
    """Run the work; what it raises becomes the row's end, or a reason and another try."""
    try:
        try:
            _work_of(job.order.verb)(job)
        except PhaseSkipped as skipped:
            _skip(job, skipped.reason)
        except PhaseFailed as failed:
            _fail(job, failed.reason)
        except OSError as error:
            if _surface_is_touched(job):
                raise
            _fail(job, f"{error.strerror or error}: {error.filename}" if error.filename else str(error))
    except ClaimLost as lost:
        logger.info("%s", lost)
        return DONE
    except LockHeld as held:
        return _give_up(job, held.reason)
    except Exception as error:
        logger.exception("%s %s", job.order.verb, job.order.row_id)
        return _give_up(job, f"{type(error).__name__}: {error}")
    return DONE


def _work_of(verb: Verb) -> Work:
    if verb == "run":
        from evolution import run_work

        return run_work.work
    if verb == "apply":
        from evolution import apply_work

        return apply_work.work
    from evolution import rollback_work

    return rollback_work.work


def _surface_is_touched(job: Job) -> bool:
    return job.heart.claim.status in (ApplyStatus.SYNCING, ApplyStatus.ROLLING_BACK)


def _skip(job: Job, reason: str) -> None:
    observed = bool(read_observation(job.folder))
    job.finish(
        lambda claim, now: transitions.skip_run(claim, reason=reason, has_observation=observed, now=now)
    )


def _fail(job: Job, reason: str) -> None:
    if job.order.verb == "run":
        observed = bool(read_observation(job.folder))
        job.finish(
            lambda claim, now: transitions.fail_run(claim, reason=reason, has_observation=observed, now=now)
        )
    else:
        job.finish(lambda claim, now: transitions.fail_apply(claim, reason=reason, now=now))


def _give_up(job: Job, reason: str) -> int:
    """This attempt ends here; the next tick finds its wrapper gone and decides on another."""
    job.heart.stop()
    try:
        transitions.leave_reason(job.heart.claim, reason=reason)
    except ClaimLost as lost:
        logger.info("%s", lost)
    return GAVE_UP


def _leave(_signal: int, _frame: FrameType | None) -> None:
    """SIGTERM (a machine that shuts down): leave as if killed; the ticker takes up from there."""
    sys.exit(GAVE_UP)
