"""A final row keeps what it changed and nothing else; a row that may still be worked keeps everything."""

from __future__ import annotations

from pathlib import Path

from evolution import transitions
from evolution.artifacts.files import AttemptFiles
from evolution.models import EvolutionRun
from evolution.reduce import reduce_apply, reduce_run
from tests.evolution.phase_world import write
from tests.evolution.rows import Rows


def attempt(rows: Rows, run: EvolutionRun) -> AttemptFiles:
    folder = rows.workspace.paths.evolution.run_attempt(run.pk, run.attempts)
    return filled(folder)


def filled(folder: Path) -> AttemptFiles:
    files = AttemptFiles(folder)
    for root in (files.base, files.sandbox):
        write(root / "INSTRUCTIONS.md", "Old.\n")
        write(root / "INDEX.md", "Same.\n")
    write(files.sandbox / "INSTRUCTIONS.md", "New.\n")
    return files


def kept(files: AttemptFiles) -> list[str]:
    return sorted(path.name for path in files.sandbox.iterdir())


def test_a_failed_run_is_reduced(rows: Rows) -> None:
    run = rows.failed()
    files = attempt(rows, run)
    reduce_run(run.pk)
    assert kept(files) == ["INSTRUCTIONS.md"]
    assert (files.base / "INSTRUCTIONS.md").read_text() == "Old.\n"


def test_a_run_in_review_is_left_alone(rows: Rows) -> None:
    run = rows.in_review()
    files = attempt(rows, run)
    reduce_run(run.pk)
    assert kept(files) == ["INDEX.md", "INSTRUCTIONS.md"]


def test_an_applied_apply_is_reduced_with_its_runs(rows: Rows) -> None:
    run = rows.in_review()
    draft = attempt(rows, run)
    apply = rows.approved([run])
    folder = rows.workspace.paths.evolution.apply_attempt(apply.pk, 1)
    merged = filled(folder)
    claim = transitions.claim_apply(apply_id=apply.pk, attempts=0, now=rows.now)
    assert claim is not None
    reduce_apply(apply.pk)
    assert kept(merged) == kept(draft) == ["INDEX.md", "INSTRUCTIONS.md"]
    claim = transitions.checkpoint(claim, now=rows.now)
    transitions.finish_apply(claim, edited_since=[], now=rows.now)
    reduce_apply(apply.pk)
    assert kept(merged) == kept(draft) == ["INSTRUCTIONS.md"]


def test_a_run_without_a_sandbox_is_left_alone(rows: Rows) -> None:
    run = rows.failed()
    folder = rows.workspace.paths.evolution.run_attempt(run.pk, run.attempts)
    reduce_run(run.pk)
    assert not folder.exists()
