"""Kept scenarios as rows: kept by a landing, retired by its rollback or by hand, gone with a deleted run."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from core.db.models import Event
from evolution import transitions
from evolution.artifacts.files import AttemptFiles
from evolution.delete import delete, plan_delete
from evolution.errors import ClaimLost, Refused
from evolution.models import EvolutionRun, RegressionScenario
from evolution.retire import restore, retire
from evolution.selectors import landed_texts, scenarios_touched
from tests.evolution.landings import land, landed, roll_back, scenario_of
from tests.evolution.phase_world import patch_text, write
from tests.evolution.rows import Rows, fresh, make_user

pytestmark = pytest.mark.django_db


def test_a_landing_keeps_a_scenario_for_each_of_its_runs_with_an_event(rows: Rows) -> None:
    first, second = rows.in_review(), rows.in_review()

    apply = land(rows, [first, second], test_message="How \0far?")

    kept = list(RegressionScenario.objects.order_by("run_id"))
    assert [row.run_id for row in kept] == [first.pk, second.pk]
    assert {row.apply_id for row in kept} == {apply.pk} and kept[0].test_message == "How \ufffdfar?"
    events = Event.objects.filter(kind="evolution:scenario_changed")
    assert sorted(event.object_id for event in events) == sorted(row.pk for row in kept)


def test_a_wrapper_that_lost_its_claim_keeps_nothing(rows: Rows) -> None:
    run = rows.in_review()
    _, claim = rows.syncing(rows.approved([run]))
    transitions.finish_apply(claim, now=rows.now)

    with pytest.raises(ClaimLost):
        transitions.finish_apply(claim, landed=[landed(run.pk)], now=rows.now)

    assert not RegressionScenario.objects.exists()


def test_a_rollback_retires_what_its_apply_left_and_nothing_else(rows: Rows) -> None:
    other, apply = land(rows), land(rows)

    roll_back(rows, apply)

    assert scenario_of(other).retired_at is None
    row = scenario_of(apply)
    assert (row.retired_at, row.retired_reason, row.retired_by_id) == (rows.now, "rolled back", None)
    assert Event.objects.filter(object_id=row.pk).latest("id").payload["retired"] is True


def test_a_run_that_lands_a_second_time_leaves_a_second_scenario(rows: Rows) -> None:
    run = rows.in_review()
    roll_back(rows, land(rows, [run]))
    run = fresh(run)
    transitions.retry(
        run_id=run.pk, source=run.status, attempt=run.attempts, hint="", user=rows.user, now=rows.now
    )
    claim = transitions.claim_run(run_id=run.pk, attempts=run.attempts, now=rows.now)
    assert claim is not None
    from tests.evolution.rows import SCORE

    transitions.await_review(claim, score=SCORE, auto_reason="", has_observation=False, now=rows.now)

    land(rows, [fresh(run)])

    found = RegressionScenario.objects.filter(run_id=run.pk).order_by("pk")
    assert [row.retired_at is None for row in found] == [False, True]


def test_deleting_a_run_takes_its_scenarios_along_and_lists_them(rows: Rows) -> None:
    run = rows.in_review()
    kept, other = scenario_of(land(rows, [run])), scenario_of(land(rows))

    plan = plan_delete(run.pk)
    delete(plan=plan, user=make_user("rita", "review"), now=rows.now)

    assert str(kept) in plan.names
    assert list(RegressionScenario.objects.all()) == [other]
    assert Event.objects.filter(object_id=kept.pk).latest("id").payload["deleted"] is True


def test_a_scenario_kept_since_the_list_was_shown_stops_the_deletion(rows: Rows) -> None:
    run = rows.in_review()
    plan = plan_delete(run.pk)
    land(rows, [run])

    with pytest.raises(Refused, match="changed since it was listed"):
        delete(plan=plan, user=make_user("rita", "review"), now=rows.now)

    assert EvolutionRun.objects.filter(pk=run.pk).exists() and RegressionScenario.objects.exists()


def test_an_apply_is_held_to_what_its_files_and_agents_touch_newest_first(rows: Rows) -> None:
    by_target = scenario_of(land(rows, target="skills/x/SKILL.md", agent_id="other"))
    by_folder = scenario_of(land(rows, target="prompts/all/a.md", agent_id="guide"))
    by_asker = scenario_of(land(rows, target="prompts/all/b.md", agent_id="writer"))
    scenario_of(land(rows, target="agents/guides/AGENT.md", agent_id="guides"))
    retired = scenario_of(land(rows, target="skills/x/SKILL.md", agent_id="guide"))
    retire(scenario_id=retired.pk, user=make_user("rita", "review"), reason="", now=rows.now)
    elsewhere = Rows.make(Path(rows.workspace.path).parent, name="elsewhere")
    land(elsewhere, target="skills/x/SKILL.md")
    apply = rows.approved([rows.in_review(agent_id="writer")])
    changed = ("skills/x/SKILL.md", "agents/guide/AGENT.md")

    found = scenarios_touched(apply, changed=changed, limit=5)

    assert [item.scenario_id for item in found] == [by_asker.pk, by_folder.pk, by_target.pk]
    assert (found[0].answer, found[0].agent_id) == ("Two hours.", "writer")
    assert [item.scenario_id for item in scenarios_touched(apply, changed=changed, limit=1)] == [by_asker.pk]
    assert scenarios_touched(apply, changed=changed, limit=0) == ()


def test_what_its_own_runs_left_before_is_not_asked_twice(rows: Rows) -> None:
    run = rows.in_review()
    land(rows, [run])
    apply = rows.approved([rows.in_review()])
    EvolutionRun.objects.filter(pk=run.pk).update(current_apply=apply)

    assert scenarios_touched(apply, changed=("INSTRUCTIONS.md",), limit=5) == ()


def test_the_texts_of_a_landing_are_the_approved_draft_and_the_landed_answer(rows: Rows) -> None:
    run, gone = rows.in_review(), rows.in_review()
    apply, _ = rows.syncing(rows.approved([run, gone]))
    evolution = rows.workspace.paths.evolution
    draft = AttemptFiles(evolution.run_attempt(run.pk, run.attempts))
    write(draft.patch, patch_text())
    write(draft.baseline, "It depends.")
    merged = AttemptFiles(evolution.apply_attempt(apply.pk, 1))
    write(merged.regress(run.pk).dry_run_output, "Two hours.")

    (found,) = landed_texts(apply)

    assert (found.run_id, found.agent_id, found.target) == (run.pk, "guide", "INSTRUCTIONS.md")
    assert (found.baseline, found.answer) == ("It depends.", "Two hours.")


def facts() -> list[tuple[Any, ...]]:
    return [
        *RegressionScenario.objects.order_by("pk").values_list("pk", "retired_at", "retired_reason"),
        (Event.objects.count(),),
    ]


def test_retiring_and_restoring_name_the_person_and_happen_once(rows: Rows) -> None:
    rita = make_user("rita", "review")
    row = scenario_of(land(rows))
    with pytest.raises(Refused, match="in use already"):
        restore(scenario_id=row.pk, user=rita, now=rows.now)

    retire(scenario_id=row.pk, user=rita, reason="prices moved", now=rows.now)

    row = fresh(row)
    assert (row.retired_by, row.retired_reason) == (rita, "prices moved")
    assert Event.objects.latest("id").payload == {"retired": True, "by": rita.pk}
    before = facts()
    with pytest.raises(Refused) as caught:
        retire(scenario_id=row.pk, user=rita, reason="again", now=rows.now)
    assert caught.value.code == "already_retired" and facts() == before

    restore(scenario_id=row.pk, user=rita, now=rows.now)
    row = fresh(row)
    assert (row.retired_at, row.retired_by, row.retired_reason) == (None, None, "")


@pytest.mark.parametrize("act", ["retire", "restore"])
def test_whoever_may_not_review_changes_nothing(rows: Rows, act: str) -> None:
    row, nils = scenario_of(land(rows)), make_user("nils", "view")
    before = facts()

    with pytest.raises(Refused) as caught:
        if act == "retire":
            retire(scenario_id=row.pk, user=nils, reason="", now=rows.now)
        else:
            restore(scenario_id=row.pk, user=nils, now=rows.now)

    assert caught.value.code == "forbidden" and facts() == before


def test_one_that_went_with_its_run_is_named(rows: Rows) -> None:
    with pytest.raises(Refused) as caught:
        retire(scenario_id="0" * 26, user=make_user("rita", "review"), reason="", now=rows.now)
    assert caught.value.code == "not_found"


def scenarios(*arguments: str) -> str:
    output = StringIO()
    call_command("evo", "scenarios", *arguments, stdout=output)
    return output.getvalue()


def test_the_commands_list_show_retire_and_restore(rows: Rows) -> None:
    make_user("rita", "review")
    assert "No kept scenarios" in scenarios("list")
    row = scenario_of(land(rows))

    assert str(row) in scenarios("list") and "How far?" in scenarios("list")
    assert "Two hours." in scenarios("show", row.pk[-8:])
    assert "retired" in scenarios("retire", str(row), "--as", "rita", "--reason", "prices moved")
    assert str(row) not in scenarios("list")
    shown = json.loads(scenarios("list", "--all", "--json"))
    assert [(item["id"], item["retiredBy"], item["retiredReason"]) for item in shown] == [
        (str(row), "rita", "prices moved")
    ]
    assert "prices moved" in scenarios("show", str(row))
    assert "in use again" in scenarios("restore", str(row), "--as", "rita")
    assert fresh(row).retired_at is None


def test_the_commands_refuse_inside_an_agents_shell_and_without_a_name(
    rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_user("rita", "review")
    row = scenario_of(land(rows))
    before = facts()
    with pytest.raises(CommandError, match="--as"):
        scenarios("retire", str(row))
    with pytest.raises(CommandError, match="no kept scenario"):
        scenarios("retire", "nowhere", "--as", "rita")
    monkeypatch.setenv("HALO_SESSION", "abc")
    with pytest.raises(CommandError, match="HALO_SESSION"):
        scenarios("retire", str(row), "--as", "rita")
    assert facts() == before
