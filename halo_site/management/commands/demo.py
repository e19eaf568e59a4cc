from __future__ import annotations

import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from halo_site import up
from halo_site.demo import Options, run_demo
from halo_site.demo_stage import Stage


class Command(BaseCommand):
    help = (
        "The main job on a sample workspace, start to end: a conversation, /evo, the run, the review, the apply, "
        "the changed answer, the way back. Without options it needs no key and no network."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--serve", action="store_true", help="go on with `halo up` and look at it there")
        parser.add_argument("--provider", default="offline", choices=["offline", "openai-compatible"])
        parser.add_argument("--endpoint", help="of openai-compatible, like http://127.0.0.1:11434/v1")
        parser.add_argument("--model", help="the model's name there")

    def handle(self, *args: Any, **options: Any) -> None:
        model = None
        if options["provider"] != "offline":
            if not options["endpoint"] or not options["model"]:
                raise CommandError("openai-compatible needs --endpoint URL and --model NAME.", returncode=2)
            model = {
                "provider": options["provider"],
                "id": options["model"],
                "endpoint": options["endpoint"],
            }
        elif options["endpoint"] or options["model"]:
            raise CommandError(
                "--endpoint and --model belong to --provider openai-compatible; offline has neither.",
                returncode=2,
            )
        code = run_demo(Options(model=model), stage=Stage())
        if code == 0 and options["serve"]:
            code = up.up(up.DEFAULTS, say=lambda text: self.stdout.write(text))
        sys.exit(code)
