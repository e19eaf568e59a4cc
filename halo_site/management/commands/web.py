from __future__ import annotations

import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from core.arguments import port
from halo_site.web_server import serve


class Command(BaseCommand):
    help = "The web process alone, ticking every 5 s; `halo up` starts it and watches over it."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--host", default="127.0.0.1")
        parser.add_argument("--port", type=port, default=8000, help="0 takes a free one")
        parser.add_argument("--ready-fd", type=int, help="where to tell, as one JSON line, that it listens")

    def handle(self, *args: Any, **options: Any) -> None:
        sys.exit(serve(host=options["host"], port=options["port"], ready_descriptor=options["ready_fd"]))
