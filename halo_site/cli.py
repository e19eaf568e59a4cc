"""The ``halo`` command: Django's command line on the slim settings, except where a command serves the web."""

from __future__ import annotations

import gc
import os
import sys

from core.version import halo_version
from halo_site.command_list import help_text

# Commands that need the tables or the pages of the web part; everything else starts in half the time.
WEB_COMMANDS = frozenset(
    {"up", "web", "demo", "qcluster", "migrate", "makemigrations", "showmigrations", "check", "collectstatic"}
)


def main() -> None:
    arguments = sys.argv[1:]
    if not arguments or arguments in (["help"], ["--help"], ["-h"]):
        sys.stdout.write(help_text() + "\n")
        return
    if arguments in (["version"], ["--version"]):
        sys.stdout.write(halo_version() + "\n")
        return
    if arguments[0] == "evo_wrapper" and "rollback" not in arguments:
        # Before Django is set up or anything connects: agents are forked from this process's first moment.
        from evolution import zygote

        zygote.start()
    gc.disable()  # importing makes many objects and no garbage; the command works with the collector again
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", settings_for(arguments))
    sys.exit(_run(["halo", *arguments]))


def settings_for(arguments: list[str]) -> str:
    """The module. Decisions on sessions need the web part as well: they are noted in the admin's log."""
    decides = arguments[0] == "session" and not {"archive", "delete"}.isdisjoint(arguments)
    return f"halo_site.settings.{'web' if decides or arguments[0] in WEB_COMMANDS else 'slim'}"


def _run(arguments: list[str]) -> int:
    """Django's command line, with the mistakes every newcomer makes told in one line. Returns exit code."""
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import CommandError
    from django.db import OperationalError, ProgrammingError

    from halo_site.command_line import CommandLine

    try:
        CommandLine(arguments).execute()
    except CommandError as error:
        sys.stderr.write(f"{error}\n")
        return error.returncode
    except ImproperlyConfigured as error:
        sys.stderr.write(f"{error}\n")
        return 2
    except (OperationalError, ProgrammingError) as error:
        if "no such table" in str(error) or "does not exist" in str(error):
            sys.stderr.write("This HALO_HOME has no up-to-date database yet. Run: halo migrate\n")
        elif isinstance(error, OperationalError):
            sys.stderr.write(f"The database can't be used: {error}\n")
        else:
            raise
        return 1
    except OSError as error:
        if error.filename is None:
            raise
        home = os.environ.get("HALO_HOME", "~/.halo")
        sys.stderr.write(f"Halo can't use {error.filename}: {error.strerror}. (HALO_HOME is {home}.)\n")
        return 1
    except KeyboardInterrupt:
        return 130
    return 0
