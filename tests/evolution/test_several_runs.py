"""Several drafts in one apply, with the offline engine in every part: real wrappers, children, merger and scorer."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from agents.history import user_message
from core.paths import halo_home
from evolution import zygote
from evolution.approve import approve, seen_now
from evolution.artifacts.files import AttemptFiles
from evolution.artifacts.frozen import EvoContext, Listing, Meta, PromptFile, write_frozen
from evolution.models import EvolutionApply, EvolutionRun, RegressionScenario
from tests.evolution.phase_world import agent
from tests.evolution.process_world import ProcessWorld, tick, tick_to_rest
from tests.evolution.rows import Rows, fresh, make_user
from tests.offline.conftest import LONG
from tests.offline.harness import SAMPLE
from workspaces.seed import seed

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("halo_home"),
    pytest.mark.timeout(600),
]

TARGET = "agents/support/AGENT.md"
QUESTION = "How much is shipping to Austria?"
SHORT, LONGER, PROSE = (
    "answer in at most two sentences",
    "answer in at most five sentences",
    "I hate bullet points",
)
RULES = {
    SHORT: "- Answer in at most two sentences.",
    LONGER: "- Answer in at most five sentences.",
    PROSE: "- Answer in prose, without lists.",
}


@pytest.fixture
def world(tmp_path: Path) -> ProcessWorld:
    seed(halo_home())
    world = ProcessWorld(Rows.make(tmp_path))
    shutil.copytree(SAMPLE, world.paths.root, dirs_exist_ok=True)
    return world


def drafted(world: ProcessWorld, *hints: str) -> list[EvolutionRun]:
    """One run for each hint, worked by its own wrapper until it awaits review; in id order."""
    runs = [_pending(world, hint) for hint in hints]
    tick_to_rest(agents=zygote.CHILD)
    runs = [fresh(run) for run in runs]
    assert [(run.status, run.failure_reason) for run in runs] == [("awaiting_review", "")] * len(hints)
    return runs


def _pending(world: ProcessWorld, hint: str) -> EvolutionRun:
    run = world.rows.pending(agent_id="support", user_hint=hint)
    prompt = PromptFile(TARGET, "workspace", (world.paths.halo / TARGET).read_text())
    write_frozen(
        world.paths.evolution.run(run.pk),
        messages=[user_message(f"[2026-01-31T09:30:00.123Z] {QUESTION}"), agent(LONG)],
        context=EvoContext("support", "Support", "prompt", (prompt,), (Listing("support", "workspace"),)),
        meta=Meta(
            run_id=run.pk,
            trigger="note",
            session_id=run.source_session_id,
            agent_id="support",
            hint=hint,
            workspace=str(world.paths.root),
            working_dir=".",
            source_access="full",
            created_at="2026-01-31T09:32:00.000Z",
        ),
    )
    return run


def let_through(world: ProcessWorld, runs: list[EvolutionRun], hint: str = "") -> EvolutionApply:
    """The apply of all of them, worked to its end."""
    apply = approve(
        runs=[seen_now(run) for run in runs],
        user=make_user("rosa", "review"),
        hint=hint,
        now=world.rows.now,
    )
    assert tick(agents=zygote.CHILD) == [0]
    return fresh(apply)


def live(world: ProcessWorld) -> str:
    return (world.paths.halo / TARGET).read_text()


def landed(world: ProcessWorld) -> list[str]:
    """The hints whose rules are live, each once."""
    lines = live(world).splitlines()
    assert all(lines.count(rule) <= 1 for rule in RULES.values())
    return [hint for hint, rule in RULES.items() if rule in lines]


def test_two_drafts_land_in_one_apply_beside_an_edit_of_a_person(world: ProcessWorld) -> None:
    runs = drafted(world, SHORT, PROSE)
    path = world.paths.halo / TARGET
    path.write_text(f"{path.read_text()}\nA person added this.\n")

    apply = let_through(world, runs)

    assert (apply.status, apply.failure_reason) == ("applied", "")
    assert [fresh(run).status for run in runs] == ["applied", "applied"]
    assert landed(world) == [SHORT, PROSE]
    assert "A person added this." in live(world)
    kept = RegressionScenario.objects.order_by("pk").values_list("run_id", "apply_id")
    assert sorted(kept) == [(run.pk, apply.pk) for run in runs]


def test_contradicting_drafts_publish_nothing_and_can_be_approved_apart(world: ProcessWorld) -> None:
    runs, before = drafted(world, SHORT, LONGER), live(world)

    apply = let_through(world, runs)

    assert apply.status == "failed"
    assert f"run-{runs[0].pk} and run-{runs[1].pk} contradict each other" in apply.failure_reason
    files = AttemptFiles(world.paths.evolution.apply_attempt(apply.pk, 1))
    assert files.abort.read_text().splitlines()[0] == apply.failure_reason
    assert live(world) == before
    assert not world.paths.evolution.history(apply.pk).exists()
    assert not RegressionScenario.objects.exists()
    runs = [fresh(run) for run in runs]
    assert [(run.status, run.current_apply_id) for run in runs] == [("approved", apply.pk)] * 2

    again = let_through(world, runs[1:])
    assert (again.status, landed(world)) == ("applied", [LONGER])
    assert [fresh(run).status for run in runs] == ["approved", "applied"]


def test_a_draft_that_the_reviewers_hint_leaves_out_is_not_called_applied(world: ProcessWorld) -> None:
    """Its scenario can't hold on files without it: nothing lands, and the reason names it."""
    runs, before = drafted(world, SHORT, PROSE), live(world)
    apply = let_through(world, runs, f"only run-{runs[1].pk}")
    log = AttemptFiles(world.paths.evolution.apply_attempt(apply.pk, 1)).apply_log.read_text()
    assert f"run-{runs[0].pk}: left out, as the reviewer's hint says" in log
    assert apply.status == "failed"
    assert apply.failure_reason.startswith(f"run-{runs[0].pk} no longer works after the merge")
    assert live(world) == before
    assert [fresh(run).status for run in runs] == ["approved", "approved"]


def test_a_draft_lands_no_further_than_the_reviewers_hint_allows(world: ProcessWorld) -> None:
    runs = drafted(world, SHORT)
    apply = let_through(world, runs, "fine, but answer in at most three sentences")
    assert (apply.status, apply.failure_reason) == ("applied", "")
    assert landed(world) == []
    assert "- Answer in at most three sentences." in live(world).splitlines()


def test_a_hint_that_leaves_nothing_or_cannot_be_read_publishes_nothing(world: ProcessWorld) -> None:
    (run,), before = drafted(world, SHORT), live(world)
    for hint, reason in [
        (f"not run-{run.pk}", "The reviewer's hint leaves nothing to apply."),
        ("only for customers from Norway", "can't read: only for customers from Norway"),
    ]:
        apply = let_through(world, [fresh(run)], hint)
        assert apply.status == "failed"
        assert apply.failure_reason.endswith(reason)
        assert (fresh(run).status, live(world)) == ("approved", before)
