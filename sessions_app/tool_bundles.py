"""Extra tools of a session's turn: a registry that this floor and the floors above fill. No Django.

``register`` is called in an ``AppConfig.ready``. Which of a bundle's tools a turn is offered, ``agent.yaml``'s
``tools`` and the session's access level decide.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ParamSpec, Protocol, TypeVar, cast, get_args

from agents.tools.context import ToolError
from agents.turn import AccessLevel
from core.paths import HaloHome

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
ToolFunction = Callable[..., Any]

NOT_IN_EVALUATION = "{name} is not available in an evaluation. Answer without it."
_LEVELS: tuple[AccessLevel, ...] = tuple(reversed(get_args(AccessLevel)))


class Host(Protocol):
    """What the engine offers to the tools of one turn."""

    @property
    def session_id(self) -> str: ...

    @property
    def access(self) -> AccessLevel:
        """The level this turn runs at."""

    @property
    def team(self) -> tuple[str, ...]:
        """Agents this turn's agent may delegate to."""

    @property
    def home(self) -> HaloHome: ...

    @property
    def result_chars(self) -> int:
        """How much of a result the model sees."""

    def wake(self, session_id: str) -> None:
        """Something waits in this session's queue: its turn starts, or unwinds softly to take it in."""

    def interrupt(self, session_id: str) -> bool:
        """Abort the turn of a session of the caller's tree; False when none runs."""

    async def stop(self, session_id: str) -> None:
        """Stop a session that the caller started, and all below it, without a report to the caller."""

    async def call(
        self, function: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Result:
        """Run a whole synchronous function, such as one that uses the database, off the event loop."""


@dataclass(frozen=True, slots=True)
class Bundle:
    """Tools that belong together.

    ``build`` makes them for one turn: plain functions or coroutine functions, schema and description from
    signature and docstring. It must not touch the host before a tool is called: an evaluation builds them
    without one. ``level`` is the least access level that is offered them; tools that reach out of the machine
    or into another workspace say ``full``. ``gate`` names the one tool that brings all of them when an agent
    lists it; without a gate each is listed by its own name.
    """

    names: tuple[str, ...]
    build: Callable[[Host], Sequence[ToolFunction]]
    level: AccessLevel = "readonly"
    gate: str = ""

    def listed(self, names: Sequence[str]) -> frozenset[str]:
        """Those of the bundle's tools that an agent with ``tools: names`` has."""
        if self.gate:
            return frozenset(self.names if self.gate in names else ())
        return frozenset(self.names) & frozenset(names)


_registry: dict[tuple[str, ...], Bundle] = {}


def register(bundle: Bundle) -> None:
    """Make its tools known. The same names again replace it; ValueError for a name another bundle has."""
    taken = {name for names in _registry if names != bundle.names for name in names}
    if twice := sorted(taken & set(bundle.names)):
        raise ValueError(f"There is a tool bundle with {', '.join(twice)} already.")
    _registry[bundle.names] = bundle


def known_names() -> frozenset[str]:
    return frozenset(name for names in _registry for name in names)


def tools_for(host: Host, *, names: Sequence[str]) -> list[ToolFunction]:
    """What a session's turn is offered beside the built-in tools."""
    return [tool for bundle in _within(host.access) for tool in _chosen(bundle, names, host)]


def tools_in_evaluation(*, names: Sequence[str], access: AccessLevel) -> list[ToolFunction]:
    """The same tools as the model sees them; called, each answers that an evaluation hasn't got it."""
    nowhere = cast(Host, None)  # building touches no host, and nothing of what is built runs
    return [_unavailable(tool) for bundle in _within(access) for tool in _chosen(bundle, names, nowhere)]


def _within(access: AccessLevel) -> list[Bundle]:
    reached = _LEVELS.index(access)
    return [bundle for bundle in _registry.values() if _LEVELS.index(bundle.level) <= reached]


def _chosen(bundle: Bundle, names: Sequence[str], host: Host) -> list[ToolFunction]:
    listed = bundle.listed(names)
    return [tool for tool in bundle.build(host) if tool.__name__ in listed] if listed else []


def _unavailable(tool: ToolFunction) -> ToolFunction:
    @functools.wraps(tool)
    async def unavailable(**_arguments: Any) -> str:
        raise ToolError(NOT_IN_EVALUATION.format(name=tool.__name__))

    return unavailable
