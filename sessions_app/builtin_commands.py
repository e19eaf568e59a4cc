"""The commands that sessions bring themselves: ``/help``, ``/new``, ``/stop``, ``/session info|list``."""

from __future__ import annotations

from sessions_app import commands
from sessions_app.commands import CommandContext, CommandResult
from sessions_app.create import create_session
from sessions_app.errors import SessionRefused
from sessions_app.models import Session
from sessions_app.selectors import recent_sessions

LISTED = 20


def register_all() -> None:
    commands.register("help", show_help, usage="/help: this list")
    commands.register("new", start_new, usage="/new: a new session with the same agent and directory")
    commands.register("stop", stop, usage="/stop: end the turn that runs; waiting messages are kept")
    commands.register(
        "session", show_session, usage="/session info|list: about this session, the newest ones"
    )


def show_help(context: CommandContext) -> CommandResult:
    return CommandResult("\n".join(command.usage for command in commands.known()))


def start_new(context: CommandContext) -> CommandResult:
    """The root's working directory is kept, and checked again: it may be gone."""
    old = context.session
    root = old if old.is_root else Session.objects.get(pk=old.root_id)
    try:
        session = create_session(
            workspace=root.workspace,
            agent_id=root.agent_id,
            agent_name=root.agent_name,
            access_level=root.access_level,
            working_dir=root.working_dir,
            now=context.now,
        )
    except SessionRefused as error:
        return CommandResult(f"No new session: {error}", ok=False)
    return CommandResult(f"New session {session.pk}.", session_id=session.pk)


def stop(context: CommandContext) -> CommandResult:
    if context.stop():
        return CommandResult("Stopped. Messages that waited stand in the history, unanswered.")
    return CommandResult("Nothing runs in this session.", ok=False)


def show_session(context: CommandContext) -> CommandResult:
    if context.argument in ("", "info"):
        return CommandResult(_info(context.session))
    if context.argument == "list":
        lines = [
            f"{row.pk}  {row.agent_id}  {row.title or '(no message yet)'}"
            for row in recent_sessions(workspace=context.session.workspace, limit=LISTED)
        ]
        return CommandResult("\n".join(lines))
    return CommandResult("Say /session info or /session list.", ok=False)


def _info(session: Session) -> str:
    return "\n".join(
        [
            f"session {session.pk}: {session.title or '(no message yet)'}",
            f"agent {session.agent_id} in {session.workspace.path}, directory {session.working_dir}",
            f"access {session.access_level}, {session.exchange_count} exchanges, "
            f"{session.context_tokens} tokens in context",
        ]
    )
