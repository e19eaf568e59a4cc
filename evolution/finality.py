"""Whether the apply that a marker names still has work to do; asked by readers of a live surface."""

from __future__ import annotations

from evolution.models import EvolutionApply
from evolution.states import APPLY_FINAL


def apply_is_final(apply_id: str) -> bool:
    """True as well when the row is gone: nobody will finish that swap, and nobody will remove its marker."""
    status = EvolutionApply.objects.filter(pk=apply_id).values_list("status", flat=True).first()
    return status is None or status in APPLY_FINAL
