"""What verbs answer with a row's page, and whether they follow the row until it rests first."""

from __future__ import annotations

from argparse import ArgumentParser

from core.paths import halo_home
from evolution.console import as_json, as_text
from evolution.console.verb import Answer
from evolution.models import EvolutionApply, EvolutionRun
from evolution.run_view import view_run


def page_of(row: EvolutionRun | EvolutionApply) -> Answer:
    if isinstance(row, EvolutionApply):
        apply = EvolutionApply.objects.select_related("workspace").get(pk=row.pk)
        return Answer(as_json.apply_row(apply), as_text.apply_page(apply))
    run = EvolutionRun.objects.select_related("workspace", "current_apply", "decided_by").get(pk=row.pk)
    view = view_run(run, home=halo_home())
    return Answer(as_json.run_page(view), as_text.run_page(view))


def follow_argument(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--follow", "--wait", action="store_true", help="follow it until it rests (ticks meanwhile)"
    )
