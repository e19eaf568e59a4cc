"""Whether work gets started here, as the first page says it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from agents.sandbox import why_unavailable
from core.texts import span_words
from evolution import tasks
from halo_site import ticking

_TICKS_WITHIN = timedelta(seconds=12 * ticking.INTERVAL_SEC)


@dataclass(frozen=True, slots=True)
class Sign:
    ok: bool
    text: str


@dataclass(frozen=True, slots=True)
class Health:
    signs: list[Sign]

    @property
    def good(self) -> bool:
        return all(sign.ok for sign in self.signs)


def look(*, now: datetime) -> Health:
    return Health([_ticker(now), _cluster(now), _sandbox()])


def _ticker(now: datetime) -> Sign:
    """This web process's own, which every web process has."""
    latest = ticking.last_tick()
    if latest is None:
        return Sign(True, "first tick still to come")
    silent = now - latest
    if silent > _TICKS_WITHIN:
        return Sign(False, f"no tick for {span_words(silent)}: nothing that waits is started")
    return Sign(True, f"tick {span_words(silent)} ago")


def _cluster(now: datetime) -> Sign:
    silent = tasks.cluster_silence(now=now)
    if silent is None:
        return Sign(True, "no cluster, the web process ticks alone")
    if silent > tasks.CLUSTER_WITHIN:
        return Sign(False, f"cluster silent for {span_words(silent)}")
    return Sign(True, "cluster")


def _sandbox() -> Sign:
    why = why_unavailable()
    return Sign(False, why) if why else Sign(True, "sandbox")
