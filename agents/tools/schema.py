"""A tool's schema, description and argument checks, all from its signature and docstring.

The docstring's text up to ``Args:`` is the description; below it, ``name: text`` describes an argument.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import BaseModel

_ARGUMENT = re.compile(r"(\w+): (.+)")


@dataclass(frozen=True)
class ToolSchema:
    """Of one function; a first parameter named ``context`` is ours and not the model's."""

    function: Callable[..., Any]

    @property
    def name(self) -> str:
        return self.function.__name__

    @cached_property
    def documentation(self) -> tuple[str, dict[str, str]]:
        text = inspect.getdoc(self.function) or ""
        description, _, arguments = text.partition("\nArgs:\n")
        described: dict[str, str] = {}
        latest = ""
        for line in arguments.splitlines():
            match = _ARGUMENT.fullmatch(line.strip())
            if match and line.startswith("    ") and not line.startswith("     "):
                latest = match[1]
                described[latest] = match[2]
            elif latest and line.strip():
                described[latest] += " " + line.strip()
        return description.strip(), described

    @property
    def description(self) -> str:
        return self.documentation[0]

    @cached_property
    def takes_context(self) -> bool:
        return next(iter(inspect.signature(self.function).parameters), "") == "context"

    @cached_property
    def model(self) -> type[BaseModel]:
        from pydantic import ConfigDict, Field, create_model

        fields: dict[str, Any] = {}
        parameters = list(inspect.signature(self.function, eval_str=True).parameters.items())
        for name, parameter in parameters[1 if self.takes_context else 0 :]:
            default = ... if parameter.default is inspect.Parameter.empty else parameter.default
            fields[name] = (parameter.annotation, Field(default, description=self.documentation[1].get(name)))
        made: type[BaseModel] = create_model(self.name, __config__=ConfigDict(extra="forbid"), **fields)
        return made

    @cached_property
    def json_schema(self) -> dict[str, Any]:
        schema = self.model.model_json_schema()
        schema.pop("title", None)
        for described in schema.get("properties", {}).values():
            described.pop("title", None)
        schema.setdefault("properties", {})
        return schema

    def checked(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """``arguments`` converted to the function's types; ValueError says what is wrong with which."""
        from pydantic import ValidationError

        try:
            values = self.model.model_validate(arguments)
        except ValidationError as error:
            faults = [f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors()]
            raise ValueError("; ".join(faults)) from None
        return {name: getattr(values, name) for name in type(values).model_fields}
