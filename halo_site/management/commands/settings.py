"""``halo settings get | set | check``."""

from __future__ import annotations

import getpass
import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError

from core import clock
from core.arguments import intermix
from core.paths import WorkspacePaths, halo_home
from core.setting import Setting
from core.settings_file import Settings, scalar
from core.settings_save import UNSET, SettingsRefusedError, save
from core.settings_schema import SCHEMA, UnknownSettingError, setting_of
from core.texts import error_words, for_terminal, json_text
from halo_site.settings_event import announce
from workspaces.errors import WorkspaceRefused
from workspaces.models import Workspace
from workspaces.selectors import find


class Command(BaseCommand):
    help = "Read, change and check settings. A secret is never shown."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True, metavar="get|set|check")
        get = verbs.add_parser("get", help="one setting, or all, with where each value comes from")
        get.add_argument("key", nargs="?", metavar="KEY")
        change = verbs.add_parser("set", help="change a setting; without VALUE it is asked for (secrets)")
        change.add_argument("key", metavar="KEY")
        change.add_argument(
            "value", nargs="?", metavar="VALUE", help="'-' reads one line from standard input"
        )
        change.add_argument(
            "--unset", action="store_true", help="take the key out, so that the default counts"
        )
        check = verbs.add_parser("check", help="what in the settings files isn't in force, and why")
        for verb in (get, change, check):
            verb.add_argument("-w", "--workspace", metavar="WS", help="with this workspace's own file")
            verb.add_argument("--json", action="store_true", help="machine-readable output")
            intermix(verb)

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            workspace = find(options["workspace"]) if options["workspace"] else None
            getattr(self, f"_{options['verb']}")(options, workspace)
        except (WorkspaceRefused, UnknownSettingError, SettingsRefusedError, OSError) as error:
            raise CommandError(for_terminal(error_words(error))) from error

    def _get(self, options: dict[str, Any], workspace: Workspace | None) -> None:
        settings = Settings.load(halo_home(), _paths(workspace))
        if options["key"] is None:
            values = {key: {"value": settings.public(key), "source": settings.source(key)} for key in SCHEMA}
            lines = [
                f"{key} = {_spelled(entry['value'])}  ({entry['source']})" for key, entry in values.items()
            ]
            self.stdout.write(json_text(values) if options["json"] else "\n".join(lines))
            return
        value, source = settings.public(options["key"]), settings.source(options["key"])
        entry = {"key": options["key"], "value": value, "source": source}
        self.stdout.write(json_text(entry) if options["json"] else _spelled(value))

    def _set(self, options: dict[str, Any], workspace: Workspace | None) -> None:
        key = options["key"]
        setting = setting_of(key)
        if options["unset"]:
            if options["value"] is not None:
                raise CommandError("Give a value or --unset, not both.", returncode=2)
            value: Any = UNSET
        else:
            value = _value(setting, _asked(setting, options["value"]))
        changed = bool(save(halo_home(), {key: value}, workspace=_paths(workspace)))
        if changed:
            self._announce(key, unset=value is UNSET, workspace=workspace)
        settings = Settings.load(halo_home(), _paths(workspace))
        if options["json"]:
            self.stdout.write(json_text({"key": key, "value": settings.public(key), "changed": changed}))
            return
        note = " It takes effect at the next start." if setting.restart and changed else ""
        self.stdout.write(f"{key} is {_spelled(settings.public(key))} now.{note}")

    def _announce(self, key: str, *, unset: bool, workspace: Workspace | None) -> None:
        try:
            announce(key, by=None, unset=unset, workspace=workspace, now=clock.now())
        except DatabaseError as error:
            # The setting is written; without a database (or before its first migration) no page is open.
            self.stderr.write(f"Open pages don't hear of it: {for_terminal(str(error))}")

    def _check(self, options: dict[str, Any], workspace: Workspace | None) -> None:
        faults = Settings.load(halo_home(), _paths(workspace)).faults
        if options["json"]:
            self.stdout.write(json_text([fault.to_json() for fault in faults]))
        else:
            lines = [f"{fault.severity}: {for_terminal(str(fault))}" for fault in faults]
            self.stdout.write("\n".join(lines) or "Nothing is wrong.")
        if any(fault.severity == "fault" for fault in faults):
            raise CommandError("Something isn't in force; see above.")


def _paths(workspace: Workspace | None) -> WorkspacePaths | None:
    return workspace.paths if workspace is not None else None


def _asked(setting: Setting, given: str | None) -> str:
    """A secret on a command line stays in the shell's history, so it can be typed unseen or piped.

    Nothing typed or piped is no value: only ``""`` on the command line, and ``--unset``, empty a setting.
    """
    if given is not None and given != "-":
        return given
    try:
        if given == "-" or not sys.stdin.isatty():
            line = sys.stdin.readline().rstrip("\r\n")
        else:
            line = getpass.getpass(f"{setting.key}: ") if setting.secret else input(f"{setting.key}: ")
    except EOFError:
        line = ""
    if not line:
        raise CommandError(
            f"No value came for {setting.key}; nothing was changed. --unset takes the key out."
        )
    return line


def _value(setting: Setting, text: str) -> Any:
    """Text as the setting's type; what doesn't fit is left for ``save`` to refuse in its own words."""
    if setting.kind in ("text", "choice") or (text.startswith("<<") and text.endswith(">>")):
        return text
    value = scalar(text)
    if setting.kind == "list" and not isinstance(value, list):
        return [item.strip() for item in text.split(",") if item.strip()]
    return value


def _spelled(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return for_terminal(", ".join(value)) if value else "(empty)"
    return for_terminal(str(value)) if value != "" else "(empty)"
