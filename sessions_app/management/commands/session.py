"""``halo session list | show | import``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from core import clock
from core.arguments import from_one
from core.paths import halo_home
from core.texts import for_terminal, json_text
from sessions_app.agent_choice import choose_agent
from sessions_app.errors import SessionRefused
from sessions_app.import_session import ImportOutcome, import_session
from sessions_app.importers import FORMATS, ImportFailed
from sessions_app.importers.lock import ImportLockHeld
from sessions_app.logs import read_session
from sessions_app.models import Session
from sessions_app.places import log_folder, log_leaf
from sessions_app.selectors import find_session, recent_sessions
from sessions_app.transcript import lines_of
from workspaces.errors import WorkspaceRefused
from workspaces.selectors import find


class Command(BaseCommand):
    help = "List and show conversations, and import ones recorded elsewhere."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True, metavar="list|show|import")
        listing = verbs.add_parser("list", help="root sessions, the last active first")
        listing.add_argument("-w", "--workspace", metavar="WS", help="number or path; without it: all")
        listing.add_argument("--archived", action="store_true", help="archived ones as well")
        listing.add_argument("--limit", type=from_one, default=50, metavar="N")
        show = verbs.add_parser("show", help="one session with its transcript")
        show.add_argument("session", metavar="SESSION", help="its id, shortened while unique")
        importing = verbs.add_parser(
            "import", help="make a session from a file, so that /evo can learn from it"
        )
        importing.add_argument("file", metavar="FILE")
        importing.add_argument("-w", "--workspace", required=True, metavar="WS")
        importing.add_argument("-a", "--agent", default="", metavar="AGENT", help="whose prompts shall learn")
        importing.add_argument("--format", choices=["auto", *FORMATS], default="auto")
        for verb in (listing, show, importing):
            verb.add_argument("--json", action="store_true", help="machine-readable output")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            getattr(self, f"_{options['verb']}")(options)
        except ImportFailed as error:
            raise CommandError(for_terminal(f"{options['file']}, {error}. Nothing was imported.")) from error
        except (SessionRefused, WorkspaceRefused, ImportLockHeld, OSError) as error:
            raise CommandError(for_terminal(str(error))) from error

    def _list(self, options: dict[str, Any]) -> None:
        workspace = find(options["workspace"]) if options["workspace"] else None
        rows = list(
            recent_sessions(workspace=workspace, archived=options["archived"], limit=options["limit"])
        )
        if options["json"]:
            self._print_json([_described(row) for row in rows])
            return
        for row in rows:
            when = clock.stamp(row.last_activity_at)[:16].replace("T", " ")
            self.stdout.write(
                f"{row.pk:24}  {when}  {row.agent_id:16}  {for_terminal(row.title) or '(no message yet)'}"
            )
        if not rows:
            self.stdout.write("No sessions yet. Start one with: halo chat -w WORKSPACE")

    def _show(self, options: dict[str, Any]) -> None:
        session = find_session(options["session"])
        ui, raw = read_session(log_folder(session), log_leaf(session))
        if options["json"]:
            self._print_json(_described(session) | {"rows": ui.rows, "messages": raw.messages})
            return
        self.stdout.write(
            f"{session.pk}: {for_terminal(session.title) or '(no message yet)'}\n"
            f"{session.agent_id} in {session.workspace.path}, access {session.access_level}, "
            f"{session.exchange_count} exchanges\n"
        )
        for row in ui.rows:
            self.stdout.write("\n".join(lines_of(row)) + "\n")

    def _import(self, options: dict[str, Any]) -> None:
        workspace = find(options["workspace"])
        agent = choose_agent(workspace, options["agent"], home=halo_home())
        outcome = import_session(
            data=Path(options["file"]).expanduser().read_bytes(),
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
            f"{state} session {outcome.session.pk} for agent {agent.id}: {outcome.exchanges} messages of a "
            f"person, {outcome.messages} in all."
        )
        for reason, count in sorted(outcome.left_out.items()):
            self.stdout.write(f"  left out: {count} x {for_terminal(reason)}")
        self.stdout.write(
            f"Let the agent learn from it: halo evo enqueue {outcome.session.pk} 'WHAT WENT WRONG'"
        )

    def _print_json(self, value: Any) -> None:
        self.stdout.write(json_text(value))


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


def _counts(outcome: ImportOutcome) -> dict[str, Any]:
    return {
        "messages": outcome.messages,
        "exchanges": outcome.exchanges,
        "left_out": dict(outcome.left_out),
    }
