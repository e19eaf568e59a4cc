"""The run list over 100,000 runs, as the web process answers it: its first page, one far down, and a search."""

from __future__ import annotations

import shutil
import time
from typing import TYPE_CHECKING

from bench import sample
from bench.measures import Measure, percentiles

if TYPE_CHECKING:
    from django.test import Client

    from evolution.models import EvolutionRun

RUNS = 100_000
VIEWS = 60
ADDRESS = "/admin/evolution/evolutionrun/"


def measure() -> list[Measure]:
    sample.set_up()
    from evolution.models import EvolutionRun

    newest = _waiting()
    sample.finished_runs(newest.workspace, RUNS)
    middle = EvolutionRun.objects.order_by("pk").values_list("pk", flat=True)[RUNS // 2]
    _copies(newest)
    client = _client()
    found = []
    for what, query, note in (
        ("first page, every line of it a run that waits", {}, "25 folders are looked at for what is stale"),
        ("a page in the middle", {"before": middle}, ""),
        ("a search in hints that finds nothing", {"q": "nobody wrote this"}, ""),
    ):
        found += _measures(client, what, query, note)
    return found


def _measures(client: Client, what: str, query: dict[str, str], note: str) -> list[Measure]:
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    with CaptureQueriesContext(connection) as queries:
        answer = client.get(ADDRESS, query)
    asked = len(queries)  # the next request empties the log
    if answer.status_code != 200:
        raise RuntimeError(f"The page answered {answer.status_code}.")
    times = []
    for _ in range(VIEWS):
        begun = time.perf_counter()
        client.get(ADDRESS, query)
        times.append(time.perf_counter() - begun)
    return [
        Measure(
            what=f"run list over {RUNS:,} runs, {what}",
            unit="ms",
            figures=percentiles(times, scale=1e3),
            at_most={"p95": 200.0},
            note=note,
        ),
        Measure(what=f"its queries, {what}", unit="", figures={"count": asked}, at_most={"count": 15}),
    ]


def _client() -> Client:
    from django.contrib.auth.models import User
    from django.test import Client

    client = Client(SERVER_NAME="localhost")
    client.force_login(User.objects.create_superuser("bench"))
    return client


def _waiting() -> EvolutionRun:
    """A run with its folder, as a wrapper left it for a reviewer."""
    from core.db.clock import database_now
    from evolution.enqueue import enqueue
    from evolution.models import EvolutionRun

    outcome = enqueue(
        session=sample.conversation(),
        hint=sample.HINT,
        requested_by=None,
        trigger="note",
        now=database_now(),
    )
    while True:
        run = EvolutionRun.objects.select_related("workspace").get(pk=outcome.run_id)
        if run.status == "awaiting_review":
            return run
        if run.status not in ("pending", "running"):
            raise RuntimeError(f"{run} ended {run.status}: {run.failure_reason or run.skip_reason}")
        time.sleep(0.1)


def _copies(run: EvolutionRun) -> None:
    """As many of it as a page shows, newer than all others."""
    from core.ids import new_row_id
    from evolution.admin.paging import PER_PAGE
    from evolution.models import EvolutionRun

    paths = run.workspace.paths.evolution
    like = paths.run(run.pk)
    for _ in range(PER_PAGE):
        run.pk = new_row_id()
        run._state.adding = True
        run.save(force_insert=True)
        shutil.copytree(like, paths.run(run.pk))
    assert EvolutionRun.objects.count() == RUNS + 1 + PER_PAGE
