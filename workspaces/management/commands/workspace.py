"""``halo workspace add | list | check | move``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from core import clock
from core.arguments import intermix
from core.faults import Fault
from core.paths import expanded, halo_home
from core.texts import error_words, for_terminal, json_text
from workspaces.check import check_machine, check_workspace
from workspaces.errors import WorkspaceRefused
from workspaces.models import Workspace
from workspaces.move import move
from workspaces.register import register
from workspaces.selectors import find


class Command(BaseCommand):
    help = "Add, list, check and move workspaces: the folders that agents work in."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True, metavar="add|list|check|move")
        add = verbs.add_parser("add", help="make a folder a workspace")
        add.add_argument("path", metavar="PATH")
        listing = verbs.add_parser("list", help="all workspaces")
        check = verbs.add_parser("check", help="what is wrong in settings, agents and skills")
        check.add_argument(
            "workspace", nargs="?", metavar="WORKSPACE", help="number or path; without it: all"
        )
        moving = verbs.add_parser("move", help="follow a renamed folder, or hand a workspace to another host")
        moving.add_argument("workspace", metavar="WORKSPACE", help="its number, or the path it had")
        moving.add_argument("path", nargs="?", metavar="NEW_PATH")
        moving.add_argument("--host", help="the host that works it from now on")
        for verb in (add, listing, check, moving):
            verb.add_argument("--json", action="store_true", help="machine-readable output")
            intermix(verb)

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            getattr(self, f"_{options['verb']}")(options)
        except (WorkspaceRefused, OSError) as error:
            raise CommandError(for_terminal(error_words(error))) from error

    def _add(self, options: dict[str, Any]) -> None:
        path = expanded(options["path"])
        workspace, created = register(path, home=halo_home(), now=clock.now())
        if options["json"]:
            self._print_json(_described(workspace) | {"created": created})
        else:
            self.stdout.write(
                f"{for_terminal(workspace.path)} {'is a workspace now' if created else 'was a workspace already'}."
            )

    def _list(self, options: dict[str, Any]) -> None:
        rows = [_described(workspace) for workspace in Workspace.objects.order_by("path")]
        if options["json"]:
            self._print_json(rows)
            return
        for row in rows:
            missing = (
                "" if row["exists"] else f"  (missing; renamed? halo workspace move {row['id']} NEW_PATH)"
            )
            self.stdout.write(f"{row['id']:>4}  {for_terminal(row['path'])}  on {row['host']}{missing}")
        if not rows:
            self.stdout.write("No workspaces yet. Add one with: halo workspace add PATH")

    def _check(self, options: dict[str, Any]) -> None:
        home = halo_home()
        if options["workspace"] is not None:
            faults = check_workspace(find(options["workspace"]).paths, home=home)
        else:
            faults = check_machine(home)
            for workspace in Workspace.objects.order_by("path"):
                faults += check_workspace(workspace.paths, home=home)
        faults = list(dict.fromkeys(faults))
        if options["json"]:
            self._print_json([fault.to_json() for fault in faults])
        else:
            self._print_faults(faults)
        if any(fault.severity == "fault" for fault in faults):
            raise CommandError("Something isn't in force; see above.")

    def _move(self, options: dict[str, Any]) -> None:
        new_path = None if options["path"] is None else expanded(options["path"])
        workspace = move(
            _exact(options["workspace"]), home=halo_home(), new_path=new_path, host=options["host"]
        )
        if options["json"]:
            self._print_json(_described(workspace))
        else:
            self.stdout.write(f"The workspace is {for_terminal(workspace.path)} on {workspace.host} now.")

    def _print_json(self, value: Any) -> None:
        self.stdout.write(json_text(value))

    def _print_faults(self, faults: list[Fault]) -> None:
        for fault in faults:
            self.stdout.write(f"{fault.severity}: {for_terminal(str(fault))}")
        if not faults:
            self.stdout.write("Nothing is wrong.")


def _exact(text: str) -> Workspace:
    """A workspace to be moved is named itself, not by a folder inside it."""
    workspace = find(text)
    if not text.isdigit() and expanded(text).resolve() != Path(workspace.path):
        raise WorkspaceRefused(
            "unknown_workspace", f"{text} is not a workspace but lies in {workspace.path}."
        )
    return workspace


def _described(workspace: Workspace) -> dict[str, Any]:
    return {
        "id": workspace.pk,
        "path": workspace.path,
        "host": workspace.host,
        "exists": workspace.paths.halo.is_dir(),
        "created_at": clock.stamp(workspace.created_at),
    }
