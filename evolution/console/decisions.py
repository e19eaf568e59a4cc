"""The verbs of ``halo evo`` that decide: each needs a person, and is one domain call."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from typing import Any

from core.db.clock import database_now
from core.texts import for_terminal
from evolution.approve import approve, seen_now
from evolution.cancel import cancel_apply, cancel_run
from evolution.claim import RunSeen
from evolution.console import as_json
from evolution.console.actor import acting_user
from evolution.console.following import follow_argument, page_of
from evolution.console.progress import show_progress
from evolution.console.verb import Answer, Options, Verb
from evolution.delete import delete, plan_delete
from evolution.errors import Refused
from evolution.find import find, find_apply, find_run
from evolution.models import EvolutionApply, EvolutionRun
from evolution.outcome import said
from evolution.reject import reject
from evolution.request_rollback import await_outcome, preview, request_rollback
from evolution.retry import retry
from evolution.states import ApplyStatus
from evolution.try_again import try_again


def _approve(options: Options) -> Answer:
    user = acting_user(options["as_user"])
    runs = [find_run(text) for text in options["ids"]]
    seen = [_seen(run, options["attempt"]) for run in runs]
    apply = approve(runs=seen, user=user, hint=options["hint"], now=database_now())
    names = ", ".join(map(str, runs))
    if options["follow"]:
        show_progress(apply)
        apply.refresh_from_db()
        page = page_of(apply)
        return Answer(page.value, page.lines, ok=apply.status == ApplyStatus.APPLIED)
    return Answer(
        as_json.apply_row(apply),
        [f"{names} approved into {apply}. Follow it: halo evo show {apply} --follow"],
    )


def _seen(run: EvolutionRun, attempt: int | None) -> RunSeen:
    seen = seen_now(run)
    return seen if attempt is None else RunSeen(seen.run_id, attempt, seen.apply_id)


def _approve_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("ids", nargs="+", metavar="ID", help="runs of one workspace")
    parser.add_argument("--hint", default="", help="a hard limit on what the merge may apply")
    _attempt_argument(parser)
    follow_argument(parser)


def _attempt_argument(parser: ArgumentParser) -> None:
    parser.add_argument("--attempt", type=int, help="the attempt you looked at; another by now is refused")


def _reject(options: Options) -> Answer:
    user = acting_user(options["as_user"])
    run = find_run(options["id"])
    reject(run=_seen(run, options["attempt"]), user=user, reason=options["reason"], now=database_now())
    return Answer({"id": str(run), "status": "rejected"}, [f"{run} is rejected."])


def _reject_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("id")
    parser.add_argument("--reason", required=True, help="later drafts read it")
    _attempt_argument(parser)


def _retry(options: Options) -> Answer:
    user = acting_user(options["as_user"])
    run = find_run(options["id"])
    hint = None if options["keep_hint"] else options["hint"]
    attempt = run.attempts if options["attempt"] is None else options["attempt"]
    retry(run_id=run.pk, attempt=attempt, hint=hint, user=user, now=database_now())
    if options["follow"]:
        show_progress(run)
        return page_of(run)
    return Answer({"id": str(run), "status": "pending"}, [f"{run} starts over."])


def _retry_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("id")
    hint = parser.add_mutually_exclusive_group(required=True)
    hint.add_argument("--hint", help="a new hint")
    hint.add_argument("--keep-hint", action="store_true", help="the old one (the provider was down)")
    _attempt_argument(parser)
    follow_argument(parser)


def _cancel(options: Options) -> Answer:
    user = acting_user(options["as_user"])
    row = find(options["id"])
    if isinstance(row, EvolutionApply):
        cancel_apply(apply_id=row.pk, user=user, now=database_now())
    else:
        cancel_run(run_id=row.pk, user=user, now=database_now())
    return Answer({"id": str(row), "status": "cancelled"}, [f"{row} is cancelled."])


def _try_again(options: Options) -> Answer:
    user = acting_user(options["as_user"])
    apply = find_apply(options["id"])
    try_again(apply_id=apply.pk, user=user, now=database_now())
    return Answer({"id": str(apply)}, [f"{apply} goes on as soon as a slot is free."])


def _id_argument(parser: ArgumentParser) -> None:
    parser.add_argument("id")


def _rollback(options: Options) -> Answer:
    user = acting_user(options["as_user"])
    apply = find_apply(options["id"])
    found = preview(apply_id=apply.pk)
    if options["force"] and found.conflicts:
        _confirm(
            [f"{item['rel']}: {item['state']}" for item in found.conflicts],
            question="Put the saved files in place of these?",
            yes=options["yes"],
        )
    request_rollback(
        apply_id=apply.pk,
        attempts=found.apply.attempts,
        user=user,
        force=options["force"],
        seen=found.conflicts if options["force"] else (),
        now=database_now(),
    )
    outcome = await_outcome(apply_id=apply.pk)
    if outcome is None:
        return Answer(
            {"id": str(apply), "status": "rolling_back"},
            [f"{apply} is being rolled back. Follow it: halo evo show {apply} --follow"],
        )
    return Answer({"id": str(apply), "status": "rolled_back", **outcome}, _rolled_back(apply, outcome))


def _rolled_back(apply: EvolutionApply, outcome: dict[str, Any]) -> list[str]:
    return [f"{apply} is rolled back.", *(f"  {label}: {text}" for label, text in said(outcome))]


def _rollback_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("id", help="an apply, or one of its runs")
    parser.add_argument("--force", action="store_true", help="also over files that were edited since")
    parser.add_argument("--yes", action="store_true", help="don't ask")


def _delete(options: Options) -> Answer:
    user = acting_user(options["as_user"])
    plan = plan_delete(find_run(options["id"]).pk)
    listed = [*plan.names, *map(str, plan.paths)]
    _confirm(listed, question="Delete all of this for good?", yes=options["yes"])
    delete(plan=plan, user=user, now=database_now())
    return Answer({"deleted": listed}, [f"{', '.join(plan.names)} deleted."])


def _delete_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("id")
    parser.add_argument("--yes", action="store_true", help="don't ask")


def _confirm(listed: list[str], *, question: str, yes: bool) -> None:
    """Raises Refused ``not_confirmed``."""
    if yes:
        return
    for line in listed:
        sys.stderr.write(f"  {for_terminal(line)}\n")
    if not sys.stdin.isatty():
        raise Refused("not_confirmed", f"{question} Say so with --yes.")
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise Refused("not_confirmed", "Nothing was changed.")


DECISIONS = {
    "approve": Verb("Let drafts through, into one apply.", _approve, _approve_arguments, decides=True),
    "reject": Verb("Turn a draft down.", _reject, _reject_arguments, decides=True),
    "retry": Verb("Start a run over.", _retry, _retry_arguments, decides=True),
    "cancel": Verb("Stop a run, or an apply before it publishes.", _cancel, _id_argument, decides=True),
    "try-again": Verb("Send on an apply that needed a person.", _try_again, _id_argument, decides=True),
    "rollback": Verb("Take an applied change back.", _rollback, _rollback_arguments, decides=True),
    "delete": Verb("Remove a run and what is only its own.", _delete, _delete_arguments, decides=True),
}
