"""The commands that sessions bring themselves: help, new, stop, interrupt, compact, session.

Every process of Halo registers them at its start and few run one, so what a command works with is imported by it.
"""

from __future__ import annotations

from django.db import transaction

from sessions_app import commands
from sessions_app.commands import Command, CommandContext, CommandResult
from sessions_app.errors import SessionError, SessionRefused
from sessions_app.models import Session

USE_FULL_ACCESS = "workspaces.use_full_access"
LISTED = 20
VIEWS = "info, list, context, output or authoring"


def register_all() -> None:
    commands.register("help", show_help, usage="/help: this list")
    commands.register("new", start_new, usage="/new: a new session with the same agent and directory")
    commands.register("stop", stop, usage="/stop: end the turn that runs; waiting messages are kept")
    commands.register(
        "interrupt", interrupt, usage="/interrupt: end the turn that runs; what waits is worked next"
    )
    commands.register("compact", compact, usage="/compact: replace the earlier conversation by a summary")
    commands.register(
        "session",
        show_session,
        usage="/session info|list|context|output|authoring [off]: about this session; open it for authoring",
    )
    commands.register_finder(skills_of)


def skills_of(session: Session) -> list[Command]:
    from sessions_app import skill_commands

    return skill_commands.of_session(session)


def show_help(context: CommandContext) -> CommandResult:
    found = [*commands.known(), *commands.of_session(context.session)]
    return CommandResult("\n".join(command.usage for command in found))


def start_new(context: CommandContext) -> CommandResult:
    """The root's working directory is kept, and checked again: it may be gone."""
    from sessions_app.admin_log import note_started
    from sessions_app.create import create_session

    old = context.session
    root = old if old.is_root else Session.objects.get(pk=old.root_id)
    if root.access_level == Session.AccessLevel.FULL and not context.may(USE_FULL_ACCESS):
        return CommandResult(
            f"No new session: it would have full access, as the first session of this tree has, and that needs "
            f"the permission {USE_FULL_ACCESS}.",
            ok=False,
        )
    try:
        with transaction.atomic():
            session = create_session(
                workspace=root.workspace,
                agent_id=root.agent_id,
                agent_name=root.agent_name,
                access_level=root.access_level,
                working_dir=root.working_dir,
                now=context.now,
            )
            note_started(session, user=context.user, now=context.now)
    except SessionRefused as error:
        return CommandResult(f"No new session: {error}", ok=False)
    return CommandResult(f"New session {session.pk}.", session_id=session.pk)


def stop(context: CommandContext) -> CommandResult:
    if context.place.stop():
        return CommandResult("Stopped. Messages that waited stand in the history, unanswered.")
    return CommandResult("Nothing runs in this session.", ok=False)


def interrupt(context: CommandContext) -> CommandResult:
    if context.place.interrupt():
        return CommandResult("Interrupted. What waits is worked next.")
    return CommandResult("Nothing runs in this session.", ok=False)


def compact(context: CommandContext) -> CommandResult:
    """Said to be done only when there is something to compact; the outcome stands in the conversation."""
    from agents.compaction import cut
    from core.paths import halo_home
    from core.settings_file import Settings
    from sessions_app.freeze import frozen_history

    if context.place.compact is None:
        return CommandResult("A history is compacted in a chat: halo chat, or the chat page.", ok=False)
    try:
        history = frozen_history(context.session)
    except OSError as error:
        return CommandResult(f"The session's log can't be read: {error}", ok=False)
    settings = Settings.load(halo_home(), context.session.workspace.paths)
    if cut(history, keep=settings.get("general.compact.keep_messages")) is None:
        return CommandResult("There is nothing to compact yet.", ok=False)
    try:
        return context.place.compact()
    except SessionError as error:
        return CommandResult(f"Not compacted: {error}", ok=False)


def show_session(context: CommandContext) -> CommandResult:
    words = context.argument.split() or ["info"]
    session = context.session
    match words:
        case ["info"]:
            return CommandResult(_info(session, context))
        case ["list"]:
            return CommandResult(_list(session))
        case ["context"]:
            return CommandResult(_context(session))
        case ["output"]:
            return CommandResult(session.output or "No turn of this session has been answered yet.")
        case ["authoring"] | ["authoring", "on" | "off"]:
            return _authoring(context, close=words[-1] == "off")
    return CommandResult(f"Say /session and {VIEWS}.", ok=False)


def _list(session: Session) -> str:
    from sessions_app.selectors import recent_sessions

    return "\n".join(
        f"{row.pk}  {row.agent_id}  {row.title or '(no message yet)'}"
        for row in recent_sessions(workspace=session.workspace, limit=LISTED)
    )


def _info(session: Session, context: CommandContext) -> str:
    from core.texts import counted, moment_words
    from sessions_app import authoring
    from sessions_app.levels import effective_level

    lines = [
        f"session {session.pk}: {session.title or '(no message yet)'}",
        f"agent {session.agent_id} in {session.workspace.path}, directory {session.working_dir}",
        f"access {effective_level(session)}, {counted(session.exchange_count, 'exchange')}, "
        f"{session.context_tokens} tokens in context",
    ]
    if session.authoring_until is not None and authoring.is_open(session, now=context.now):
        lines.append(f"open for authoring until {moment_words(session.authoring_until)}")
    return "\n".join(lines)


def _context(session: Session) -> str:
    return (
        f"{session.context_tokens} tokens in context after the last model call, "
        f"{session.total_output_tokens} written by the model in all."
    )


def _authoring(context: CommandContext, *, close: bool) -> CommandResult:
    from core.texts import moment_words
    from sessions_app import authoring

    session = context.session
    who = {"user": context.user, "may": context.may, "now": context.now}
    try:
        if close:
            closed = authoring.close_authoring(session, **who)
            return CommandResult("Closed for authoring." if closed else "It was not open.", ok=closed)
        until = authoring.open_authoring(session, **who)
    except SessionRefused as error:
        return CommandResult(f"Not opened: {error}", ok=False)
    return CommandResult(
        f"Open for authoring until {moment_words(until)}: the agent's file tools may change the prompt files of "
        f"{session.workspace.path}/.halo. Close it with /session authoring off."
    )
