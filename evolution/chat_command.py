"""``/evo [hint]`` in a chat: one system line for an answer."""

from __future__ import annotations

from evolution.errors import Refused
from evolution.models import EvolutionRun
from evolution.permissions import USE_FULL_ACCESS
from sessions_app import commands
from sessions_app.commands import CommandContext, CommandResult, Needs


def register() -> None:
    commands.register(
        "evo",
        ask,
        usage="/evo [hint]: have this conversation examined for a change of the agent's prompts",
        needs=Needs(permission=USE_FULL_ACCESS, root=True),
    )


def ask(context: CommandContext) -> CommandResult:
    from evolution.enqueue import enqueue  # every command registers this one, few need what it imports

    try:
        outcome = enqueue(
            session=context.session,
            hint=context.argument,
            requested_by=context.user,
            trigger=EvolutionRun.Trigger.NOTE,
            now=context.now,
        )
    except Refused as refusal:
        return CommandResult(f"Not queued: {refusal}", ok=False)
    if not outcome.created:
        return CommandResult(f"run-{outcome.run_id} waits already with the same hint.")
    return CommandResult(f"Queued as run-{outcome.run_id}. The conversation goes on as it is.")
