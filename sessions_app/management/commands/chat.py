"""``halo chat``: one agent session in the terminal."""

from __future__ import annotations

import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from core import clock
from core.db.acting_user import NoActor, acting_user
from core.paths import halo_home
from core.texts import error_words, for_terminal
from sessions_app.errors import SessionRefused
from sessions_app.model_library import load_in_background
from sessions_app.models import Session
from sessions_app.start_chat import ChatRequest, chat_session
from sessions_app.terminal import Chat
from workspaces.errors import WorkspaceRefused
from workspaces.selectors import find


class Command(BaseCommand):
    help = (
        "Talk to an agent. Without TEXT and at a terminal: a conversation; piped input is the message. Goes on "
        "with the newest session of the agent in this workspace unless -n or -s says otherwise."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "text", nargs="?", metavar="TEXT", help="the message; then the answer and the end"
        )
        parser.add_argument("-w", "--workspace", required=True, metavar="WS", help="number or path")
        parser.add_argument("-a", "--agent", default="", metavar="AGENT")
        which = parser.add_mutually_exclusive_group()
        which.add_argument("-s", "--session", default="", metavar="SESSION", help="go on with this one")
        which.add_argument("-n", "--new", action="store_true", help="start a new session")
        parser.add_argument("--access", choices=Session.AccessLevel.values, default="", help="default: full")
        parser.add_argument("--dir", default="", metavar="D", help="working directory in the workspace")
        parser.add_argument("--as", dest="as_user", default="", metavar="USER", help="act as this user")

    def handle(self, *args: Any, **options: Any) -> None:
        load_in_background()
        text = options["text"]
        if text is None and not sys.stdin.isatty():
            text = sys.stdin.buffer.read().decode(errors="replace")
        try:
            user = acting_user(options["as_user"]) if options["as_user"] else None
            request = ChatRequest(
                workspace=find(options["workspace"]),
                agent_id=options["agent"],
                session_id=options["session"],
                new=options["new"],
                access=options["access"],
                working_dir=options["dir"],
                user=user,
            )
            if text is not None and not text.strip():
                raise SessionRefused("The message is empty.", "empty_message")
            session, _ = chat_session(request, home=halo_home(), now=clock.now())
        except (NoActor, SessionRefused, WorkspaceRefused, OSError) as error:
            raise CommandError(for_terminal(error_words(error))) from error
        chat = Chat(session, home=halo_home(), user=user)
        code = chat.converse() if text is None else chat.once(text)
        if code:
            sys.exit(code)
