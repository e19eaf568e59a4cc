"""The tool calls of one reply: run, each result an event and a save point the moment it is there."""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from itertools import groupby
from typing import TYPE_CHECKING, Any

from agents import history as wire
from agents.abort import SHUTDOWN_GRACE_SEC, Aborted, AbortToken
from agents.events import SavePoint, ToolCall, ToolResult
from agents.providers.codec import arguments_of
from agents.tools.context import KILL_GRACE_SEC, ToolContext, ToolError, ToolLimits
from agents.tools.view_image import ImageResult
from core.texts import encodable

if TYPE_CHECKING:
    from agents.tools.registry import Tool
    from agents.turn import Turn

logger = logging.getLogger(__name__)

WARN_AT = 3
END_AT = 5
NOT_STARTED = "This call was not started: a new message arrived first. Repeat it if it is still wanted."
REPEATED = (
    "\n\n[Warning: this is the same call with the same arguments for the {count}th time in a row. "
    "Its result will not change; do something else. At {end} the turn ends.]"
)


@cache
def _threads() -> ThreadPoolExecutor:
    """Shared by all turns of this process; a thread outlives its tool, as ``--die-with-parent`` needs."""
    return ThreadPoolExecutor(max_workers=64, thread_name_prefix="tool")


# A forked process would find the pool without its threads, and wait for them forever.
os.register_at_fork(after_in_child=_threads.cache_clear)


@dataclass(frozen=True, slots=True)
class Result:
    text: str
    is_error: bool = False
    interrupted: bool = False
    image: ImageResult | None = None


class ToolRunner:
    """Runs calls for one turn and counts repetitions. A tool that isn't offered is an error result."""

    def __init__(self, turn: Turn, tools: dict[str, Tool], abort: AbortToken) -> None:
        self._turn = turn
        self._tools = tools
        self._abort = abort
        self._latest_call = ""
        self._in_a_row = 0
        self._context = ToolContext(
            view=turn.view,
            limits=ToolLimits(
                result_chars=turn.limits.tool_result_chars,
                shell_timeout_sec=turn.limits.shell_timeout_sec,
                shell_output_bytes=turn.limits.shell_output_bytes,
                sandbox_memory_mb=turn.limits.sandbox_memory_mb,
                sandbox_processes=turn.limits.sandbox_processes,
                sandbox_file_mb=turn.limits.sandbox_file_mb,
            ),
            is_aborted=lambda: abort.is_set,
            on_abort=abort.on_abort,
            kill_grace_sec=lambda: SHUTDOWN_GRACE_SEC if abort.for_shutdown else KILL_GRACE_SEC,
            secret_env=turn.secret_env,
            session_id=turn.session_id,
            web=turn.web,
        )

    async def run(self, calls: list[wire.Part], *, number: int) -> bool:
        """Run ``calls``; neighbours that may run at once do. True: stopped softly, the rest was not started.

        Raises Aborted once every running call has landed. ``self.is_stuck`` afterwards: the turn must end.
        """
        for call in calls:
            self._turn.emit(
                ToolCall(number, call["tool_call_id"], call["tool_name"], arguments_of(call) or {})
            )
        recorder = _Recorder(self._turn)
        waiting = [list(group) for _, group in _in_groups(calls, self._tools)]
        while waiting:
            group = waiting.pop(0)
            counts = [self._count(call) for call in group]
            await asyncio.gather(
                *(self._one(call, count, recorder) for call, count in zip(group, counts, strict=True))
            )
            if self._abort.is_set:
                raise Aborted
            if self._turn.wants_interrupt():
                for call in (call for group in waiting for call in group):
                    recorder.record(call, Result(NOT_STARTED, is_error=True, interrupted=True))
                return True
        return False

    @property
    def is_stuck(self) -> bool:
        return self._in_a_row >= END_AT

    def _count(self, call: wire.Part) -> int:
        key = call["tool_name"] + json.dumps(call.get("args"), sort_keys=True, default=str)
        self._in_a_row = self._in_a_row + 1 if key == self._latest_call else 1
        self._latest_call = key
        return self._in_a_row

    async def _one(self, call: wire.Part, count: int, recorder: _Recorder) -> None:
        if count >= END_AT:
            text = (
                f"Not run: the same call with the same arguments {count} times in a row. The turn ends here."
            )
            recorder.record(call, Result(text, is_error=True))
            return
        result = await self._result(call)
        if count >= WARN_AT:
            warning = REPEATED.format(count=count, end=END_AT)
            result = replace(result, text=result.text + warning)
        recorder.record(call, result)

    async def _result(self, call: wire.Part) -> Result:
        tool = self._tools.get(call["tool_name"])
        if tool is None:
            offered = ", ".join(self._tools) or "none"
            return Result(f"There is no tool {call['tool_name']!r} in this session. Tools: {offered}.", True)
        arguments = arguments_of(call)
        if arguments is None:
            return Result("The arguments are not a JSON object; call again with one.", True)
        try:
            arguments = tool.schema.checked(arguments)
        except ValueError as error:
            return Result(f"Wrong arguments for {tool.name}: {error}", True)
        try:
            found = await self._call(tool, arguments)
            if isinstance(found, ImageResult):
                return Result(found.text, interrupted=self._abort.is_set, image=found)
            return Result(str(found), interrupted=self._abort.is_set)
        except ToolError as error:
            return Result(str(error), True, interrupted=self._abort.is_set)
        except Aborted:
            return Result(wire.CUT_SHORT, is_error=True, interrupted=True)
        except Exception as error:  # a tool that raises must not end the process
            logger.warning("Tool %s failed", tool.name, exc_info=True)
            return Result(f"{tool.name} failed: {type(error).__name__}: {error}", True)

    async def _call(self, tool: Tool, arguments: dict[str, Any]) -> object:
        if tool.schema.takes_context:
            arguments = {"context": self._context, **arguments}
        if inspect.iscoroutinefunction(tool.function):
            return await self._abort.guard(tool.function(**arguments))
        if self._abort.is_set:
            raise Aborted
        loop = asyncio.get_running_loop()
        # not cancelled at an abort: the tool sees the token itself and lands, its command killed
        return await loop.run_in_executor(_threads(), lambda: tool.function(**arguments))


class _Recorder:
    """Puts results into the history: the first one as a new message, every further one as one more part."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._position: int | None = None

    def record(self, call: wire.Part, result: Result) -> None:
        turn = self._turn
        call_id, tool = call["tool_call_id"], call["tool_name"]
        whole = encodable(result.text)  # a file's name need not be UTF-8; every later call would fail by it
        text = cut(whole, turn.limits.tool_result_chars)
        part = wire.tool_result_part(call_id=call_id, tool=tool, text=text, is_error=result.is_error)
        if result.image is not None:
            image = {"kind": "binary", "media_type": result.image.media_type, "data": result.image.data}
            part["content"] = [text, image]
        if self._position is None:
            self._position = len(turn.history)
            turn.history.append({"kind": "request", "parts": [part]})
            save = SavePoint(messages=(turn.history[self._position],))
        else:
            turn.history[self._position] = wire.with_part(turn.history[self._position], part)
            save = SavePoint(part=part, of=self._position)
        turn.emit(
            ToolResult(
                call_id,
                tool,
                text,
                is_error=result.is_error,
                interrupted=result.interrupted,
                shown=cut(whole, turn.limits.tool_result_ui_chars),
            )
        )
        turn.emit(save)


def cut(text: str, limit: int) -> str:
    """``text`` within ``limit`` characters or its beginning and end, with a line about what lies between."""
    if len(text) <= limit:
        return text
    head, tail = limit - limit // 4, limit // 4
    note = (
        f"\n[... {len(text) - limit:,} of {len(text):,} characters left out here; "
        "ask for less at once: a range, a narrower pattern, or output sent to a file and read in parts ...]\n"
    )
    return text[:head] + note + text[len(text) - tail :]


def _in_groups(
    calls: list[wire.Part], tools: dict[str, Tool]
) -> Iterable[tuple[object, Iterable[wire.Part]]]:
    """Neighbouring calls that may run at once share a key; every other call has a key of its own."""
    keyed: list[tuple[object, wire.Part]] = []
    for position, call in enumerate(calls):
        tool = tools.get(call["tool_name"])
        keyed.append(("together" if tool is not None and tool.concurrent else position, call))
    for key, pairs in groupby(keyed, key=lambda pair: pair[0]):
        yield key, [call for _, call in pairs]
