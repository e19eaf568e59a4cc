"""``halo evo_wrapper run|apply|rollback ID --attempt N``: started by the ticker, never by hand."""

from __future__ import annotations

import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from evolution import wrapper, zygote
from evolution.spawn import Order


class Command(BaseCommand):
    help = "Work one attempt of a run, an apply or a rollback. The ticker starts it."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("verb", choices=["run", "apply", "rollback"])
        parser.add_argument("row_id")
        parser.add_argument("--attempt", type=int, required=True)

    def handle(self, *args: Any, **options: Any) -> None:
        order = Order(options["verb"], options["row_id"], options["attempt"])
        agents = None if order.verb == "rollback" else zygote.started()
        sys.exit(wrapper.work(order, zygote=agents))
