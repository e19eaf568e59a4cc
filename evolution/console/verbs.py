"""The verbs of ``halo evo``: their arguments, and one domain call each."""

from __future__ import annotations

from argparse import ArgumentParser

from core.arguments import from_one
from core.db.clock import database_now
from core.paths import halo_home
from evolution import ticker
from evolution.console import as_json, as_text
from evolution.console.actor import acting_user
from evolution.console.decisions import DECISIONS
from evolution.console.following import follow_argument, page_of
from evolution.console.progress import show_progress
from evolution.console.scenarios import SCENARIOS
from evolution.console.verb import Answer, Options, Verb
from evolution.errors import Refused
from evolution.find import find
from evolution.models import EvolutionRun
from evolution.run_view import is_stale


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
    return page_of(row)


def _show_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("id")
    follow_argument(parser)


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
        return page_of(run)
    word = "is queued" if outcome.created else "waits already, with the same hint"
    return Answer(as_json.run_row(run), [f"{run} {word}. Follow it: halo evo show {run} --follow"])


def _enqueue_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("session", help="its id, shortened while unique")
    parser.add_argument("hint", nargs="?", default="", metavar="HINT", help="what went wrong")
    parser.add_argument("--hint", dest="hint_option", default="", metavar="HINT", help="the same")
    parser.add_argument("--as", dest="as_user", metavar="USER", help="who asks")
    follow_argument(parser)


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
    **DECISIONS,
    "scenarios": Verb("What landed runs showed to work, and applies are held to.", parts=SCENARIOS),
    "tick": Verb("One pass of the ticker, now.", _tick),
    "archive": Verb(
        "Pack what ended 14 days ago, remove what was packed 30 days ago, clear what crashes left.",
        _archive,
        _archive_arguments,
    ),
}
