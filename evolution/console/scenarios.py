"""``halo evo scenarios``: what landed runs left, and taking it out of use."""

from __future__ import annotations

from argparse import ArgumentParser

from core.arguments import from_one
from core.db.clock import database_now
from evolution.console import as_json, as_text
from evolution.console.actor import acting_user
from evolution.console.verb import Answer, Options, Verb
from evolution.find import find_scenario
from evolution.models import RegressionScenario
from evolution.retire import restore, retire


def _list(options: Options) -> Answer:
    rows = RegressionScenario.objects.select_related("workspace", "retired_by").order_by("-pk")
    if not options["all"]:
        rows = rows.filter(retired_at__isnull=True)
    if options["workspace"]:
        rows = rows.filter(workspace__path__endswith=options["workspace"].rstrip("/"))
    found = list(rows[: options["limit"]])
    lines = as_text.scenario_lines(found, now=database_now())
    return Answer([as_json.scenario_row(row) for row in found], lines)


def _list_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--all", action="store_true", help="retired ones as well")
    parser.add_argument("-w", "--workspace", help="the workspace's path, or how it ends")
    parser.add_argument("--limit", type=from_one, default=20, metavar="N", help="at most so many (20)")


def _show(options: Options) -> Answer:
    row = find_scenario(options["id"])
    return Answer(as_json.scenario_page(row), as_text.scenario_page(row))


def _retire(options: Options) -> Answer:
    user, row = acting_user(options["as_user"]), find_scenario(options["id"])
    retire(scenario_id=row.pk, user=user, reason=options["reason"], now=database_now())
    return Answer(
        {"id": str(row), "retired": True}, [f"{row} is retired: no apply is held to it from now on."]
    )


def _retire_arguments(parser: ArgumentParser) -> None:
    _id_argument(parser)
    parser.add_argument("--reason", default="", help="why it no longer matters")


def _restore(options: Options) -> Answer:
    user, row = acting_user(options["as_user"]), find_scenario(options["id"])
    restore(scenario_id=row.pk, user=user, now=database_now())
    return Answer({"id": str(row), "retired": False}, [f"{row} is in use again."])


def _id_argument(parser: ArgumentParser) -> None:
    parser.add_argument("id")


SCENARIOS = {
    "list": Verb("Those in use, newest first.", _list, _list_arguments),
    "show": Verb("One, with its messages and answers.", _show, _id_argument),
    "retire": Verb("Hold no apply to it any more.", _retire, _retire_arguments, decides=True),
    "restore": Verb("Put a retired one back into use.", _restore, _id_argument, decides=True),
}
