"""Scripted replies, for tests only: switched on by ``model.id: script:<path>`` and by nothing else.

The file is YAML, a list of steps. A model call takes the first unused step whose ``when`` occurs in the
user's message; when none is left, the rule engine answers. What was used is kept beside the script in
``<path>.used``, so that several processes share one script.

    - when: "# Brief: draft"      # optional
      times: 2                    # optional, 1; 0: as often as it is asked
      delay: 0.5                  # seconds before anything else
      status: 429                 # an HTTP error of the provider,
      body: "slow down"           #   with these words
      retry_after: 1              #   and this Retry-After
      disconnect: true            # the connection fails before an answer
      text: "Hello there"         # a reply,
      torn: true                  #   cut off by a failing connection after its text
      calls:                      # tool calls; {Patch} is the brief's value of that label
        - tool: file_write
          arguments: {path: "{Patch}", content: "..."}
"""

from __future__ import annotations

import asyncio
import fcntl
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from pydantic_ai.exceptions import ModelConnectionError, ModelHTTPError

from agents.errors import ModelNotUsable
from agents.providers.offline.brief import parse
from agents.providers.offline.steps import Call

PREFIX = "script:"
_MODEL = "offline script"
_LABEL = re.compile(r"\{([A-Z][A-Za-z ]{0,30})\}")


@dataclass(frozen=True, slots=True)
class Step:
    when: str = ""
    times: int = 1
    delay: float = 0.0
    status: int = 0
    body: str = ""
    retry_after: float | None = None
    disconnect: bool = False
    text: str = ""
    torn: bool = False
    calls: tuple[dict[str, Any], ...] = field(default=())

    async def wait(self) -> None:
        if self.delay:
            await asyncio.sleep(self.delay)

    def failure(self) -> Exception | None:
        if self.status:
            return ModelHTTPError(self.status, _MODEL, self.body, retry_after=self.retry_after)
        return ModelConnectionError(_MODEL, self.body or "connection refused") if self.disconnect else None

    def tear(self) -> Exception | None:
        return ModelConnectionError(_MODEL, self.body or "the stream broke off") if self.torn else None

    def said(self, message: str) -> str | tuple[Call, ...]:
        if not self.calls:
            return self.text
        brief = parse(message)
        labels = {} if brief is None else {k: v for part in brief.sections for k, v in part.fields.items()}
        return tuple(Call(call["tool"], _filled(call.get("arguments", {}), labels)) for call in self.calls)


@dataclass(frozen=True, slots=True)
class Script:
    path: Path
    steps: tuple[Step, ...]

    def take(self, message: str) -> Step | None:
        with Path(f"{self.path}.used").open("a+") as used:
            fcntl.flock(used, fcntl.LOCK_EX)
            used.seek(0)
            taken = used.read().split()
            for number, step in enumerate(self.steps):
                if step.when in message and (not step.times or taken.count(str(number)) < step.times):
                    used.write(f"{number}\n")
                    return step
        return None


def load(model_id: str) -> Script | None:
    """None unless the id asks for a script. Raises ModelNotUsable when the file isn't one."""
    if not model_id.startswith(PREFIX):
        return None
    path = Path(model_id.removeprefix(PREFIX))
    try:
        steps = yaml.safe_load(path.read_text(encoding="utf-8"))
        return Script(path, tuple(Step(**{**step, "calls": tuple(step.get("calls", ()))}) for step in steps))
    except (OSError, yaml.YAMLError, TypeError, AttributeError) as error:
        raise ModelNotUsable(f"{path} is no script of the offline engine: {error}") from error


def _filled(arguments: dict[str, Any], labels: dict[str, str]) -> dict[str, Any]:
    return {
        name: _LABEL.sub(lambda found: labels.get(found[1], found[0]), value)
        if isinstance(value, str)
        else value
        for name, value in arguments.items()
    }
