"""Who decided what, in the admin's own log. The rows' events and columns say so too; this one outlives them."""

from __future__ import annotations

from django.contrib.admin.models import CHANGE, DELETION, LogEntry
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType

from core.db.text import storable
from evolution.models import EvolutionApply, EvolutionRun, RegressionScenario

Decided = type[EvolutionRun] | type[EvolutionApply] | type[RegressionScenario]
_NAMES: dict[Decided, str] = {
    EvolutionRun: "run",
    EvolutionApply: "apply",
    RegressionScenario: "scenario",
}


def note(*, user: User, model: Decided, row_id: str, text: str) -> None:
    """Call it in the transaction of the decision, where that has one."""
    _write(user, model, row_id, text, CHANGE)


def note_deleted(*, user: User, row_id: str, text: str) -> None:
    _write(user, EvolutionRun, row_id, text, DELETION)


def _write(user: User, model: Decided, row_id: str, text: str, flag: int) -> None:
    LogEntry.objects.create(
        user_id=user.pk,
        content_type=ContentType.objects.get_for_model(model),
        object_id=row_id,
        object_repr=f"{_NAMES[model]}-{row_id}",
        action_flag=flag,
        change_message=storable(text),
    )
