"""What the engine hands to the extra tools of one turn (``tool_bundles.Host``)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ParamSpec, TypeVar

from agents.turn import AccessLevel
from core.paths import HaloHome
from sessions_app.running_sessions import RunningSessions

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class TurnHost:
    session_id: str
    access: AccessLevel
    team: tuple[str, ...]
    home: HaloHome
    result_chars: int
    sessions: RunningSessions

    def wake(self, session_id: str) -> None:
        self.sessions.wake(session_id)

    def interrupt(self, session_id: str) -> bool:
        return self.sessions.interrupt(session_id)

    async def stop(self, session_id: str) -> None:
        await self.sessions.stop_tree(session_id, by=self.session_id)

    async def call(
        self, function: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Result:
        return await self.sessions.in_pool(function, *args, **kwargs)
