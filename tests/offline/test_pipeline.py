"""The whole way of a change with the offline engine in every part: real phases, composing, loop and tools."""

from __future__ import annotations

import asyncio
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from agents import history as wire
from agents.abort import AbortToken
from agents.loop import run_turn
from agents.turn import ModelChoice, Turn
from agents.views import overlay_view
from core.paths import HaloHome
from evolution import sandbox
from evolution.artifacts.files import AttemptFiles
from evolution.artifacts.frozen import EvoContext, Listing, Meta, PromptFile, write_frozen
from evolution.artifacts.results import Draft, DryRun, Source
from evolution.artifacts.score import ScoreSummary
from evolution.errors import PhaseSkipped
from evolution.gates import GateInput, decide
from evolution.phases import draft as drafting
from evolution.phases import dry_run, merge, regress, score
from evolution.phases.context import ChildResult, ChildSpec, PhaseContext
from tests.offline import harness
from workspaces.compose import compose
from workspaces.overrides import Surface
from workspaces.publish_lock import SurfaceFiles
from workspaces.seed import seed

QUESTION = "How much is shipping to Austria?"
HINT = "too long: give the answer in at most two sentences"
TARGET = "agents/support/AGENT.md"


@dataclass
class House:
    """A seeded home and the sample workspace; children run in this process, one turn each."""

    root: Path

    @property
    def workspace(self) -> Path:
        return self.root / "workspace"

    @property
    def global_folder(self) -> Path:
        return self.root / "home" / "global"

    def child(self, spec: ChildSpec) -> ChildResult:
        composed = compose(
            Surface(SurfaceFiles(spec.surface), spec.global_folder),
            spec.agent_id,
            workspace_root=spec.workspace,
        )
        turn = Turn(
            agent_id=spec.agent_id,
            session_id="s",
            system_prompt=composed.system_prompt,
            history=[wire.user_message(f"[2026-01-31T09:30:00.123Z] {spec.brief}")],
            model=ModelChoice("offline"),
            tools=composed.agent.tools if spec.tools is None else spec.tools,
            access=spec.access,
            view=spec.view,
            emit=lambda event: None,
        )
        outcome = asyncio.run(run_turn(turn, abort=AbortToken()))
        if spec.output is not None:
            spec.output.write_text(outcome.text)
        return ChildResult(int(outcome.status != "completed"), outcome.text, "exit", outcome.error)

    def answer(self, halo: Path, question: str = QUESTION) -> str:
        view = overlay_view(self.workspace, halo, self.global_folder)
        spec = ChildSpec(
            agent_id="support",
            surface=halo,
            global_folder=self.global_folder,
            workspace=self.workspace,
            brief=question,
            view=view,
            access="readonly",
            tools=None,
            model=None,
            session_folder=self.root,
            log=self.root / "log",
        )
        return self.child(spec).text

    def freeze(self, run_id: str, hint: str) -> Path:
        folder = self.workspace / ".halo" / "evo" / "runs" / run_id
        composed = compose(
            Surface(SurfaceFiles(self.workspace / ".halo"), self.global_folder),
            "support",
            workspace_root=self.workspace,
        )
        messages = [
            wire.user_message(f"[2026-01-31T09:30:00.123Z] {QUESTION}"),
            {
                "kind": "response",
                "parts": [{"part_kind": "text", "content": self.answer(self.workspace / ".halo")}],
            },
        ]
        write_frozen(
            folder,
            messages=messages,
            context=EvoContext(
                "support",
                "Support",
                composed.system_prompt,
                tuple(PromptFile(item.rel, item.scope, item.content) for item in composed.files),
                tuple(Listing(item.id, item.scope, item.description) for item in composed.agents),
            ),
            meta=Meta(
                run_id=run_id,
                trigger="note",
                session_id="s1",
                agent_id="support",
                hint=hint,
                workspace=str(self.workspace),
                working_dir=".",
                source_access="full",
                created_at="2026-01-31T09:32:00.000Z",
            ),
        )
        return folder

    def context(self, frozen: Path, hint: str = "") -> PhaseContext:
        folder = frozen / "attempts" / "1"
        folder.mkdir(parents=True)
        return PhaseContext(
            workspace=self.workspace,
            folder=folder,
            frozen=frozen,
            global_folder=self.global_folder,
            language="en-US",
            run_child=self.child,
            progress=lambda *step: None,
            may_end_holder=lambda owner: False,
            hint=hint,
        )


@pytest.fixture
def house(tmp_path: Path) -> House:
    shutil.copytree(harness.SAMPLE, tmp_path / "workspace")
    seed(HaloHome(tmp_path / "home"))
    return House(tmp_path)


def worked(house: House, run_id: str, hint: str) -> tuple[PhaseContext, DryRun, ScoreSummary]:
    ctx = house.context(house.freeze(run_id, hint), hint)
    sandbox.prepare_run(ctx)
    given = drafting.DraftInput()
    made = drafting.draft(ctx, given)
    dry = dry_run.dry_run(ctx, made, fix=lambda failed, why: drafting.fix(ctx, given, failed, why))
    control = dry_run.control(ctx, made)
    return ctx, dry, score.score(ctx, dry, control)


def drafted(house: House, run_id: str, hint: str) -> tuple[PhaseContext, Draft]:
    ctx = house.context(house.freeze(run_id, hint), hint)
    sandbox.prepare_run(ctx)
    return ctx, drafting.draft(ctx, drafting.DraftInput())


def test_the_sample_draft_passes_every_gate(house: House) -> None:
    ctx, dry, summary = worked(house, "01run", HINT)
    sandbox.verify_untouched(ctx)
    assert dry.draft.changed == (TARGET,)
    verdict = decide(
        GateInput(
            source_access="full",
            level="L2",
            threshold=80,
            changes=sandbox.classified(ctx),
            score=summary,
        )
    )
    assert (verdict.passed, verdict.reason) == (True, "")


def test_merged_and_regressed_the_same_question_is_answered_otherwise(house: House) -> None:
    first, dry, _ = worked(house, "01one", HINT)
    second, _, _ = worked(house, "01two", "you buried the price")
    sources = [
        Source(ctx.frozen.name, ctx.folder, ctx.frozen, hint)
        for ctx, hint in ((first, HINT), (second, "you buried the price"))
    ]
    apply = house.context(house.workspace / ".halo" / "evo" / "applies" / "01apply")
    sandbox.prepare_apply(apply)
    merged = merge.merge(apply, sources, "")
    assert merged.changed == (TARGET,)
    outcome = regress.regress(apply, sources, merged, "")
    assert all(run.behavior >= 75 and run.lint == 100 for run in outcome.runs)
    before = house.answer(house.workspace / ".halo")
    after = house.answer(AttemptFiles(apply.folder).sandbox)
    assert after.startswith("Shipping to Austria costs €6.90")
    assert len(after) < len(before) / 3
    assert dry.output != ""


def test_an_imported_conversation_with_any_hint_comes_to_a_score(house: House) -> None:
    _, dry, summary = worked(house, "01run", "ask for the bicycle's year before you answer")
    assert dry.draft.changed == (TARGET,)
    assert summary.samples[0].confidence == "low"


def test_a_hint_whose_rule_stands_is_skipped_with_its_reason(house: House) -> None:
    live = house.workspace / ".halo" / TARGET
    live.write_text(live.read_text() + "- Answer in at most two sentences.\n")
    with pytest.raises(PhaseSkipped, match="already says"):
        drafted(house, "01run", HINT)


def test_a_shipped_agents_file_is_drafted_as_a_workspace_copy(house: House) -> None:
    shutil.move(house.workspace / ".halo" / "agents" / "support", house.global_folder / "agents" / "support")
    ctx, draft = drafted(house, "01run", HINT)
    assert draft.changed == (TARGET,)
    text = (AttemptFiles(ctx.folder).sandbox / TARGET).read_text()
    assert text.startswith("# Support") and "- Answer in at most two sentences." in text
