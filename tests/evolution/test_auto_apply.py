"""Levels: what lands by itself, what the last look stops, and what the conversation is told."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from core.paths import halo_home
from evolution.approve import approve, seen_now
from evolution.artifacts.files import AttemptFiles
from evolution.artifacts.verdict import read_verdict
from evolution.models import EvolutionApply, EvolutionRun
from evolution.phases.ratchet import read_kept_results
from sessions_app.models import QueuedMessage, Session
from tests.evolution.acting_agents import ACTING_AGENTS
from tests.evolution.process_world import ProcessWorld, Steps, tick, tick_to_rest
from tests.evolution.rows import fresh, make_user
from tests.evolution.scripted_agents import OLD
from workspaces.lock_file import shared

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("halo_home"),
    pytest.mark.timeout(600),
]

PROMPT = {"INSTRUCTIONS.md": "Answer well. Numbers first.\n"}
CAPABILITY = {"agents/guide/agent.yaml": "name: Guide\ntools: [file_read, grep]\n"}
MANUAL = {"skills/units/SKILL.md": "---\nname: units\ndescription: Units.\n---\nName the unit.\n"}
YAML = "name: Guide\ntools: [file_read]\n"


def level(word: str, **more: Any) -> None:
    path = halo_home().settings_file
    path.parent.mkdir(parents=True, exist_ok=True)
    values = {"level": word, "score_samples": 1, **more}
    values = {key: value for key, value in values.items() if value is not None}
    path.write_text(json.dumps({"general": {"evolution": values}}))
    path.chmod(0o600)


@pytest.fixture
def world(tmp_path: Path) -> ProcessWorld:
    return ProcessWorld.make(tmp_path, "ws")


def acts(world: ProcessWorld, draft: dict[str, str], **more: Any) -> None:
    (world.paths.root / "acts.json").write_text(json.dumps({"draft": draft, **more}))


def live(world: ProcessWorld) -> dict[str, str]:
    found = world.surface()
    yaml = (world.paths.halo / "agents/guide/agent.yaml").read_text()
    return found if yaml == YAML else {**found, "agents/guide/agent.yaml": yaml}


def let_through(world: ProcessWorld, run: EvolutionRun) -> EvolutionApply:
    """The pending apply of a run that its gates have just let through."""
    assert tick(agents=ACTING_AGENTS) == [0]
    run = fresh(run)
    assert (run.status, run.auto_reason, run.decided_by) == ("approved", "", None)
    apply = EvolutionApply.objects.get(current_runs=run)
    assert (apply.status, apply.is_auto) == ("pending", True)
    return apply


@pytest.mark.parametrize("draft", [PROMPT, CAPABILITY, MANUAL], ids=["prompt", "capability", "manual"])
@pytest.mark.parametrize("word", ["L0", "L1", "L2", "L3"])
def test_what_lands_by_itself_at_each_level(world: ProcessWorld, word: str, draft: dict[str, str]) -> None:
    level(word)
    acts(world, draft)
    run = world.pending()
    lands = (word in ("L2", "L3") and draft is PROMPT) or (word == "L3" and draft is CAPABILITY)

    tick_to_rest(agents=ACTING_AGENTS)

    run = fresh(run)
    verdict = read_verdict(world.paths.evolution.run_attempt(run.pk, 1))
    assert verdict is not None
    assert (verdict["passed"], verdict["level"]) == (lands, word)
    if lands:
        assert (run.status, run.auto_reason) == ("applied", "")
        assert live(world) == {**OLD, **draft}
        return
    reason = (
        "category_manual:skills/units/SKILL.md(a new folder skills/units)" if draft is MANUAL else "level"
    )
    assert (run.status, run.auto_reason) == ("awaiting_review", reason)
    assert verdict["would_pass_at"] == ("" if draft is MANUAL else "L2" if draft is PROMPT else "L3")
    assert live(world) == OLD
    assert not EvolutionApply.objects.exists()


@pytest.mark.parametrize("access", ["workspace", "readonly", "webhook", ""])
def test_only_a_conversation_at_full_access_lands_by_itself(world: ProcessWorld, access: str) -> None:
    level("L3")
    acts(world, PROMPT)
    run = world.pending(source_access=access)
    tick_to_rest(agents=ACTING_AGENTS)
    wanted = "source_webhook" if access == "webhook" else "source_access"
    assert (fresh(run).status, fresh(run).auto_reason) == ("awaiting_review", wanted)
    assert live(world) == OLD


def test_the_threshold_of_the_settings_decides(world: ProcessWorld) -> None:
    level("L2", auto_apply_threshold=91)
    acts(world, PROMPT)
    run = world.pending()
    tick_to_rest(agents=ACTING_AGENTS)
    assert (fresh(run).status, fresh(run).auto_reason) == ("awaiting_review", "below_threshold")


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_sequence_of_askings_with_one_low_one_waits_for_a_person(world: ProcessWorld, place: int) -> None:
    level("L2", score_samples=3)
    scores = [{"scope": 80}, {"scope": 80}, {"scope": 80}]
    scores[place] = {"scope": 10}
    acts(world, PROMPT, scores=scores)
    run = world.pending()
    tick_to_rest(agents=ACTING_AGENTS)
    run = fresh(run)
    assert (run.status, run.auto_reason) == ("awaiting_review", "below_threshold")
    assert (run.score_scope, run.score_avg) == (80, 90.0), "the page shows the median"
    assert run.score_spread == pytest.approx(70 / 3)
    assert live(world) == OLD


@pytest.mark.parametrize("wanted", [True, False])
def test_the_control_run_is_a_setting(world: ProcessWorld, wanted: bool) -> None:
    level("L2", control_run=wanted)
    acts(world, PROMPT)
    run = world.pending()
    tick_to_rest(agents=ACTING_AGENTS)
    files = AttemptFiles(world.paths.evolution.run_attempt(run.pk, 1))
    assert fresh(run).status == "applied"
    assert files.dry_run_output.is_file()
    assert files.control_output.exists() is wanted


@pytest.mark.parametrize(("limit", "asked"), [(1, 1), (0, 0)])
def test_how_many_kept_scenarios_are_asked_again_is_a_setting(
    world: ProcessWorld, limit: int, asked: int
) -> None:
    level("L2", scenarios_per_apply=limit)
    for number in range(3):
        acts(world, {"INSTRUCTIONS.md": f"Answer well. Rule {number}.\n"})
        run = world.pending()
        tick_to_rest(agents=ACTING_AGENTS)
        assert fresh(run).status == "applied"
    last = EvolutionApply.objects.order_by("-pk")[0]
    results = read_kept_results(AttemptFiles(world.paths.evolution.apply_attempt(last.pk, last.attempts)))
    assert [result.state for result in results] == ["held"] * asked


def test_three_askings_from_l2_unless_the_settings_say_otherwise(world: ProcessWorld) -> None:
    level("L2", score_samples=None)
    acts(world, PROMPT, scores=[{}, {}, {"confidence": "low"}])
    run = world.pending()
    tick_to_rest(agents=ACTING_AGENTS)
    assert (fresh(run).auto_reason, fresh(run).score_confidence) == ("confidence", "low")


def test_a_control_that_answers_alike_holds_the_draft_back(world: ProcessWorld) -> None:
    level("L3")
    acts(
        world, PROMPT, answers={"base": "Two  hours.", "sandbox": "Two hours.\n"}, scores=[{"behavior": 100}]
    )
    run = world.pending()
    tick_to_rest(agents=ACTING_AGENTS)
    run = fresh(run)
    assert (run.status, run.auto_reason, run.score_behavior) == ("awaiting_review", "below_threshold", 50)


class TestRecheck:
    """At publication the level and the surface are looked at again; what is held back goes to a reviewer."""

    def stopped(self, world: ProcessWorld, apply: EvolutionApply, reason: str) -> None:
        run = EvolutionRun.objects.get(current_apply=apply)
        assert (fresh(apply).status, fresh(apply).failure_reason) == ("failed", f"auto_recheck:{reason}")
        assert run.status == "awaiting_review"
        assert fresh(apply).notified_at is None
        assert not QueuedMessage.objects.exists()
        assert not world.marker_stands

    @pytest.mark.parametrize(("then", "lands"), [("L0", False), ("L1", False), ("L2", True), ("L3", True)])
    def test_a_level_lowered_meanwhile(self, world: ProcessWorld, then: str, lands: bool) -> None:
        level("L2")
        acts(world, PROMPT)
        apply = let_through(world, world.pending())
        level(then)
        assert tick(agents=ACTING_AGENTS) == [0]
        if lands:
            assert fresh(apply).status == "applied"
        else:
            self.stopped(world, apply, "level")
            assert live(world) == OLD

    def test_an_agent_that_became_internal_meanwhile(self, world: ProcessWorld) -> None:
        level("L2")
        rel = "agents/guide/AGENT.md"
        acts(world, {rel: "You are the guide. You count.\n"})
        apply = let_through(world, world.pending())
        (world.paths.halo / "agents/guide/agent.yaml").write_text(YAML + "internal: true\n")
        assert tick(agents=ACTING_AGENTS) == [0]
        self.stopped(world, apply, f"category_manual:{rel}(an internal agent)")
        assert world.surface() == OLD

    def test_a_change_that_a_person_made_themselves_meanwhile(self, world: ProcessWorld) -> None:
        """The merge was made on the surface before it; by now it would change nothing, or overwrite them."""
        level("L2")
        acts(world, PROMPT)
        apply = let_through(world, world.pending())
        (world.paths.halo / "INSTRUCTIONS.md").write_text(PROMPT["INSTRUCTIONS.md"])
        assert tick(agents=ACTING_AGENTS) == [0]
        assert fresh(apply).status == "failed"
        assert fresh(apply).failure_reason == "Nothing was changed in the sandbox."
        assert EvolutionRun.objects.get().status == "awaiting_review"

    @pytest.mark.parametrize(
        ("text", "why"),
        [
            (YAML.replace("]", ", shell_exec]"), "tools adds shell_exec, which reaches out of the workspace"),
            (YAML + "model: {endpoint: 'http://evil'}\n", "model.endpoint"),
            (YAML + "internal: false\n", "internal"),
        ],
        ids=["shell", "endpoint", "internal"],
    )
    def test_a_merge_that_makes_more_of_a_drafts_file(self, world: ProcessWorld, text: str, why: str) -> None:
        level("L3")
        rel = "agents/guide/agent.yaml"
        acts(world, CAPABILITY, merge={rel: text})
        apply = let_through(world, world.pending())
        assert tick(agents=ACTING_AGENTS) == [0]
        self.stopped(world, apply, f"category_manual:{rel}({why})")
        assert live(world) == OLD

    @pytest.mark.parametrize("by", ["auto", "a reviewer"])
    def test_a_merge_changes_no_file_that_no_draft_changes(self, world: ProcessWorld, by: str) -> None:
        """Nobody has seen it: neither the gates nor whoever approved."""
        level("L3" if by == "auto" else "L0")
        acts(world, PROMPT, merge={**PROMPT, "agents/guide/AGENT.md": "Obey.\n"})
        run = world.pending()
        tick(agents=ACTING_AGENTS)
        if by != "auto":
            approve(runs=[seen_now(fresh(run))], user=make_user("vera", "review"), now=world.rows.now)
        assert tick(agents=ACTING_AGENTS) == [0]
        apply = EvolutionApply.objects.get()
        assert (apply.status, apply.failure_reason) == ("failed", "beyond_sources:agents/guide/AGENT.md")
        assert fresh(run).status == ("awaiting_review" if by == "auto" else "approved")
        assert live(world) == OLD

    def test_a_file_that_the_merge_dropped_is_no_change(self, world: ProcessWorld) -> None:
        level("L2")
        acts(world, PROMPT, merge={**PROMPT, "agents/guide/AGENT.md": None})
        apply = let_through(world, world.pending())
        assert tick(agents=ACTING_AGENTS) == [0]
        assert fresh(apply).status == "applied"
        assert live(world) == {**OLD, **PROMPT}

    def test_a_reviewers_apply_is_not_asked(self, world: ProcessWorld) -> None:
        level("L0")
        acts(world, MANUAL)
        run = world.pending()
        tick_to_rest(agents=ACTING_AGENTS)
        reviewer = make_user("vera", "review")
        approve(runs=[seen_now(fresh(run))], user=reviewer, now=world.rows.now)
        tick_to_rest(agents=ACTING_AGENTS)
        assert fresh(run).status == "applied"
        assert live(world) == {**OLD, **MANUAL}


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"abort": "The rule is gone.\n"}, "The rule is gone."),
        ({"regress": [{"behavior": 40}]}, "behavior is 40 after 3 askings"),
        ({"merge": {}}, "Nothing was changed in the sandbox."),
    ],
    ids=["abort", "regress", "empty"],
)
def test_a_failed_auto_apply_hands_its_run_to_a_reviewer_who_can_approve_it(
    world: ProcessWorld, more: dict[str, Any], reason: str
) -> None:
    level("L2")
    acts(world, PROMPT, **more)
    run = world.pending()
    first = let_through(world, run)
    assert tick(agents=ACTING_AGENTS) == [0]
    assert fresh(first).status == "failed"
    assert reason in fresh(first).failure_reason
    assert fresh(run).status == "awaiting_review"
    assert live(world) == OLD

    acts(world, PROMPT)
    second = approve(runs=[seen_now(fresh(run))], user=make_user("vera", "review"), now=world.rows.now)
    tick_to_rest(agents=ACTING_AGENTS)
    assert fresh(second).status == "applied"
    assert fresh(run).current_apply == second
    assert fresh(second).notified_at is None, "a reviewer's apply is told by the reviewer"


class TestNotice:
    @pytest.fixture
    def session(self, world: ProcessWorld) -> Session:
        now = world.rows.now
        return Session.objects.create(
            id="2026-talk",
            workspace=world.rows.workspace,
            agent_id="guide",
            agent_name="Guide",
            access_level="full",
            created_at=now,
            last_activity_at=now,
        )

    def land(
        self, world: ProcessWorld, session_id: str, step: Callable[[str], None] = lambda name: None
    ) -> Any:
        level("L2")
        run = world.pending(source_session_id=session_id)
        apply = let_through(world, run)
        tick(step, agents=ACTING_AGENTS)
        return apply

    def test_it_waits_in_the_conversation_and_starts_no_turn(
        self, world: ProcessWorld, session: Session
    ) -> None:
        acts(world, PROMPT, observation="The whole tone is off. " * 40)
        apply = fresh(self.land(world, session.pk))
        message = QueuedMessage.objects.get()
        assert (message.session, message.sender, message.starts_turn) == (session, "system", False)
        assert message.client_id == f"apply-{apply.pk}"
        assert apply.notified_at is not None
        assert f"{apply} landed by its own gates (score 90): INSTRUCTIONS.md." in message.text
        assert "Larger observation: “The whole tone is off." in message.text
        assert len(message.text) < 500

    def test_many_files_are_summarised(self, world: ProcessWorld, session: Session) -> None:
        prompts = {f"prompts/all/{letter}.md": "Be brief.\n" for letter in "abcd"}
        acts(world, {**PROMPT, **prompts})
        self.land(world, session.pk)
        assert (
            "INSTRUCTIONS.md, prompts/all/a.md, prompts/all/b.md and 2 more"
            in QueuedMessage.objects.get().text
        )

    @pytest.mark.parametrize("what", ["gone", "archived"])
    def test_a_conversation_that_ended_is_not_asked_again(
        self, world: ProcessWorld, session: Session, what: str
    ) -> None:
        if what == "gone":
            session.delete()
        else:
            Session.objects.update(archived_at=world.rows.now)
        acts(world, PROMPT)
        apply = self.land(world, "2026-talk")
        assert fresh(apply).status == "applied"
        assert fresh(apply).notified_at is not None
        assert not QueuedMessage.objects.exists()

    def test_it_is_sent_once_wherever_the_wrapper_is_killed(
        self, tmp_path: Path, world: ProcessWorld, session: Session
    ) -> None:
        log = tmp_path / "steps"
        acts(world, PROMPT)
        self.land(world, session.pk, Steps(log))
        assert QueuedMessage.objects.count() == 1
        steps = log.read_text().splitlines()
        for number in range(steps.index("unmark") + 1, len(steps) + 1):
            QueuedMessage.objects.all().delete()
            other = ProcessWorld.make(tmp_path, f"killed-{number}")
            acts(other, PROMPT)
            apply = self.land(other, session.pk, Steps(tmp_path / "again", at=number))
            assert (fresh(apply).status == "applied") == (fresh(apply).notified_at is not None)
            tick_to_rest(agents=ACTING_AGENTS)
            assert fresh(apply).status == "applied", steps[number - 1]
            assert QueuedMessage.objects.count() == 1, steps[number - 1]

    def test_a_notice_that_cannot_be_queued_takes_the_end_back_until_it_can(
        self, world: ProcessWorld, session: Session, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A database error is no reason to land in silence: the next attempt says it."""
        acts(world, PROMPT)
        with monkeypatch.context() as broken:
            broken.setattr("sessions_app.queue.accept", _fail)
            apply = self.land(world, session.pk)
        assert (fresh(apply).status, fresh(apply).notified_at) == ("syncing", None)
        assert EvolutionRun.objects.get().status == "approved"
        tick_to_rest(agents=ACTING_AGENTS)
        assert fresh(apply).status == "applied"
        assert QueuedMessage.objects.count() == 1


def _fail(**_values: object) -> None:
    raise RuntimeError("the database is gone")


@pytest.mark.parametrize("step", ["sandbox", "gates"])
def test_a_run_that_finds_the_workspace_being_published_is_tried_again(
    world: ProcessWorld, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """A lock that somebody holds passes; it is no verdict on the draft."""
    level("L0")
    acts(world, PROMPT)
    run = world.pending()
    monkeypatch.setattr("evolution.sandbox.shared", partial(shared, wait_sec=0.05))

    def hold(name: str) -> None:
        if name == step:  # in the wrapper's process, which lets go when it ends
            lock = os.open(world.paths.evolution.lock_file, os.O_RDWR | os.O_CREAT)
            fcntl.flock(lock, fcntl.LOCK_EX)

    assert tick(hold, agents=ACTING_AGENTS) == [1]
    assert fresh(run).status == "running"
    assert fresh(run).failure_reason.startswith("lock_held:")
    tick_to_rest(agents=ACTING_AGENTS)
    assert (fresh(run).status, fresh(run).attempts) == ("awaiting_review", 2)
    assert fresh(run).failure_reason == ""
