"""Who is offered a bundle's tools, and what they answer where they can't work."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from agents.tools.context import ToolError
from agents.tools.schema import ToolSchema
from core import clock
from core.paths import HaloHome
from sessions_app import queue, tool_bundles
from sessions_app.engine import Engine
from sessions_app.models import Session
from sessions_app.tool_bundles import Bundle, Host
from sessions_app.turn_host import TurnHost
from tests.sessions.models_in_tests import Script, call_tool


def probes(host: Host) -> Sequence[Callable[..., object]]:
    async def probe_title(times: int, context: str = "") -> str:
        """Tell the session's title.

        Args:
            context: What goes ahead of it.
        """
        title = await host.call(lambda: Session.objects.get(pk=host.session_id).title)
        return f"{context}{title * times} at {host.access} with {host.team}"

    def probe_plain() -> str:
        """Say hello."""
        return "hello"

    return [probe_title, probe_plain]


@pytest.fixture
def registered() -> Iterator[Callable[[Bundle], Bundle]]:
    before = dict(tool_bundles._registry)

    def register(bundle: Bundle) -> Bundle:
        tool_bundles.register(bundle)
        return bundle

    yield register
    tool_bundles._registry.clear()
    tool_bundles._registry.update(before)


def host(access: str = "full") -> TurnHost:
    return TurnHost("s", access, (), HaloHome(Path("/nowhere")), 8000, sessions=None)  # type: ignore[arg-type]


def offered(access: str, *names: str) -> list[str]:
    return [tool.__name__ for tool in tool_bundles.tools_for(host(access), names=names)]


NAMES = ("probe_title", "probe_plain")


def test_an_agent_has_those_it_lists(registered: Callable[[Bundle], Bundle]) -> None:
    registered(Bundle(NAMES, probes))
    assert offered("readonly", "probe_plain", "file_read") == ["probe_plain"]
    assert offered("readonly", "file_read") == []


def test_a_gate_brings_all_and_nothing_else_does(registered: Callable[[Bundle], Bundle]) -> None:
    registered(Bundle(NAMES, probes, gate="probe_title"))
    assert offered("full", "probe_title") == list(NAMES)
    assert offered("full", "probe_plain") == []


@pytest.mark.parametrize(
    ("level", "reaching"),
    [
        ("full", ["full"]),
        ("workspace", ["full", "workspace"]),
        ("readonly", ["full", "workspace", "readonly"]),
    ],
)
def test_a_level_is_needed(registered: Callable[[Bundle], Bundle], level: str, reaching: list[str]) -> None:
    registered(Bundle(NAMES, probes, level=level))  # type: ignore[arg-type]
    assert [a for a in ("full", "workspace", "readonly") if offered(a, *NAMES)] == reaching
    in_evaluation = tool_bundles.tools_in_evaluation
    assert [a for a in ("full", "workspace", "readonly") if in_evaluation(names=NAMES, access=a)] == reaching


def test_two_bundles_cannot_have_one_name(registered: Callable[[Bundle], Bundle]) -> None:
    registered(Bundle(NAMES, probes))
    registered(Bundle(NAMES, probes, level="full"))
    with pytest.raises(ValueError, match="probe_plain"):
        registered(Bundle(("probe_plain",), probes))
    assert offered("workspace", *NAMES) == []


async def test_an_evaluation_shows_the_tool_and_refuses_the_call(
    registered: Callable[[Bundle], Bundle],
) -> None:
    registered(Bundle(NAMES, probes))
    (tool,) = tool_bundles.tools_in_evaluation(names=["probe_title"], access="workspace")
    real = ToolSchema(probes(host())[0])
    shown = ToolSchema(tool)
    assert (shown.name, shown.description) == ("probe_title", "Tell the session's title.")
    assert shown.json_schema == real.json_schema
    assert set(shown.json_schema["properties"]) == {"context", "times"}
    with pytest.raises(ToolError, match="probe_title is not available in an evaluation"):
        await tool(times=1)


@pytest.mark.django_db(transaction=True)
def test_a_turn_of_the_engine_has_them(
    session: Session,
    agent: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    registered: Callable[[Bundle], Bundle],
) -> None:
    registered(Bundle(NAMES, probes))
    (agent / "agent.yaml").write_text("name: Helper\ntools: [probe_title]\nteam: [other]\n")
    script = Script(call_tool("probe_title", '{"context": "Title: ", "times": 2}'), "Done.").install(
        monkeypatch
    )
    queue.accept(session=session, text="ha", now=clock.now())
    engine = Engine(home=HaloHome(tmp_path / "home"))
    asyncio.run(engine.work(session.pk))
    engine.close()
    assert "Title: haha at full with ('other',)" in str(script.seen[1][-1])
