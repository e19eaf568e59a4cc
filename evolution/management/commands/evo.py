from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from core.arguments import intermix
from core.texts import for_terminal, json_text
from evolution.console.verb import Verb
from evolution.console.verbs import VERBS
from evolution.errors import Refused


class Command(BaseCommand):
    help = (
        "Evolution: what was proposed, what the evidence says, and what people decided. Ids are run-... and "
        "apply-..., shortened as long as they are unique. Deciding needs --as USER with the permission."
    )

    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
        for name, verb in VERBS.items():
            sub = verbs.add_parser(name, help=verb.help, description=verb.help)
            if not verb.parts:
                _fill(sub, verb)
                continue
            parts = sub.add_subparsers(dest="part", required=True, metavar="WHAT")
            for part, inner in verb.parts.items():
                _fill(parts.add_parser(part, help=inner.help, description=inner.help), inner)

    def handle(self, *args: Any, **options: Any) -> None:
        verb = VERBS[options["verb"]]
        try:
            answer = (verb.parts[options["part"]] if verb.parts else verb).run(options)
        except Refused as refused:
            if options["json"]:
                self.stdout.write(
                    json.dumps({"error": refused.code, "message": str(refused), **refused.details})
                )
            raise CommandError(for_terminal(str(refused))) from refused
        if options["json"]:
            self.stdout.write(json_text(answer.value))
        else:
            self.stdout.write("\n".join(for_terminal(line) for line in answer.lines))
        if not answer.ok:
            sys.exit(1)


def _fill(parser: ArgumentParser, verb: Verb) -> None:
    parser.add_argument("--json", action="store_true", help="machine-readable output")
    if verb.decides:
        parser.add_argument("--as", dest="as_user", metavar="USER", required=True, help="who decides")
    verb.arguments(parser)
    intermix(parser)
