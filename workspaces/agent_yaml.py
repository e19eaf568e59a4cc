"""``agents/<id>/agent.yaml`` as a typed value. Reading never raises for what the file holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from core.bounded_read import UnreadableFileError
from core.faults import Fault, kind_of
from core.paths import UnsafePathError
from core.safe_yaml import Document, YamlError, load_small
from workspaces.fields import Fields
from workspaces.overrides import Folder, Scope

EFFORTS = ("minimal", "low", "medium", "high", "xhigh", "max")
VERBOSITIES = ("low", "medium", "high")
MAX_TOKENS = 100_000_000


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """``model``; ``provider`` empty: the file names none and the embedded default counts."""

    provider: str = ""
    id: str = ""
    endpoint: str = ""
    max_tokens: int | None = None
    prompt_caching: bool | str | None = None
    thinking: dict[str, Any] | None = None
    verbosity: str | None = None


@dataclass(frozen=True, slots=True)
class AgentConfig:
    """One agent. ``broken``: something in the file isn't in force, so no turn may start on it.

    ``tools``, ``skills`` and ``team`` are what the agent has; a missing list is an empty one. ``locked`` is
    ``halo-locked``: no draft may change this agent. ``extra`` holds unknown keys as they stand.
    """

    id: str
    scope: Scope
    file: str
    name: str
    description: str = ""
    model: ModelConfig = field(default_factory=ModelConfig)
    system_prompt: str = ""
    context_max_tokens: int | None = None
    compress_at: float = 0.8
    tools: tuple[str, ...] = ()
    skills: tuple[str, ...] = ()
    team: tuple[str, ...] = ()
    priority: int = 0
    internal: bool = False
    locked: bool = False
    extra: Mapping[str, Any] = field(default_factory=dict)
    faults: tuple[Fault, ...] = ()

    @property
    def broken(self) -> bool:
        return any(fault.severity == "fault" for fault in self.faults)


def load_agent(folder: Folder) -> AgentConfig:
    """The agent in ``folder``, with its faults; what can't be read is broken, never an exception."""
    where = folder.shown("agent.yaml")
    faults: list[Fault] = []
    document = _document(folder, where, faults)
    if document is None:
        return AgentConfig(folder.id, folder.scope, where, folder.id, faults=tuple(faults))
    return _agent(folder, where, document, faults)


def parse_agent(data: bytes, *, where: str) -> tuple[Document | None, tuple[Fault, ...]]:
    """Check text that isn't in place yet (a draft): its document and every fault ``load_agent`` would find."""
    faults: list[Fault] = []
    document = _parsed(data, where, faults)
    if document is not None:
        _values(Fields(document.value, document, where, faults))
    return document, tuple(faults)


def _document(folder: Folder, where: str, faults: list[Fault]) -> Document | None:
    try:
        data = folder.read("agent.yaml")
    except (UnreadableFileError, UnsafePathError, OSError) as error:
        faults.append(Fault(where, None, "", str(error), "a readable file"))
        return None
    if data is None:
        faults.append(Fault(where, None, "", "no file", "an agent.yaml with at least 'name: ...'"))
        return None
    return _parsed(data, where, faults)


def _parsed(data: bytes, where: str, faults: list[Fault]) -> Document | None:
    try:
        document = load_small(data)
    except YamlError as error:
        faults.append(
            Fault(where, error.line, "", error.problem, "YAML (a text with ': ' in it needs quotes)")
        )
        return None
    if not isinstance(document.value, dict):
        faults.append(Fault(where, 1, "", kind_of(document.value), "a mapping with at least 'name: ...'"))
        return None
    for repeated in document.repeated:
        faults.append(
            Fault(
                where,
                repeated.line,
                ".".join(repeated.path),
                "the key twice" + (", with different values" if repeated.conflicting else ""),
                "it once",
                "fault" if repeated.conflicting else "warning",
            )
        )
    return document


def _agent(folder: Folder, where: str, document: Document, faults: list[Fault]) -> AgentConfig:
    values = _values(Fields(document.value, document, where, faults))
    values["name"] = values["name"] or folder.id
    return AgentConfig(folder.id, folder.scope, where, faults=tuple(faults), **values)


def _values(fields: Fields) -> dict[str, Any]:
    """Every field of AgentConfig that the file decides."""
    values: dict[str, Any] = {
        "name": fields.text("name", required=True),
        "description": fields.text("description"),
        "model": _model(fields.mapping("model")),
        "system_prompt": fields.text("system_prompt"),
        "tools": fields.texts("tools"),
        "skills": fields.texts("skills"),
        "team": fields.texts("team"),
        "priority": fields.number("priority", minimum=-1_000_000, maximum=1_000_000) or 0,
        "internal": fields.flag("internal", default=False),
        "locked": fields.flag("halo-locked", default=False),
    }
    context = fields.mapping("context")
    if context is not None:
        values["context_max_tokens"] = context.number("maxTokens", minimum=1000, maximum=MAX_TOKENS)
        values["compress_at"] = context.fraction("compressAt", default=0.8, minimum=0.1, maximum=1.0)
        context.warn_unknown()
    values["extra"] = fields.warn_unknown()
    return values


def _model(fields: Fields | None) -> ModelConfig:
    if fields is None:
        return ModelConfig()
    thinking = fields.mapping("thinking")
    model = ModelConfig(
        provider=fields.text("provider"),
        id=fields.text("id"),
        endpoint=fields.text("endpoint"),
        max_tokens=fields.number("maxTokens", minimum=1, maximum=MAX_TOKENS),
        prompt_caching=fields.any_of("promptCaching", (True, False, "5m", "1h"), "true, false, 5m or 1h"),
        thinking=None if thinking is None else _thinking(thinking),
        verbosity=fields.choice("verbosity", VERBOSITIES),
    )
    fields.warn_unknown()
    return model


def _thinking(fields: Fields) -> dict[str, Any]:
    """``enabled``, and ``effort`` where it is given; who names an effort means thinking."""
    effort = fields.choice("effort", EFFORTS)
    thinking: dict[str, Any] = {"enabled": fields.flag("enabled", default=effort is not None)}
    if effort is not None:
        thinking["effort"] = effort
    fields.warn_unknown()
    return thinking
