"""What the engine hands to the extra tools of one turn (``tool_bundles.Host``)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ParamSpec, Protocol, TypeVar

from agents.turn import AccessLevel

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class InPool(Protocol):
    """The engine's database threads: whole functions, connections closed afterwards."""

    async def __call__(
        self, function: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Result: ...


@dataclass(frozen=True, slots=True)
class TurnHost:
    session_id: str
    access: AccessLevel
    team: tuple[str, ...]
    in_pool: InPool

    async def call(
        self, function: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Result:
        return await self.in_pool(function, *args, **kwargs)
