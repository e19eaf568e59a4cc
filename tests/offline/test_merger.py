"""The merger brings approved lines into files that have moved on, or says why it can't."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from evolution.briefs.draft import draft_brief
from evolution.briefs.merge import MergeBrief, MergeSource, merge_brief
from tests.offline import harness
from tests.offline.conftest import LONG
from tests.offline.harness import Attempt

TARGET = "agents/support/AGENT.md"


@dataclass(frozen=True, slots=True)
class Merging:
    """An apply's folder; ``live`` is its sandbox as copied from the surface."""

    apply: Attempt
    sources: tuple[MergeSource, ...]

    async def run(self, hint: str = "") -> str:
        folder = self.apply.folder
        brief = MergeBrief(
            apply_id="01APPLY",
            attempt=1,
            language="en-US",
            reviewer_hint=hint,
            workspace=folder,
            base=self.apply.base,
            sandbox=self.apply.sandbox,
            log=folder / "apply.log",
            abort=folder / "ABORT.md",
            sources=self.sources,
        )
        played = await self.apply.work("__apply_agent__", merge_brief(brief))
        assert played.status == "completed"
        return (self.apply.sandbox / TARGET).read_text()

    def aborted(self) -> str:
        """The reason; nothing may have been changed."""
        assert self.apply.changed() == ()
        assert not (self.apply.folder / "apply.log").exists()
        return self.apply.text("ABORT.md").splitlines()[0]


async def merging(folder: Path, *hints: str) -> Merging:
    """One run for each hint, drafted on the same base; all below one folder, so that the merger may read them."""
    apply = harness.attempt(folder, [("x", "y")])
    sources = []
    for number, hint in enumerate(hints, 1):
        place = folder / f"run{number}"
        run = harness.attempt(place, [("Can I send a tyre back?", LONG)])
        await run.work("__evo_agent__", draft_brief(run.draft_brief(hint=hint)))
        changed = run.changed()
        sources.append(MergeSource(f"0{number}", place / "patch.md", run.base, run.sandbox, changed, hint))
    return Merging(apply, tuple(sources))


async def test_one_source_lands_and_is_logged(tmp_path: Path) -> None:
    case = await merging(tmp_path / "a", "too long")
    text = await case.run()
    assert "- Answer in at most two sentences.\n" in text
    assert case.apply.text("apply.log").startswith(f"run-01: applied {TARGET}: taken as drafted\n")
    assert not (case.apply.folder / "ABORT.md").exists()


async def test_two_sources_in_one_file_both_land_beside_a_persons_edit(tmp_path: Path) -> None:
    case = await merging(tmp_path / "a", "too long", "I hate bullet points")
    live = case.apply.sandbox / TARGET
    live.write_text(live.read_text().replace("# Support", "# Support\n\nA person added this."))
    text = await case.run()
    assert "A person added this." in text
    assert text.count("- Answer in at most two sentences.") == 1
    assert text.count("- Answer in prose, without lists.") == 1
    assert case.apply.text("apply.log").count("applied") == 2


async def test_the_same_rule_twice_lands_once(tmp_path: Path) -> None:
    case = await merging(tmp_path / "a", "too long", "far too verbose")
    assert (await case.run()).count("- Answer in at most two sentences.") == 1


async def test_contradicting_sources_are_refused(tmp_path: Path) -> None:
    case = await merging(
        tmp_path / "a", "answer in at most two sentences", "answer in at most five sentences"
    )
    await case.run()
    assert "run-01 and run-02 contradict each other" in case.aborted()


async def test_a_line_that_is_gone_is_no_place_to_change(tmp_path: Path) -> None:
    case = await merging(tmp_path / "a", "too long")
    source = case.sources[0]
    for halo in (source.base, source.sandbox):
        shutil.copy(case.apply.base / TARGET, halo / TARGET)
    text = (source.base / TARGET).read_text()
    (source.sandbox / TARGET).write_text(text.replace("- Keep answers short:", "- Keep answers very short:"))
    run = Attempt(source.patch.parent)
    changed = MergeSource(source.run_id, source.patch, source.base, source.sandbox, run.changed())
    for halo in (case.apply.base, case.apply.sandbox):
        (halo / TARGET).write_text(text.replace("- Keep answers short: people", "- People"))
    again = Merging(case.apply, (changed,))
    await again.run()
    assert "the text it changes is gone" in again.aborted()


@pytest.mark.parametrize("hint", ["only run-02", "leave out run-01", "without run-01, please"])
async def test_a_hint_that_names_sources_is_a_limit(tmp_path: Path, hint: str) -> None:
    case = await merging(tmp_path / "a", "too long", "I hate bullet points")
    text = await case.run(hint)
    assert "two sentences" not in text and "in prose" in text
    assert "run-01: left out" in case.apply.text("apply.log")


@pytest.mark.parametrize("hint", ["not run-01", "leave out run-01 and run-02"])
async def test_a_hint_that_leaves_no_source_applies_none(tmp_path: Path, hint: str) -> None:
    case = await merging(tmp_path / "a", *["too long", "I hate bullet points"][: hint.count("run-")])
    await case.run(hint)
    assert case.aborted() == "The reviewer's hint leaves nothing to apply."


async def test_a_hint_may_soften_a_rule(tmp_path: Path) -> None:
    case = await merging(tmp_path / "a", "too long")
    text = await case.run("fine, but answer in at most four sentences")
    assert "- Answer in at most four sentences.\n" in text and "two sentences" not in text
    assert "became" in case.apply.text("apply.log")


async def test_a_limit_it_cannot_read_stops_it(tmp_path: Path) -> None:
    case = await merging(tmp_path / "a", "too long")
    await case.run("only for customers from Norway")
    assert "can't read" in case.aborted()


async def test_a_friendly_word_is_no_limit(tmp_path: Path) -> None:
    case = await merging(tmp_path / "a", "too long")
    assert "two sentences" in await case.run("looks good to me")
