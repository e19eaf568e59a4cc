"""From `/evo` to a wrapper at work, and to `awaiting_review`, by detached wrappers on the offline engine."""

from __future__ import annotations

import itertools
import time
from collections import defaultdict
from dataclasses import dataclass, field

from bench import sample
from bench.measures import Measure, percentiles

ROUNDS = 12
LOOK_SEC = 0.005


@dataclass(slots=True)
class Times:
    """Seconds, one entry a round; ``phases`` by name, from its beginning to the next one's."""

    wrapper: list[float] = field(default_factory=list)
    review: list[float] = field(default_factory=list)
    phases: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))


def measure() -> list[Measure]:
    return measures("embedded", wrapper_limit=1.5)


def measures(profile: str, *, wrapper_limit: float) -> list[Measure]:
    sample.set_up()
    times = rounds()
    found = [
        Measure(
            what=f"enqueue to wrapper at work, {profile}",
            unit="s",
            figures=percentiles(times.wrapper),
            at_most={"p95": wrapper_limit},
        ),
        Measure(
            what=f"enqueue to awaiting_review at L0 with control, {profile}",
            unit="s",
            figures=percentiles(times.review),
            at_most={"p95": 4.0},
            note="`offline`, so the model's own time is nearly nothing",
        ),
    ]
    for name in ("sandbox", "draft", "dry_run", "control", "score", "gates"):
        if times.phases[name]:
            found.append(
                Measure(what=f"of it: {name}, {profile}", unit="s", figures=percentiles(times.phases[name]))
            )
    return found


def rounds() -> Times:
    from core.db.clock import database_now
    from evolution.enqueue import enqueue
    from evolution.models import EvolutionRun

    session, times = sample.conversation(), Times()
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        outcome = enqueue(
            session=session, hint=sample.HINT, requested_by=None, trigger="note", now=database_now()
        )
        seen_wrapper = False
        while True:
            run = EvolutionRun.objects.get(pk=outcome.run_id)
            taken = time.perf_counter() - begun
            if not seen_wrapper and run.process_pid is not None:
                times.wrapper.append(taken)
                seen_wrapper = True
            if run.status not in ("pending", "running"):
                break
            time.sleep(LOOK_SEC)
        if run.status != "awaiting_review":
            raise RuntimeError(f"{run} ended {run.status}: {run.failure_reason or run.skip_reason}")
        times.review.append(taken)
        _add_phases(run, times)
    return times


def _add_phases(run: object, times: Times) -> None:
    from core.db.models import Event

    events = list(
        Event.objects.filter(object_id=run.pk).order_by("id").values_list("payload", "created_at")  # type: ignore[attr-defined]
    )
    spent: dict[str, float] = defaultdict(float)
    for (payload, began), (_, ended) in itertools.pairwise(events):
        if "phase" in payload:
            spent[payload["phase"]] += (ended - began).total_seconds()
    for name, seconds in spent.items():
        times.phases[name].append(seconds)
