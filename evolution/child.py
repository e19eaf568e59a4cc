"""One evaluation session, start to end, in a child of the zygote: no row, no database, no Django."""

from __future__ import annotations

import asyncio
import importlib
import signal
import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

from agents.abort import AbortToken
from agents.events import (
    AgentEvent,
    Message,
    StreamDelta,
    SystemNote,
    ThinkingDelta,
    ToolCall,
    TurnError,
    Usage,
)
from agents.history import user_message
from agents.loop import run_turn
from agents.tools.context import WebRules
from agents.turn import Turn, TurnOutcome
from core import atomic, clock
from core.paths import UnsafePathError
from evolution.environment import Keys
from evolution.missing_tools import LEAF
from evolution.phases.context import ChildSpec
from evolution.wire import Answer
from sessions_app import own_bundles, tool_bundles
from sessions_app.limits import context_rules_of
from sessions_app.logs import SessionLog, TurnRecorder
from sessions_app.logs import records as make
from workspaces.agent_yaml import AgentConfig, ModelConfig
from workspaces.compose import Composed, SurfaceError, compose, list_agents
from workspaces.model_choice import ModelUnavailableError, resolve_model
from workspaces.overrides import Surface
from workspaces.publish_lock import SurfaceFiles
from workspaces.surface_tools import surface_tools

LATE = (
    "pydantic_ai.direct",
    "genai_prices.data",
    "agents.providers.codec",
    "agents.providers.failures",
    "agents.providers.offline.model",
    "agents.providers.settings",
    "agents.tools.file_edit",
    "agents.tools.file_read",
    "agents.tools.file_write",
    "agents.tools.glob",
    "agents.tools.grep",
    "agents.tools.listing",
    "agents.tools.shell_exec",
)
"""What a turn imports only when it needs it; the zygote imports it once, by importing this module."""
for _name in LATE:
    importlib.import_module(_name)
own_bundles.register_all()

COMPLETED, FAILED = 0, 1
_SHOWN_ARGUMENTS = 200


def run(spec: ChildSpec, *, keys: Keys) -> Answer:
    """Have the agent of ``spec`` answer the brief on standard input; its final text is also ``spec.output``."""
    brief = sys.stdin.read()
    used: list[Usage] = []
    try:
        composed = compose(
            Surface(SurfaceFiles(spec.surface), spec.global_folder),
            spec.agent_id,
            workspace_root=spec.workspace,
            working_dir=spec.working_dir,
        )
        turn, log = _turn(spec, composed, brief, keys, used.append)
    except (SurfaceError, ModelUnavailableError, UnsafePathError) as error:
        return _answer(spec, TurnOutcome("failed", "", str(error)))
    try:
        outcome = asyncio.run(_abortable(turn))
    finally:
        log.end_turn()
    spent = (sum(call.input_tokens for call in used), sum(call.output_tokens for call in used))
    return replace(_answer(spec, outcome), spent=spent)


async def _abortable(turn: Turn) -> TurnOutcome:
    abort = AbortToken()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, abort.abort)
    return await run_turn(turn, abort=abort)


def _turn(
    spec: ChildSpec, composed: Composed, brief: str, keys: Keys, note_usage: Callable[[Usage], None]
) -> tuple[Turn, SessionLog]:
    message = user_message(brief)
    history: list[Message] = [message]
    spec.session_folder.mkdir(parents=True, exist_ok=True)
    log = SessionLog(spec.session_folder, LEAF)
    log.load()
    row_id = make.new_row_id()
    at = clock.stamp(clock.now())
    row = make.user_row(row_id=row_id, at=at, stamp=at, text=brief)
    log.append(ui=[make.add(row)], raw=[make.message(message, [row_id])])
    recorder = TurnRecorder(log, history, [[row_id]], ui_chars=spec.limits.tool_result_ui_chars)

    def emit(event: AgentEvent) -> None:
        recorder.record(event)
        if isinstance(event, Usage):
            note_usage(event)
        _show(event)

    agent = composed.agent
    tools = agent.tools if spec.tools is None else spec.tools
    turn = Turn(
        agent_id=agent.id,
        session_id=spec.session_folder.name,
        system_prompt=composed.system_prompt,
        history=history,
        model=spec.model
        or resolve_model(answering_agent(spec, composed), keys.settings, environment=keys.environment),
        tools=tools,
        extra_tools=[
            *surface_tools(composed, names=tools, access=spec.access),
            *tool_bundles.tools_in_evaluation(names=tools, access=spec.access),
        ],
        access=spec.access,
        view=spec.view,
        web=WebRules(refusal=tool_bundles.NOT_IN_EVALUATION.format(name="web_fetch")),
        emit=emit,
        limits=spec.limits,
        context=context_rules_of(keys.settings, agent),
    )
    return turn, log


def answering_agent(spec: ChildSpec, composed: Composed) -> AgentConfig:
    """The agent whose model is asked: an internal one without a model of its own takes the judged agent's."""
    agent = composed.agent
    if agent.internal and not agent.model.provider:
        agent = _named(composed.agents, spec.model_like) or agent
    return agent if spec.reach is None else _within(agent, spec, spec.reach)


def _within(agent: AgentConfig, spec: ChildSpec, reach: Path) -> AgentConfig:
    """``agent`` with its model where ``reach`` says; one that is new there asks the judged agent's."""
    known = list_agents(Surface(SurfaceFiles(reach), spec.global_folder), [])
    trusted = _named(known, agent.id) or _named(known, spec.model_like)
    place = ModelConfig() if trusted is None else trusted.model
    if (agent.model.provider, agent.model.endpoint) == (place.provider, place.endpoint):
        return agent
    return replace(agent, model=place)


def _named(agents: Iterable[AgentConfig], agent_id: str) -> AgentConfig | None:
    return next((agent for agent in agents if agent.id == agent_id and not agent.broken), None)


def _show(event: AgentEvent) -> None:
    """Progress on standard output, which is the attempt's log; every line is a sign of life as well."""
    match event:
        case StreamDelta(text=text) | ThinkingDelta(text=text):
            sys.stdout.write(text)
        case ToolCall():
            arguments = ", ".join(f"{name}={value!r}" for name, value in event.arguments.items())
            sys.stdout.write(f"\n[{event.tool}] {arguments[:_SHOWN_ARGUMENTS]}\n")
        case SystemNote(text=text) | TurnError(text=text):
            sys.stdout.write(f"\n{text}\n")
        case _:
            return
    sys.stdout.flush()


def _answer(spec: ChildSpec, outcome: TurnOutcome) -> Answer:
    if outcome.status == "completed":
        if spec.output is not None:
            atomic.write_text(spec.output, outcome.text)
        return Answer(COMPLETED, outcome.text)
    error = outcome.error or f"The session was {outcome.status}."
    sys.stdout.write(f"\n{error}\n")
    return Answer(FAILED, outcome.text, error)
