"""One pass of the ticker over 100,000 finished runs: with nothing to do, and with a run at work."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from bench import sample
from bench.measures import Measure, percentiles

FINISHED = 100_000
PASSES = 200


def measure() -> list[Measure]:
    os.environ["DJANGO_SETTINGS_MODULE"] = "halo_site.settings.slim"
    import django
    from django.core.management import call_command

    django.setup()
    call_command("migrate", verbosity=0)
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    from evolution.ticker import tick

    _fill()
    found = []
    for what, prepare in (("nothing in flight", None), ("a run at work", _run_at_work)):
        if prepare is not None:
            prepare()
        with CaptureQueriesContext(connection) as queries:
            report = tick(spawn=_never)
        if report.started or report.failed or report.settled:
            raise RuntimeError(f"The pass found something to do: {report}")
        found.append(
            Measure(
                what=f"tick over {FINISHED:,} finished runs, {what}",
                unit="ms",
                figures=percentiles(_times(lambda: tick(spawn=_never)), scale=1e3),
                at_most={"p50": 10.0},
            )
        )
        found.append(
            Measure(
                what=f"its queries, {what}", unit="", figures={"count": len(queries)}, at_most={"count": 10}
            )
        )
    return found


def _times(work: Callable[[], object]) -> list[float]:
    times = []
    for _ in range(PASSES):
        begun = time.perf_counter()
        work()
        times.append(time.perf_counter() - begun)
    return times


def _never(order: object) -> None:
    raise RuntimeError(f"No wrapper should be started: {order}")


def _fill() -> None:
    from core.db.clock import database_now
    from core.processes import host_name
    from workspaces.models import Workspace

    workspace = Workspace.objects.create(
        path=os.environ["HALO_HOME"], host=host_name(), created_at=database_now()
    )
    sample.finished_runs(workspace, FINISHED)


def _run_at_work() -> None:
    """Worked by this very process, which lives."""
    from datetime import timedelta

    from core.db.clock import database_now
    from core.db.models import process_values
    from core.ids import new_row_id
    from core.processes import ProcessIdentity
    from evolution.models import EvolutionRun
    from workspaces.models import Workspace

    now = database_now()
    EvolutionRun.objects.create(
        id=new_row_id(),
        workspace=Workspace.objects.get(),
        source_session_id="session-at-work",
        agent_id="guide",
        trigger_kind="note",
        source_access="full",
        status="running",
        attempts=1,
        created_at=now,
        started_at=now,
        heartbeat_at=now + timedelta(minutes=1),
        **process_values(ProcessIdentity.current()),
    )
