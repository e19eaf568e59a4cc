"""The verbs of ``halo evo``: their arguments, and one domain call each."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from typing import Any

from core.arguments import from_one
from core.db.clock import database_now
from core.paths import halo_home
from core.texts import for_terminal
from evolution import ticker
from evolution.approve import approve, seen_now
from evolution.cancel import cancel_apply, cancel_run
from evolution.claim import RunSeen
from evolution.console import as_json, as_text
from evolution.console.actor import acting_user
from evolution.console.progress import show_progress
from evolution.console.scenarios import SCENARIOS
from evolution.console.verb import Answer, Options, Verb
from evolution.delete import delete, plan_delete
from evolution.errors import Refused
from evolution.find import find, find_apply, find_run
from evolution.models import EvolutionApply, EvolutionRun
from evolution.outcome import said
from evolution.reject import reject
from evolution.request_rollback import await_outcome, preview, request_rollback
from evolution.retry import retry
from evolution.run_view import is_stale, view_run
from evolution.states import ApplyStatus
from evolution.try_again import try_again


def _list(options: Options) -> Answer:
    rows = EvolutionRun.objects.select_related("workspace", "current_apply", "decided_by").order_by("-pk")
    if options["status"]:
        rows = rows.filter(status=options["status"])
    if options["workspace"]:
        rows = rows.filter(workspace__path__endswith=options["workspace"].rstrip("/"))
    runs = list(rows[: options["limit"]])
    home = halo_home()
    stale = {run.pk for run in runs if is_stale(run, home=home)}
    lines = as_text.run_lines(runs, now=database_now(), stale=stale)
    if not runs and (options["status"] or options["workspace"]):
        lines = ["No such runs. Without --status and -w all are listed."]
    return Answer([as_json.run_row(run) for run in runs], lines)


def _list_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--status", choices=EvolutionRun.Status.values)
    parser.add_argument("-w", "--workspace", help="the workspace's path, or how it ends")
    parser.add_argument("--limit", type=from_one, default=20, metavar="N", help="at most so many (20)")


def _show(options: Options) -> Answer:
    row = find(options["id"])
    if options["follow"]:
        show_progress(row)
    return _page(row)


def _page(row: EvolutionRun | EvolutionApply) -> Answer:
    if isinstance(row, EvolutionApply):
        apply = EvolutionApply.objects.select_related("workspace").get(pk=row.pk)
        return Answer(as_json.apply_row(apply), as_text.apply_page(apply))
    run = EvolutionRun.objects.select_related("workspace", "current_apply", "decided_by").get(pk=row.pk)
    view = view_run(run, home=halo_home())
    return Answer(as_json.run_page(view), as_text.run_page(view))


def _show_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("id")
    _follow_argument(parser)


def _follow_argument(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--follow", "--wait", action="store_true", help="follow it until it rests (ticks meanwhile)"
    )


def _enqueue(options: Options) -> Answer:
    from evolution.enqueue import enqueue
    from sessions_app.errors import SessionRefused
    from sessions_app.selectors import find_session

    try:
        session = find_session(options["session"])
    except SessionRefused as refused:
        raise Refused(refused.code, str(refused)) from refused
    if options["hint"] and options["hint_option"]:
        raise Refused("two_hints", "The hint was given twice; put its words into one pair of quotes.")
    user = acting_user(options["as_user"]) if options["as_user"] else None
    hint = options["hint"] or options["hint_option"]
    outcome = enqueue(session=session, hint=hint, requested_by=user, trigger="note", now=database_now())
    run = EvolutionRun.objects.select_related("workspace", "current_apply", "decided_by").get(
        pk=outcome.run_id
    )
    if options["follow"]:
        show_progress(run)
        return _page(run)
    word = "is queued" if outcome.created else "waits already, with the same hint"
    return Answer(as_json.run_row(run), [f"{run} {word}. Follow it: halo evo show {run} --follow"])


def _enqueue_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("session", help="its id, shortened while unique")
    parser.add_argument("hint", nargs="?", default="", metavar="HINT", help="what went wrong")
    parser.add_argument("--hint", dest="hint_option", default="", metavar="HINT", help="the same")
    parser.add_argument("--as", dest="as_user", metavar="USER", help="who asks")
    _follow_argument(parser)


def _approve(options: Options) -> Answer:
    user = acting_user(options["as_user"])
    runs = [find_run(text) for text in options["ids"]]
    seen = [_seen(run, options["attempt"]) for run in runs]
    apply = approve(runs=seen, user=user, hint=options["hint"], now=database_now())
    names = ", ".join(map(str, runs))
    if options["follow"]:
        show_progress(apply)
        apply.refresh_from_db()
        page = _page(apply)
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
    _follow_argument(parser)


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
        return _page(run)
    return Answer({"id": str(run), "status": "pending"}, [f"{run} starts over."])


def _retry_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("id")
    hint = parser.add_mutually_exclusive_group(required=True)
    hint.add_argument("--hint", help="a new hint")
    hint.add_argument("--keep-hint", action="store_true", help="the old one (the provider was down)")
    _attempt_argument(parser)
    _follow_argument(parser)


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


def _tick(options: Options) -> Answer:
    report = ticker.tick()
    started = [f"{order.verb} {order.row_id}" for order in report.started]
    failed = [f"{order.verb} {order.row_id}" for order in report.failed]
    lines = [*(f"started {name}" for name in started), *(f"could not start {name}" for name in failed)]
    return Answer(
        {"started": started, "failed": failed, "settled": list(report.settled)}, lines or ["Nothing to do."]
    )


def _archive(options: Options) -> Answer:
    from evolution.archive import archive

    report = archive(dry_run=options["dry_run"])
    return Answer(as_json.archive_report(report), as_text.archive_report(report, dry_run=options["dry_run"]))


def _archive_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--dry-run", action="store_true", help="say what would be done, and do nothing")


VERBS = {
    "list": Verb("Runs, newest first.", _list, _list_arguments),
    "show": Verb("A run or an apply with all that a decision needs.", _show, _show_arguments),
    "enqueue": Verb("Ask for a run on a session, as /evo does in a chat.", _enqueue, _enqueue_arguments),
    "approve": Verb("Let drafts through, into one apply.", _approve, _approve_arguments, decides=True),
    "reject": Verb("Turn a draft down.", _reject, _reject_arguments, decides=True),
    "retry": Verb("Start a run over.", _retry, _retry_arguments, decides=True),
    "cancel": Verb("Stop a run, or an apply before it publishes.", _cancel, _id_argument, decides=True),
    "try-again": Verb("Send on an apply that needed a person.", _try_again, _id_argument, decides=True),
    "rollback": Verb("Take an applied change back.", _rollback, _rollback_arguments, decides=True),
    "delete": Verb("Remove a run and what is only its own.", _delete, _delete_arguments, decides=True),
    "scenarios": Verb("What landed runs showed to work, and applies are held to.", parts=SCENARIOS),
    "tick": Verb("One pass of the ticker, now.", _tick),
    "archive": Verb(
        "Pack what ended 14 days ago, remove what was packed 30 days ago, clear what crashes left.",
        _archive,
        _archive_arguments,
    ),
}
