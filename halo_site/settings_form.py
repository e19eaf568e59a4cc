"""The settings page's form: one field for each key of the schema, empty where the default counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from core.bounded_read import UnreadableFileError
from core.paths import HaloHome, WorkspacePaths
from core.safe_yaml import YamlError
from core.setting import Setting
from core.settings_file import Settings, read_document, scalar
from core.settings_save import UNSET
from core.settings_schema import SCHEMA

_SECTIONS = {
    "general.evolution": "Evolution",
    "general.session": "Sessions",
    "general.compact": "Compaction",
    "general.cron": "Cron",
    "general.limits": "Limits",
    "general.sandbox": "Sandbox",
    "general.web_fetch": "Fetching pages",
    "general.observability": "Telemetry",
    "general": "General",
}


@dataclass(frozen=True, slots=True)
class Field:
    """``text`` is what stands in this file as a form shows it, empty when nothing does; of a secret always
    empty. ``was`` is the same as it stood when the page was first shown. ``otherwise`` is what counts when
    the field is empty.
    """

    setting: Setting
    text: str
    was: str
    is_set: bool
    otherwise: str
    error: str = ""

    @property
    def name(self) -> str:
        return f"set:{self.setting.key}"

    @property
    def was_name(self) -> str:
        return f"was:{self.setting.key}"

    @property
    def remove_name(self) -> str:
        return f"remove:{self.setting.key}"

    @property
    def options(self) -> tuple[str, ...]:
        """For a select; a value that is no choice (a variable's name) stays choosable."""
        choices = ("true", "false") if self.setting.kind == "boolean" else self.setting.choices
        return choices if not self.text or self.text in choices else (*choices, self.text)


def fields(
    home: HaloHome,
    workspace: WorkspacePaths | None,
    *,
    posted: Mapping[str, str] | None = None,
    errors: Mapping[str, str] | None = None,
) -> dict[str, list[Field]]:
    """Fields by section. ``posted`` keeps what a person typed; a secret they typed is never shown again."""
    stored = _stored(home, workspace)
    otherwise = Settings.load(home) if workspace is not None else None
    sections: dict[str, list[Field]] = {title: [] for title in (*_SECTIONS.values(), "Providers")}
    for setting in SCHEMA.values():
        if workspace is not None and setting.is_global:
            continue
        text = was = "" if setting.secret else stored.get(setting.key, "")
        if posted is not None and not setting.secret:
            text = posted.get(f"set:{setting.key}", text)
            was = posted.get(f"was:{setting.key}", was)
        sections[_section(setting.key)].append(
            Field(
                setting=setting,
                text=text,
                was=was,
                is_set=setting.key in stored,
                otherwise=_otherwise(setting, otherwise),
                error=(errors or {}).get(setting.key, ""),
            )
        )
    return {title: found for title, found in sections.items() if found}


def changes(posted: Mapping[str, str], workspace: WorkspacePaths | None) -> dict[str, Any]:
    """What a person changed: fields that differ from what their page showed, so that nobody undoes another's
    change by saving an old page. Emptied: the key is taken out. Secrets: only what was typed.
    """
    found: dict[str, Any] = {}
    for setting in SCHEMA.values():
        if workspace is not None and setting.is_global:
            continue
        text = posted.get(f"set:{setting.key}")
        if setting.secret:
            if posted.get(f"remove:{setting.key}"):
                found[setting.key] = UNSET
            elif text:
                found[setting.key] = text
        elif text is not None and _plain(text) != _plain(posted.get(f"was:{setting.key}", "")):
            found[setting.key] = _value(setting, _plain(text))
    return found


def _value(setting: Setting, text: str) -> Any:
    """Typed; what doesn't fit is left for ``save`` to refuse in its own words."""
    if text == "":
        return UNSET
    if setting.kind == "list":
        return [line.strip() for line in text.split("\n") if line.strip()]
    if setting.kind in ("text", "choice") or text.startswith("<<"):
        return text
    return scalar(text)


def _plain(text: str) -> str:
    """Browsers send CRLF for a line's end, and people blanks at both ends."""
    return text.replace("\r\n", "\n").strip()


def _section(key: str) -> str:
    parts = key.split(".")
    if parts[0] != "general":
        return "Providers"
    return _SECTIONS.get(".".join(parts[:2]), "General")


def _otherwise(setting: Setting, machine: Settings | None) -> str:
    if setting.secret:
        return ""
    if machine is not None:
        return _spelled(machine.get(setting.key))
    return setting.default_says or _spelled(setting.default)


def _stored(home: HaloHome, workspace: WorkspacePaths | None) -> dict[str, str]:
    """What the file says, word for word: a variable's name, never its value. Unreadable: nothing."""
    path = home.settings_file if workspace is None else workspace.settings_file
    try:
        document = read_document(path)
    except (YamlError, UnreadableFileError, OSError):
        return {}
    return {key: _spelled(value) for key, value in _known(document.value)}


def _known(tree: Any) -> Iterator[tuple[str, Any]]:
    for key in SCHEMA:
        value = tree
        for part in key.split("."):
            value = value.get(part, UNSET) if isinstance(value, dict) else UNSET
        if value is not UNSET:
            yield key, value


def _spelled(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return "\n".join(str(item) for item in value)
    return str(value)
