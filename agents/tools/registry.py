"""Which tools there are, which of them a session is offered, and how one is called."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from agents.tools.schema import ToolSchema

if TYPE_CHECKING:
    from pydantic_ai.tools import ToolDefinition

    from agents.turn import AccessLevel, View


@dataclass(frozen=True, slots=True)
class Tool:
    """``concurrent``: calls may run beside others of one reply. ``writes``: not offered at ``readonly``.

    ``needs_images``: offered only to models that take images.
    """

    function: Callable[..., Any]
    schema: ToolSchema = field(repr=False)
    concurrent: bool = False
    writes: bool = False
    needs_shell: bool = False
    needs_images: bool = False

    @property
    def name(self) -> str:
        return self.schema.name


@cache
def builtin_tools() -> dict[str, Tool]:
    from agents.tools.file_edit import file_edit
    from agents.tools.file_read import file_read
    from agents.tools.file_write import file_write
    from agents.tools.glob import glob
    from agents.tools.grep import grep
    from agents.tools.listing import file_list
    from agents.tools.shell_exec import shell_exec
    from agents.tools.view_image import view_image
    from agents.tools.web_fetch import web_fetch

    tools = [
        *(
            Tool(function, ToolSchema(function), concurrent=True)
            for function in (file_read, file_list, glob, grep, web_fetch)
        ),
        *(Tool(function, ToolSchema(function), writes=True) for function in (file_write, file_edit)),
        Tool(shell_exec, ToolSchema(shell_exec), needs_shell=True),
        Tool(view_image, ToolSchema(view_image), concurrent=True, needs_images=True),
    ]
    return {tool.name: tool for tool in tools}


def offered_tools(
    *,
    names: Sequence[str],
    access: AccessLevel,
    view: View,
    extra: Sequence[Callable[..., Any]] = (),
    images: bool = True,
) -> dict[str, Tool]:
    """The built-in tools among ``names`` that level, view and model allow, and all of ``extra``."""
    known = builtin_tools()
    offered = {}
    for name in names:
        tool = known.get(name)
        if tool is None or (tool.writes and access == "readonly"):
            continue
        if (tool.needs_shell and view.shell == "none") or (tool.needs_images and not images):
            continue
        offered[name] = tool
    for function in extra:
        schema = ToolSchema(function)
        offered[schema.name] = Tool(function, schema)
    return offered


def definitions(tools: dict[str, Tool]) -> list[ToolDefinition]:
    from pydantic_ai.tools import ToolDefinition

    return [
        ToolDefinition(
            name=tool.name,
            description=tool.schema.description,
            parameters_json_schema=tool.schema.json_schema,
        )
        for tool in tools.values()
    ]
