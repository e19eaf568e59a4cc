"""One turn: ask the model, run its tool calls, ask again, until it answers, fails or is stopped.

The director. It knows the order of things and the table "Errors and retries"; the call itself is in
``model_call``, running tools in ``tool_run``, what a failure is in ``providers.failures``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from agents import history as wire
from agents.abort import Aborted, AbortToken
from agents.compaction import Outcome as Compaction
from agents.compaction import compact_locally, cut
from agents.errors import CallFailed, TurnFailed
from agents.events import (
    AgentDone,
    AgentStart,
    CallDiscarded,
    Complete,
    HistoryReplaced,
    Message,
    SavePoint,
    SystemNote,
    TurnError,
    Usage,
)
from agents.model_call import ModelCaller
from agents.repair import repair
from agents.summary import Compactor
from agents.tool_run import END_AT, ToolRunner
from agents.tools.registry import Tool, definitions, offered_tools
from agents.turn import Turn, TurnOutcome


async def run_turn(turn: Turn, *, abort: AbortToken) -> TurnOutcome:
    """Work off the message that ends ``turn.history``. Every failure is an outcome, never an exception.

    The first event is ``agent_start``, the last ``complete``; in between, ``turn.history`` and the
    save points agree at every moment.
    """
    return await _TurnLoop(turn, abort).run()


async def compact_now(turn: Turn, *, abort: AbortToken) -> tuple[Compaction, str]:
    """Compact ``turn.history`` without a turn; what came of it, and the reason when it failed before its start.

    Every failure is an outcome, never an exception. Nothing is emitted when there is nothing to compact.
    """
    return await _TurnLoop(turn, abort).compact()


class _TurnLoop:
    def __init__(self, turn: Turn, abort: AbortToken) -> None:
        self._turn = turn
        self._abort = abort
        self._calls = 0
        self._used = Usage(0, 0)

    async def run(self) -> TurnOutcome:
        turn = self._turn
        turn.emit(AgentStart(turn.agent_id))
        try:
            outcome = await self._work()
        except Aborted:
            self._replace_history(repair(turn.history), "repaired after an abort")
            outcome = TurnOutcome("aborted", "")
        except asyncio.CancelledError:
            self._abort.abort()  # commands that run in threads end with the turn
            raise
        except TurnFailed as error:
            text = f"Agent {turn.agent_id}: {error.text}"
            turn.emit(TurnError(error.code, text))
            outcome = TurnOutcome("failed", "", text)
        turn.emit(AgentDone(turn.agent_id))
        turn.emit(Complete(outcome.status, outcome.text, self._calls, self._used))
        return outcome

    async def compact(self) -> tuple[Compaction, str]:
        turn = self._turn
        self._replace_history(repair(turn.history), "repaired")
        if cut(turn.history, keep=turn.context.keep_messages) is None:
            return "nothing_to_compact", ""
        try:
            caller, _ = self._caller()
            async with caller.model:
                return await self._compactor(caller).now(), ""
        except Aborted:
            return "stopped", ""
        except TurnFailed as error:
            return "failed", f"Agent {turn.agent_id}: {error.text}"

    def _caller(self) -> tuple[ModelCaller, dict[str, Tool]]:
        """The model, and the tools it is offered. Raises ModelNotUsable."""
        turn = self._turn
        caller = ModelCaller(turn)
        tools = offered_tools(
            names=turn.tools,
            access=turn.access,
            view=turn.view,
            extra=turn.extra_tools,
            images=caller.takes_images,
        )
        caller.offer(definitions(tools))
        return caller, tools

    def _compactor(self, caller: ModelCaller) -> Compactor:
        return Compactor(self._turn, caller, lambda messages: self._ask(caller, messages))

    async def _work(self) -> TurnOutcome:
        turn = self._turn
        self._replace_history(repair(turn.history), "repaired")
        caller, tools = self._caller()
        runner = ToolRunner(turn, tools, self._abort)
        compactor = self._compactor(caller)
        async with caller.model:
            while True:
                await compactor.when_due()
                reply = await self._reply(caller)
                calls = wire.tool_calls(reply)
                if not calls:
                    return TurnOutcome("completed", wire.message_text(reply))
                if await runner.run(calls, number=self._calls):
                    return TurnOutcome("interrupted", "")
                if runner.is_stuck:
                    raise TurnFailed(
                        "repeated_call",
                        f"Stopped after the same tool call {END_AT} times in a row.",
                    )

    async def _reply(self, caller: ModelCaller) -> Message:
        """One finished model call, retried as the table says; saved."""
        retries = _Retries(self._turn, self._abort)
        while True:
            if self._calls >= self._turn.limits.max_model_calls:
                raise TurnFailed(
                    "model_calls_spent",
                    f"Stopped after {self._calls} model calls in one turn "
                    "(setting general.session.max_model_calls). Send a message to go on.",
                )
            self._calls += 1
            try:
                reply = await self._abort.guard(caller.call(self._calls))
            except Aborted:
                ended_by_shutdown = self._abort.for_shutdown
                marker = wire.PARTIAL_SHUTDOWN if ended_by_shutdown else wire.PARTIAL_ABORTED
                self._keep_partial(caller.partial_text, marker)
                raise
            except CallFailed as failure:
                replacement = retries.mend(failure)
                if replacement is None and not retries.may_wait(failure):
                    self._keep_partial(caller.partial_text, wire.PARTIAL_FAILED)
                    raise TurnFailed(
                        f"model_{failure.kind}", _given_up(self._turn, failure, retries)
                    ) from failure
                if caller.has_streamed:
                    self._turn.emit(CallDiscarded(self._calls, failure.words))
                if replacement is None:
                    await retries.wait(failure)
                else:
                    self._replace_history(*replacement, compacted=failure.kind == "context")
                    self._turn.emit(SystemNote(f"{failure.words} Trying again: {replacement[1]}."))
                continue
            self._save_reply(reply)
            return reply

    async def _ask(self, caller: ModelCaller, messages: Sequence[Message]) -> Message:
        """A reply beside the conversation, tried again after the failures that pass. Raises CallFailed."""
        retries = _Retries(self._turn, self._abort)
        while True:
            self._calls += 1
            try:
                reply = await self._abort.guard(caller.ask_quietly(messages))
            except CallFailed as failure:
                if not retries.may_wait(failure):
                    raise
                await retries.wait(failure)
                continue
            self._count(reply)
            return reply

    def _save_reply(self, reply: Message) -> None:
        if reply["parts"]:
            self._turn.history.append(reply)
            self._turn.emit(SavePoint(messages=(reply,)))
        self._count(reply)

    def _count(self, reply: Message) -> None:
        usage = reply.get("usage", {})
        spent = Usage(
            usage.get("input_tokens", 0),
            usage.get("output_tokens", 0),
            usage.get("cache_read_tokens", 0),
            usage.get("cache_write_tokens", 0),
        )
        self._used = Usage(
            self._used.input_tokens + spent.input_tokens,
            self._used.output_tokens + spent.output_tokens,
            self._used.cache_read_tokens + spent.cache_read_tokens,
            self._used.cache_write_tokens + spent.cache_write_tokens,
        )
        self._turn.emit(spent)

    def _keep_partial(self, text: str, marker: str) -> None:
        if text:
            message = wire.reply_message([wire.text_part(text + marker)])
            self._turn.history.append(message)
            self._turn.emit(SavePoint(messages=(message,)))

    def _replace_history(self, messages: Sequence[Message], reason: str, *, compacted: bool = False) -> None:
        """Tell of a changed history; one that stayed the same is no event."""
        history = self._turn.history
        if len(messages) == len(history) and all(a is b for a, b in zip(messages, history, strict=True)):
            return
        history[:] = messages
        self._turn.emit(HistoryReplaced(tuple(messages), reason, compacted))


class _Retries:
    """What has been tried for one model call."""

    def __init__(self, turn: Turn, abort: AbortToken) -> None:
        self._turn = turn
        self._abort = abort
        self._failures = 0
        self._mended: set[str] = set()

    @property
    def tries(self) -> int:
        return self._failures + 1

    def mend(self, failure: CallFailed) -> tuple[list[Message], str] | None:
        """A history that may pass where this one failed, and why; None: nothing (more) to mend."""
        history = self._turn.history
        if failure.kind == "context":
            compacted = compact_locally(history)
            return None if compacted is None else (compacted, "compacted, older parts were left out")
        if failure.kind in self._mended:
            return None
        self._mended.add(failure.kind)
        if failure.kind == "unpaired":
            return repair(history), "repaired"
        if failure.kind == "image" and wire.has_images(history):
            return wire.without_images(history), "images were replaced by text"
        return None

    def may_wait(self, failure: CallFailed) -> bool:
        return failure.kind in ("overload", "connection") and self.tries < self._turn.retries.tries

    async def wait(self, failure: CallFailed) -> None:
        self._failures += 1
        delay = self._turn.retries.delay(failure, self._failures)
        self._turn.emit(
            SystemNote(
                f"{failure.words} Trying again in {delay:.0f} s ({self.tries} of {self._turn.retries.tries})."
            )
        )
        await self._abort.sleep(delay)


def _given_up(turn: Turn, failure: CallFailed, retries: _Retries) -> str:
    model = f"{turn.model.provider} {turn.model.id}".strip()
    tried = f" after {retries.tries} tries" if retries.tries > 1 else ""
    said = f"The model call to {model} failed{tried}: {failure.words}"
    if failure.kind != "account" or turn.model.provider == "offline":
        return said
    key = f"{turn.model.provider}.secrets.api_key"
    return f"{' '.join(said.split())} (Settings: model.id in agent.yaml; the key in {key}.)"
