"""Memory of a process that works sessions, in rest after 1,000 of them were used."""

from __future__ import annotations

import asyncio
import gc
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from bench import sample
from bench.measures import Measure

if TYPE_CHECKING:
    from sessions_app.models import Session

USED = 1_000
WARM = 100
ANSWER = "a" * 4_000


def measure() -> list[Measure]:
    """One turn in each of 1,100 sessions, in one engine; what the last 1,000 left behind."""
    sample.set_up()
    from pydantic_ai.models.function import FunctionModel

    from core.paths import halo_home
    from sessions_app.engine import Engine

    async def answer(_messages: list[Any], _info: Any) -> AsyncIterator[str]:
        yield ANSWER

    like = sample.conversation()
    engine = Engine(home=halo_home())
    with patch("agents.providers.build_model", return_value=FunctionModel(stream_function=answer)):
        asyncio.run(_use(engine, like, WARM))
        before = _resident()
        asyncio.run(_use(engine, like, USED))
        after = _resident()
    engine.close()
    return [
        Measure(
            what=f"memory in rest after {USED} sessions were used, above that after {WARM}",
            unit="MB",
            figures={"growth": after - before, "rss": after},
            at_most={"growth": 5.0},
            note=f"a turn with an answer of {len(ANSWER)} characters in each; flat is called what grows by at most "
            "5 kB a session",
        )
    ]


async def _use(engine: Any, like: Session, count: int) -> None:
    for _ in range(count):
        session_id = await asyncio.to_thread(_asked, like)
        outcome = await engine.work(session_id)
        assert outcome is not None and outcome.status == "completed", outcome


def _asked(like: Session) -> str:
    """A new session of the same agent, with a question that waits."""
    from django.db import connections

    from core.db.clock import database_now
    from sessions_app import queue
    from sessions_app.create import create_session

    now = database_now()
    session = create_session(
        workspace=like.workspace,
        agent_id=like.agent_id,
        agent_name=like.agent_name,
        access_level="full",
        now=now,
    )
    queue.accept(session=session, text="question", now=now)
    connections.close_all()
    return session.pk


def _resident() -> float:
    """Megabytes of this process, after a collection."""
    gc.collect()
    match = re.search(r"^VmRSS:\s+(\d+) kB", Path("/proc/self/status").read_text(), re.MULTILINE)
    return int(match[1]) / 1024 if match else 0.0
