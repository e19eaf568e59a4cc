"""Compaction by the agent itself: it summarises its own history, and the summary takes the history's place.

The request repeats the system prompt, the tools and the beginning of the history as they were sent before, so
that a provider's prompt cache holds all of it. What goes and what stays is decided in ``compaction``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agents import history as wire
from agents.abort import Aborted
from agents.compaction import Cut, Outcome, cut
from agents.context_size import context_tokens
from agents.errors import CallFailed
from agents.events import HistoryReplaced, Message, SystemNote

if TYPE_CHECKING:
    from agents.model_call import ModelCaller
    from agents.turn import Turn

ASK = (
    "# Summarise this conversation\n\n"
    "It has become too long. Write down what somebody needs who goes on with it and can't read it any more: "
    "what was asked for, in which words where they matter; what was decided, and why; what was done, with the "
    "names of files, commands and figures; what was found out; what is still to do, and what comes next. "
    "Corrections and wishes of the person belong in it word for word. Answer with the summary alone, in the "
    "language of the conversation, and call no tool."
)
WORTH = 0.1
"""The part of ``maxTokens`` that must be won for a compaction nobody asked for; else it would never end."""


@dataclass(slots=True)
class Compactor:
    """Compacts the history of one turn. ``ask`` makes a quiet model call and counts it."""

    turn: Turn
    caller: ModelCaller
    ask: Callable[[Sequence[Message]], Awaitable[Message]]
    _gave_up: bool = False

    async def when_due(self) -> None:
        """Before a model call: compact when the context has reached ``compressAt``. Raises Aborted.

        What failed once isn't tried again in this turn: each try costs as much as a call.
        """
        rules = self.turn.context
        window = rules.max_tokens or self.caller.context_window
        if not window or self._gave_up:
            return
        held = context_tokens(self.turn.history, system_prompt=self.turn.system_prompt)
        if held < rules.compress_at * window:
            return
        parts = cut(self.turn.history, keep=rules.keep_messages)
        if parts is None or parts.gain < WORTH * window:
            return
        self._gave_up = await self._compact(parts) != "compacted"

    async def now(self) -> Outcome:
        """On request. Announced only when there is something to compact. Raises Aborted."""
        parts = cut(self.turn.history, keep=self.turn.context.keep_messages)
        return "nothing_to_compact" if parts is None else await self._compact(parts)

    async def _compact(self, parts: Cut) -> Outcome:
        """Announce, ask, replace; whatever happens, an outcome line closes what was announced."""
        emit = self.turn.emit
        count = len(parts.head)
        emit(SystemNote(f"Compacting the conversation: {count} messages are being summarised."))
        seconds = self.turn.context.summarize_timeout_sec
        try:
            async with asyncio.timeout(seconds):
                summary = await self.ask([*parts.head, wire.user_message(ASK)])
        except (Aborted, asyncio.CancelledError):
            emit(SystemNote("Compaction was stopped; the conversation is unchanged."))
            raise
        except TimeoutError:
            return self._failed(f"no summary within {seconds:g} s (general.compact.summarize_timeout_sec)")
        except CallFailed as failure:
            return self._failed(failure.words)
        text = wire.message_text(summary).strip()
        if not text:
            emit(SystemNote("Compaction: the model produced no summary; the conversation is unchanged."))
            return "nothing_produced"
        shorter = parts.joined(text)
        self.turn.history[:] = shorter
        emit(HistoryReplaced(tuple(shorter), "compacted", compacted=True))
        emit(
            SystemNote(
                f"Compacted: {count} messages became a summary, the last {len(parts.tail)} stand as they were."
            )
        )
        return "compacted"

    def _failed(self, why: str) -> Outcome:
        self.turn.emit(SystemNote(f"Compaction failed; the conversation is unchanged: {why}"))
        return "failed"
