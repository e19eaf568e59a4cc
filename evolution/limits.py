"""How much evolution may work at once, and for how long."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from core.paths import halo_home
from core.settings_file import Settings


@dataclass(frozen=True, slots=True)
class Limits:
    """Of the settings ``general.evolution.*``; the defaults are the schema's.

    ``max_attempts`` counts the tries of one round; the timeouts say how old a heartbeat may become.
    """

    max_concurrent_run: int = 1
    max_concurrent_apply: int = 1
    run_timeout: timedelta = timedelta(minutes=12)
    apply_timeout: timedelta = timedelta(minutes=5)
    max_attempts: int = 3

    @classmethod
    def load(cls) -> Limits:
        """As the machine's settings file says now."""
        settings = Settings.load(halo_home())
        return cls(
            max_concurrent_run=settings.get("general.evolution.max_concurrent_run"),
            max_concurrent_apply=settings.get("general.evolution.max_concurrent_apply"),
            run_timeout=timedelta(minutes=settings.get("general.evolution.run_timeout_minutes")),
            apply_timeout=timedelta(minutes=settings.get("general.evolution.apply_timeout_minutes")),
            max_attempts=settings.get("general.evolution.max_attempts"),
        )
