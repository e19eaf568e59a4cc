"""Django's command line as ``halo`` shows it."""

from __future__ import annotations

import gc

from django.core.management import BaseCommand, ManagementUtility

from core.version import halo_version
from halo_site.command_list import COMMANDS

_DJANGOS_OWN = {
    "--version",
    "--verbosity",
    "--settings",
    "--pythonpath",
    "--traceback",
    "--no-color",
    "--force-color",
    "--skip-checks",
}


class CommandLine(ManagementUtility):
    def __init__(self, argv: list[str]) -> None:
        super().__init__(argv)
        if len(argv) > 1 and argv[1] in COMMANDS:
            # Refusals come up to whoever called, who shows them in their own words; Django would name the class.
            self.argv = [*argv[:2], "--traceback", *argv[2:]]

    def fetch_command(self, subcommand: str) -> BaseCommand:
        """An unknown one is a usage error; Halo's own show their own options and version, not Django's."""
        try:
            command = super().fetch_command(subcommand)
        except SystemExit:
            raise SystemExit(2) from None
        gc.freeze()  # what is imported by now stays to the end, and is not worth a look
        gc.enable()
        if subcommand in COMMANDS:
            command.suppressed_base_arguments = _DJANGOS_OWN
            command.get_version = halo_version  # type: ignore[method-assign]
        return command
