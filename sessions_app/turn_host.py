"""What the engine hands to the extra tools of one turn (``tool_bundles.Host``)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ParamSpec, Protocol, TypeVar

from agents.turn import AccessLevel
from core.paths import HaloHome

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class InPool(Protocol):
    """The engine's database threads: whole functions, connections closed afterwards."""

    async def __call__(
        self, function: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Result: ...


class Works(Protocol):
    """The engine, as far as tools need it."""

    def wake(self, session_id: str) -> None: ...

    def interrupt(self, session_id: str) -> bool: ...

    async def stop_tree(self, session_id: str, *, by: str = "") -> None: ...

    async def in_pool(
        self, function: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Result: ...


@dataclass(frozen=True, slots=True)
class TurnHost:
    session_id: str
    access: AccessLevel
    team: tuple[str, ...]
    home: HaloHome
    result_chars: int
    engine: Works

    def wake(self, session_id: str) -> None:
        self.engine.wake(session_id)

    def interrupt(self, session_id: str) -> bool:
        return self.engine.interrupt(session_id)

    async def stop(self, session_id: str) -> None:
        await self.engine.stop_tree(session_id, by=self.session_id)

    async def call(
        self, function: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Result:
        return await self.engine.in_pool(function, *args, **kwargs)
