"""What the loop adds to a model call: history of 200 messages, a model that answers at once, one tool call each."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from bench.measures import Measure, percentiles

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic_ai.models.function import AgentInfo, DeltaToolCalls

MESSAGES = 200
CALLS = 60


def measure() -> list[Measure]:
    """Between the end of one model call and the next one's start, on the clock and on the processor."""
    from pydantic_ai.models.function import DeltaToolCall, FunctionModel

    times: list[tuple[float, float]] = []
    processor: list[tuple[float, float]] = []

    async def answer(messages: list[Any], info: AgentInfo) -> AsyncIterator[DeltaToolCalls | str]:
        entered, busy = time.perf_counter(), time.process_time()
        if len(times) == CALLS:
            yield "done"
        else:
            arguments = f'{{"number": {len(times)}}}'
            yield {0: DeltaToolCall(name="nothing", json_args=arguments, tool_call_id=f"call-{len(times)}")}
        times.append((entered, time.perf_counter()))
        processor.append((busy, time.process_time()))

    with TemporaryDirectory() as folder, _model(FunctionModel(stream_function=answer)):
        asyncio.run(_turn(Path(folder)))
    return [
        Measure(
            what=f"what the loop adds to a model call, history of {MESSAGES} messages",
            unit="ms",
            figures=percentiles(_gaps(times), scale=1e3),
            at_most={"p50": 5.0},
        ),
        Measure(what="of it: on the processor", unit="ms", figures=percentiles(_gaps(processor), scale=1e3)),
    ]


def _gaps(spans: list[tuple[float, float]]) -> list[float]:
    """Seconds from the end of each span to the start of the next."""
    return [later[0] - earlier[1] for earlier, later in pairwise(spans)]


async def _turn(folder: Path) -> None:
    from agents import history as wire
    from agents.abort import AbortToken
    from agents.loop import run_turn
    from agents.turn import ModelChoice, Turn
    from agents.views import full_view

    async def nothing(number: int) -> str:
        """Do nothing."""
        return f"nothing {number}"

    history = []
    for number in range(MESSAGES // 2):
        history += [wire.user_message(f"question {number} " * 20)]
        history += [wire.reply_message([wire.text_part(f"answer {number} " * 40)])]
    turn = Turn(
        agent_id="bench",
        session_id="bench",
        system_prompt="Be quick.",
        history=[*history, wire.user_message("go")],
        model=ModelChoice(provider="bench"),
        tools=(),
        access="full",
        view=full_view(folder),
        emit=lambda _event: None,
        extra_tools=(nothing,),
    )
    outcome = await run_turn(turn, abort=AbortToken())
    assert outcome.status == "completed", outcome


@contextmanager
def _model(model: Any) -> Iterator[None]:
    with patch("agents.providers.build_model", return_value=model):
        yield
