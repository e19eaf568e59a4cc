"""The ``halo`` command: Django's command line on the slim settings, except where a command serves the web."""

from __future__ import annotations

import os
import sys

WEB_COMMANDS = frozenset(
    {"up", "web", "qcluster", "migrate", "makemigrations", "check", "collectstatic", "demo"}
)


def main() -> None:
    command = sys.argv[1] if len(sys.argv) > 1 else "help"
    settings = "web" if command in WEB_COMMANDS else "slim"
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", f"halo_site.settings.{settings}")

    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)
