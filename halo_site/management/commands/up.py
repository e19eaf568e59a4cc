from __future__ import annotations

import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from core.arguments import port
from halo_site.up import Options, up


class Command(BaseCommand):
    help = "Run Halo on this machine: database and files brought up to date, then web and background work."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", help="another address needs ALLOWED_HOSTS")
        parser.add_argument("--port", type=port, default=8000, help="0 takes a free one")
        parser.add_argument("--no-cluster", action="store_true", help="the web process ticks alone")
        parser.add_argument("--open", action="store_true", help="open the admin in a browser")

    def handle(self, *args: Any, **options: Any) -> None:
        sys.exit(
            up(
                Options(
                    host=options["host"],
                    port=options["port"],
                    with_cluster=not options["no_cluster"],
                    open_browser=options["open"],
                ),
                say=lambda text: print_line(self, text),
            )
        )


def print_line(command: BaseCommand, text: str) -> None:
    command.stdout.write(text)
    command.stdout.flush()
