"""``halo session list | show | rename | import | export | archive | delete``."""

from __future__ import annotations

import sys
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError, CommandParser

from core import atomic, clock
from core.arguments import from_one
from core.db.acting_user import NoActor, acting_user
from core.paths import expanded, halo_home
from core.texts import counted, encodable, error_words, for_terminal, json_text
from sessions_app.agent_choice import choose_agent
from sessions_app.archive_session import archive_session
from sessions_app.delete_session import WhatGoes, delete_session, what_goes
from sessions_app.errors import SessionRefused
from sessions_app.export_session import FORMATS as EXPORT_FORMATS
from sessions_app.export_session import exported
from sessions_app.import_session import ImportOutcome, import_session
from sessions_app.importers import FORMATS, ImportFailed
from sessions_app.importers.lock import ImportLockHeld
from sessions_app.logs import read_session
from sessions_app.logs.segments import earlier_rows
from sessions_app.logs.shown import DEEPEST, shown
from sessions_app.models import Session
from sessions_app.places import log_folder, log_leaf
from sessions_app.rename_session import rename_session
from sessions_app.selectors import find_session, recent_sessions
from sessions_app.start_chat import check_user
from sessions_app.transcript import lines_of
from sessions_app.tree_view import sub_session_counts, tree_of
from sessions_app.trees import is_below
from workspaces.errors import WorkspaceRefused
from workspaces.selectors import find


class Command(BaseCommand):
    help = "List, show, rename, export, archive and delete conversations, and import ones recorded elsewhere."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(
            dest="verb", required=True, metavar="list|show|rename|import|export|archive|delete"
        )
        listing = verbs.add_parser("list", help="root sessions, the last active first")
        listing.add_argument("-w", "--workspace", metavar="WS", help="number or path; without it: all")
        listing.add_argument("--archived", action="store_true", help="archived ones as well")
        listing.add_argument("--limit", type=from_one, default=50, metavar="N")
        show = verbs.add_parser("show", help="one session with its transcript")
        show.add_argument("session", metavar="SESSION", help="its id, shortened while unique")
        renaming = verbs.add_parser("rename", help="give a session another title; it stays from then on")
        renaming.add_argument("session", metavar="SESSION", help="its id, shortened while unique")
        renaming.add_argument("title", metavar="TITLE")
        importing = verbs.add_parser(
            "import", help="make a session from a file, so that /evo can learn from it"
        )
        importing.add_argument("file", metavar="FILE")
        importing.add_argument("-w", "--workspace", required=True, metavar="WS")
        importing.add_argument("-a", "--agent", default="", metavar="AGENT", help="whose prompts shall learn")
        importing.add_argument("--format", choices=["auto", *FORMATS], default="auto")
        exporting = verbs.add_parser("export", help="the whole conversation as Markdown or JSON")
        exporting.add_argument("session", metavar="SESSION", help="its id, shortened while unique")
        exporting.add_argument("--format", choices=EXPORT_FORMATS, default="md")
        exporting.add_argument(
            "-o", "--output", default="", metavar="FILE", help="instead of standard output"
        )
        exporting.add_argument("--force", action="store_true", help="write over a FILE that is there")
        archiving = verbs.add_parser(
            "archive", help="end a session and its sub-sessions: it takes no messages any more"
        )
        archiving.add_argument("session", metavar="SESSION", help="its id, shortened while unique")
        deleting = verbs.add_parser("delete", help="a root session with its sub-sessions, for good")
        deleting.add_argument("session", metavar="SESSION", help="its id, shortened while unique")
        deleting.add_argument("--yes", action="store_true", help="don't ask")
        for verb in (renaming, archiving, deleting):
            verb.add_argument("--as", dest="as_user", default="", metavar="USER", help="who decides")
        for verb in (listing, show, renaming, importing, archiving, deleting):
            verb.add_argument("--json", action="store_true", help="machine-readable output")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            getattr(self, f"_{options['verb']}")(options)
        except ImportFailed as error:
            raise CommandError(for_terminal(f"{options['file']}, {error}. Nothing was imported.")) from error
        except (NoActor, SessionRefused, WorkspaceRefused, ImportLockHeld, OSError) as error:
            raise CommandError(for_terminal(error_words(error))) from error

    def _list(self, options: dict[str, Any]) -> None:
        workspace = find(options["workspace"]) if options["workspace"] else None
        rows = list(
            recent_sessions(workspace=workspace, archived=options["archived"], limit=options["limit"])
        )
        counts = sub_session_counts(rows)
        if options["json"]:
            self._print_json([_described(row) | {"sub_sessions": counts.get(row.pk, 0)} for row in rows])
            return
        for row in rows:
            when = clock.stamp(row.last_activity_at)[:16].replace("T", " ")
            below = f"  [sub-sessions: {counts[row.pk]}]" if row.pk in counts else ""
            self.stdout.write(
                f"{row.pk:24}  {when}  {row.agent_id:16}  {for_terminal(row.title) or '(no message yet)'}{below}"
            )
        if not rows:
            self.stdout.write("No sessions yet. Start one with: halo chat -w WORKSPACE")

    def _show(self, options: dict[str, Any]) -> None:
        session = find_session(options["session"])
        ui, raw = read_session(log_folder(session), log_leaf(session))
        if options["json"]:
            rows = [*earlier_rows(log_folder(session), log_leaf(session), ui.archived), *ui.rows]
            said = shown({"rows": rows, "messages": raw.messages}, DEEPEST)
            below = [
                {"id": branch.session.pk, "agent": branch.session.agent_id, "state": branch.state}
                for branch in tree_of(session).branches
                if is_below(branch.session.pk, session.pk)
            ]
            self._print_json(_described(session) | {"sub_sessions": below} | said)
            return
        self.stdout.write(
            f"{session.pk}: {for_terminal(session.title) or '(no message yet)'}\n"
            f"{session.agent_id} in {session.workspace.path}, access {session.access_level}, "
            f"{counted(session.exchange_count, 'exchange')}\n"
        )
        for line in _tree_lines(session):
            self.stdout.write(line)
        for row in [*earlier_rows(log_folder(session), log_leaf(session), ui.archived), *ui.rows]:
            self.stdout.write("\n".join(lines_of(row)) + "\n")

    def _rename(self, options: dict[str, Any]) -> None:
        user = _decider(options)
        session = find_session(options["session"])
        title = rename_session(session, title=options["title"], user=user, now=clock.now())
        if options["json"]:
            self._print_json({"id": session.pk, "title": title})
            return
        self.stdout.write(f"Session {session.pk} is called {for_terminal(title)} now.")

    def _import(self, options: dict[str, Any]) -> None:
        workspace = find(options["workspace"])
        agent = choose_agent(workspace, options["agent"], home=halo_home())
        outcome = import_session(
            data=expanded(options["file"]).read_bytes(),
            workspace=workspace,
            agent_id=agent.id,
            agent_name=agent.name,
            format=options["format"],
            now=clock.now(),
        )
        if options["json"]:
            self._print_json(_described(outcome.session) | {"created": outcome.created, **_counts(outcome)})
            return
        state = "Imported as" if outcome.created else "This file was imported before, as"
        self.stdout.write(
            f"{state} session {outcome.session.pk} for agent {agent.id}: "
            f"{counted(outcome.exchanges, 'message')} of a person, {outcome.messages} in all."
        )
        for reason, count in sorted(outcome.left_out.items()):
            self.stdout.write(f"  left out: {count} x {for_terminal(reason)}")
        self.stdout.write(
            f"Let the agent learn from it: halo evo enqueue {outcome.session.pk} 'WHAT WENT WRONG'"
        )

    def _export(self, options: dict[str, Any]) -> None:
        text = exported(find_session(options["session"]), format=options["format"])
        if not options["output"]:
            self.stdout.write(for_terminal(text) if self._is_terminal() else encodable(text), ending="")
            return
        path = expanded(options["output"])
        if not path.parent.is_dir():
            raise CommandError(for_terminal(f"{path.parent} is not a folder; nothing was written."))
        if path.is_dir():
            raise CommandError(for_terminal(f"{path} is a folder; a file is wanted."))
        if path.exists() and not options["force"]:
            raise CommandError(for_terminal(f"{path} is there already; give another name, or --force."))
        atomic.write_text(path, encodable(text), mode=0o600)
        self.stderr.write(f"Written to {for_terminal(str(path))}")

    def _archive(self, options: dict[str, Any]) -> None:
        user = _decider(options)
        session = find_session(options["session"])
        count, _ = archive_session(session.pk, user=user, now=clock.now())
        if options["json"]:
            self._print_json({"id": session.pk, "archived": count})
            return
        self.stdout.write(
            f"Archived {counted(count, 'session')}."
            if count
            else f"Session {session.pk} had been archived before."
        )

    def _delete(self, options: dict[str, Any]) -> None:
        user = _decider(options)
        session = find_session(options["session"])
        found = what_goes(session)
        if not options["yes"]:
            self._ask(found)
        delete_session(session=session, user=user, now=clock.now())
        if options["json"]:
            self._print_json(
                {"deleted": [row.pk for row in found.sessions], "files": [str(path) for path in found.files]}
            )
            return
        self.stdout.write(f"Deleted {counted(len(found.sessions), 'session')}.")

    def _ask(self, found: WhatGoes) -> None:
        """Say what would go, and let a person answer with the session's id's first characters or yes."""
        root = found.sessions[0]
        self.stderr.write(
            f"This deletes for good: session {root.pk}, {for_terminal(root.title) or '(no message yet)'} "
            f"({counted(root.exchange_count, 'exchange')})"
        )
        for row in found.sessions[1:]:
            self.stderr.write(f"  its sub-session {row.pk}")
        for path in found.files:
            self.stderr.write(f"  {for_terminal(str(path))}")
        if found.waiting:
            self.stderr.write(f"  {counted(found.waiting, 'message')} not answered yet")
        self.stderr.write("Runs that were made from it stay.")
        if not sys.stdin.isatty():
            raise CommandError("Nothing was deleted. To delete without being asked: --yes")
        if input("Delete? [y/N] ").strip().lower() not in ("y", "yes"):
            raise CommandError("Nothing was deleted.")

    def _is_terminal(self) -> bool:
        return bool(getattr(self.stdout, "isatty", lambda: False)())

    def _print_json(self, value: Any) -> None:
        self.stdout.write(json_text(value))


def _decider(options: dict[str, Any]) -> User | None:
    """Whom the admin's log shall name; without a name nobody. Raises NoActor, SessionRefused ``forbidden``."""
    user = acting_user(options["as_user"]) if options["as_user"] else None
    check_user(user)
    return user


def _described(session: Session) -> dict[str, Any]:
    return {
        "id": session.pk,
        "workspace": session.workspace.path,
        "agent": session.agent_id,
        "title": session.title,
        "access": session.access_level,
        "working_dir": session.working_dir,
        "exchanges": session.exchange_count,
        "outside_data": session.outside_data_at is not None,
        "created_at": clock.stamp(session.created_at),
        "last_activity_at": clock.stamp(session.last_activity_at),
        "archived": session.archived_at is not None,
    }


def _tree_lines(session: Session) -> list[str]:
    """The tree it stands in, when there is more than itself; ``*`` marks the session shown."""
    tree = tree_of(session)
    if tree.count == 1:
        return []
    lines = [
        f"{'*' if branch.session.pk == session.pk else ' '} {'  ' * branch.depth}{branch.session.pk}  "
        f"{branch.session.agent_id}, {branch.state}: {for_terminal(branch.session.title) or '(no message yet)'}"
        for branch in tree.branches
    ]
    return [*lines, f"  ({tree.left_out} older ones not shown)"] if tree.left_out else lines


def _counts(outcome: ImportOutcome) -> dict[str, Any]:
    return {
        "messages": outcome.messages,
        "exchanges": outcome.exchanges,
        "left_out": dict(outcome.left_out),
    }
