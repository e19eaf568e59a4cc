"""Where the pages of runs, applies and kept scenarios stand, for the notes in a conversation that name one."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial

from django.urls import reverse

from evolution.models import EvolutionApply, EvolutionRun, RegressionScenario
from sessions_app import named_pages

Named = type[EvolutionRun] | type[EvolutionApply] | type[RegressionScenario]


def register() -> None:
    named_pages.register("run", partial(_addresses, EvolutionRun))
    named_pages.register("apply", partial(_addresses, EvolutionApply))
    named_pages.register("scenario", partial(_addresses, RegressionScenario))


def _addresses(model: Named, row_ids: Collection[str]) -> Mapping[str, str]:
    page = f"admin:evolution_{model._meta.model_name}_change"
    there = model._default_manager.filter(pk__in=row_ids).values_list("pk", flat=True)
    return {row_id: reverse(page, args=[row_id]) for row_id in there}
