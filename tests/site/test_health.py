"""``/healthz`` and ``/readyz``: what doesn't work is named, and a process that lives is never called dead for it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from channels.layers import channel_layers
from django.conf import settings
from django.db import InterfaceError
from django.test import Client
from django_q.models import Schedule, Success

from core import clock
from evolution.tasks import ensure_schedules
from halo_site import health, ticking
from tests.postgres import free_port

pytestmark = pytest.mark.django_db

PARTS = ("database", "tables", "channel_layer", "ticks", "cluster", "schedules")
LONG_AGO = timedelta(minutes=7)


@pytest.fixture(autouse=True)
def it_began_long_ago(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "_loaded_at", clock.now() - timedelta(days=2))
    monkeypatch.setattr(ticking, "_last_tick", [])


def asked() -> tuple[int, dict[str, Any]]:
    answer = Client().get("/readyz")
    return answer.status_code, answer.json()


def cluster_ticked(ago: timedelta) -> None:
    moment = clock.now() - ago
    Success.objects.create(
        id="t1", name="t1", func="evolution.tasks.tick", started=moment, stopped=moment, success=True
    )


def _no_tables(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(health, "_is_migrated", lambda: False)


def _no_layer(patch: pytest.MonkeyPatch) -> None:
    config = {"hosts": [f"redis://127.0.0.1:{free_port()}/0"]}
    backend = "channels_redis.pubsub.RedisPubSubChannelLayer"
    patch.setattr(settings, "CHANNEL_LAYERS", {"default": {"BACKEND": backend, "CONFIG": config}})
    patch.setattr(channel_layers, "backends", {})


def _no_ticks(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ticking, "_last_tick", [clock.now() - LONG_AGO])


def _silent_cluster(patch: pytest.MonkeyPatch) -> None:
    ensure_schedules()
    cluster_ticked(LONG_AGO)


def _no_archive(patch: pytest.MonkeyPatch) -> None:
    ensure_schedules()
    Schedule.objects.get(func="evolution.tasks.archive").delete()


def _no_schedules_for_a_cluster(patch: pytest.MonkeyPatch) -> None:
    cluster_ticked(timedelta(seconds=20))


def test_where_all_is_well_each_part_says_so() -> None:
    assert asked() == (200, {"status": "ready", **dict.fromkeys(PARTS, True)})
    ensure_schedules()
    cluster_ticked(timedelta(seconds=20))
    assert asked() == (200, {"status": "ready", **dict.fromkeys(PARTS, True)})


@pytest.mark.parametrize(
    ("part", "breaks"),
    [
        ("tables", _no_tables),
        ("channel_layer", _no_layer),
        ("ticks", _no_ticks),
        ("cluster", _silent_cluster),
        ("schedules", _no_archive),
        ("schedules", _no_schedules_for_a_cluster),
    ],
)
def test_what_does_not_work_is_named_and_nothing_else(
    part: str, breaks: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    breaks(monkeypatch)

    assert asked() == (503, {"status": "not ready", **dict.fromkeys(PARTS, True), part: False})
    assert Client().get("/healthz").json() == {"status": "ok"}


def test_without_a_database_the_process_still_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone() -> None:
        raise InterfaceError("connection already closed")

    monkeypatch.setattr(health, "_migrated", False)
    with monkeypatch.context() as patch:
        patch.setattr(health.connection, "cursor", gone)
        answer = Client().get("/healthz")
        status, ready = asked()

    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})
    assert (status, ready["database"], ready["tables"], ready["cluster"]) == (503, False, False, False)


def test_a_cluster_that_starts_with_the_web_process_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    ensure_schedules()
    cluster_ticked(timedelta(hours=2))
    assert asked()[0] == 503

    monkeypatch.setattr(health, "_loaded_at", clock.now())

    assert asked()[0] == 200


def test_a_cluster_of_days_ago_is_none() -> None:
    ensure_schedules()
    cluster_ticked(timedelta(days=3))

    assert asked()[0] == 200
