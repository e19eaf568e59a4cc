"""The last look before an auto apply is published: the surface and the level may have moved on meanwhile."""

from __future__ import annotations

from core.paths import halo_home
from core.settings_file import Settings
from evolution import gates, sandbox
from evolution.errors import PhaseFailed
from evolution.phases.context import PhaseContext


def recheck(ctx: PhaseContext) -> None:
    """What would be published, classified against the live surface; the level read again.

    The caller holds the workspace's lock. The score isn't asked for again: the regression run has held the
    merge to its floor. Raises PhaseFailed ``auto_recheck:<reason>``.
    """
    level = Settings.load(halo_home()).get("general.evolution.level")
    gate = gates.category_gate(sandbox.would_publish(ctx), level=level)
    if not gate.passed:
        raise PhaseFailed(f"auto_recheck:{gate.reason}")
