"""``halo doctor``."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from core.paths import halo_home
from core.texts import for_terminal, json_text
from halo_site.doctor import examine


class Command(BaseCommand):
    help = "What is missing or wrong here, with the line that mends it. Exit code 1 when something is."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="machine-readable output")

    def handle(self, *args: Any, **options: Any) -> None:
        findings = examine(halo_home())
        if options["json"]:
            entries = [finding.to_json() for finding in findings]
            self.stdout.write(json_text(entries))
        else:
            for finding in findings:
                self.stdout.write(f"{finding.state:8}{for_terminal(f'{finding.name}: {finding.text}')}")
                if finding.mend:
                    self.stdout.write(f"{'':8}→ {for_terminal(finding.mend)}")
        faults = sum(finding.state == "fault" for finding in findings)
        if faults:
            raise CommandError(f"{faults} thing{'s' if faults > 1 else ''} to mend; see above.")
