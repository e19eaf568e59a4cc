"""Runs and applies as plain text, made to be read top to bottom before a decision."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from evolution.artifacts.verdict import gates_of
from evolution.models import EvolutionApply, EvolutionRun, RegressionScenario
from evolution.outcome import said
from evolution.run_view import RunView
from evolution.states import ApplyStatus, RunStatus

if TYPE_CHECKING:
    from evolution.archive import ArchiveReport

_RULE = "─" * 78


def run_lines(
    runs: Sequence[EvolutionRun], *, now: datetime, stale: Collection[str] = frozenset()
) -> list[str]:
    """One line a run, newest first as given; ``stale``: ids of drafts whose files have changed since."""
    if not runs:
        return ["No runs yet. In a chat: /evo what went wrong"]
    return [
        f"{run}  {state(run):<22} {score_word(run):>5}  {age(run.created_at, now=now):>4}  "
        f"{run.workspace.name}/{run.agent_id}  {'stale  ' if run.pk in stale else ''}{_clip(run.user_hint, 48)}"
        for run in runs
    ]


def run_page(view: RunView) -> list[str]:
    run = view.run
    lines = [
        f"{run}  {state(run)}",
        f"workspace {run.workspace.path}   agent {run.agent_id}   session {run.source_session_id}",
    ]
    if run.user_hint:
        lines.append(f"hint      {run.user_hint}")
    for label, text in (("skipped", run.skip_reason), ("failed", run.failure_reason)):
        if text:
            lines.append(f"{label:<9} {text}")
    if run.decided_by is not None:
        lines.append(f"decided   by {run.decided_by.get_username()}: {run.decision_reason or '-'}")
    if run.current_apply is not None:
        why = f": {run.current_apply.failure_reason}" if run.current_apply.failure_reason else ""
        lines.append(f"apply     {run.current_apply} is {run.current_apply.status}{why}")
        if run.status == RunStatus.AWAITING_REVIEW:
            lines.append("          its gates had let it through; now a person decides")
    if run.archived_at is not None:
        lines.append(f"archived  {run.archived_at:%Y-%m-%d %H:%M} UTC into {view.folder}")
    lines += [f"not shown {words}" for words in view.unread]
    if view.patch is not None:
        lines += section("The draft: what and why", view.patch.body)
    lines += changes(view)
    if view.patch is not None:
        lines += section("Asked", view.patch.scenario.test_message)
    lines += answers(view)
    lines += score(view)
    lines += gates(view)
    if view.observation:
        lines += section("Larger observation", view.observation)
    return [*lines, "", *next_steps(run)]


def state(run: EvolutionRun) -> str:
    apply = run.current_apply
    if run.status == RunStatus.APPROVED and apply is not None:
        return f"approved, apply {apply.status}"
    if run.status == RunStatus.RUNNING and run.phase:
        return f"running: {run.phase}"
    return str(run.status)


def score_word(run: EvolutionRun) -> str:
    return "" if run.score_avg is None else f"{run.score_avg:.0f}"


def changes(view: RunView) -> list[str]:
    lines: list[str] = []
    for change in view.changes:
        title = f"{change.rel} against what is live now"
        if change.has_landed:
            title = f"{change.rel}: landed"
        elif change.is_stale:
            title += " (it has changed since the draft was made)"
        lines += section(title, change.diff())
    return lines


def answers(view: RunView) -> list[str]:
    shown = (
        ("The answer that was given", view.answers.baseline),
        ("Without the draft (control)", view.answers.control),
        ("With the draft (dry run)", view.answers.dry_run),
        ("After the merge (regression)", view.answers.regression),
    )
    return [line for title, text in shown if text for line in section(title, text)]


def score(view: RunView) -> list[str]:
    found = view.score
    if found is None:
        return []
    shown = found.shown
    asked = len(found.samples)
    spread = f", spread {found.spread:.1f} over {asked} askings" if asked > 1 else ", asked once"
    text = [
        f"{shown.avg:.1f} of 100   lint {shown.lint}   behavior {shown.behavior}   scope {shown.scope}",
        f"confidence {shown.confidence}{spread}",
        "   ".join(f"{name}: {word}" for name, word in shown.checks.items()),
    ]
    if found.capped:
        text.append("The control run answered just as the dry run did, so behavior was held at 50.")
    notes = [sample.notes for sample in found.samples if sample.notes]
    return section("Score", "\n".join([*text, *notes]))


def gates(view: RunView) -> list[str]:
    verdict = view.verdict
    if verdict is None:
        return []
    passed = "pass" if verdict.get("passed") else "don't pass"
    lines = [f"At level {verdict.get('level', '?')} they {passed}: {verdict.get('words', '')}"]
    lines += [
        f"{gate.name:<9} {'pass' if gate.passed else 'held'}  {gate.words}" for gate in gates_of(verdict)
    ]
    for change in verdict.get("changes", ()):
        why = f" ({change['why']})" if change.get("why") else ""
        lines.append(f"{change.get('rel')}: {change.get('category')}{why}")
    return section("The three gates: source, category, score", "\n".join(lines))


def next_steps(run: EvolutionRun) -> list[str]:
    if run.status == RunStatus.AWAITING_REVIEW:
        return [
            f"halo evo approve {run} --as USER",
            f"halo evo reject {run} --as USER --reason TEXT",
            f"halo evo retry {run} --as USER --hint TEXT",
        ]
    if run.status == RunStatus.APPLIED and run.current_apply is not None:
        return [f"halo evo rollback {run.current_apply} --as USER"]
    return []


def apply_page(apply: EvolutionApply) -> list[str]:
    runs = ", ".join(f"run-{pk}" for pk in apply.source_runs.order_by("pk").values_list("pk", flat=True))
    by = apply.approved_by.get_username() if apply.approved_by else "its own gates"
    lines = [
        f"{apply}  {apply.status}{': ' + apply.phase if apply.phase else ''}",
        f"workspace {apply.workspace.path}",
        f"runs      {runs}",
        f"approved  by {by}{': ' + apply.reviewer_hint if apply.reviewer_hint else ''}",
    ]
    if apply.failure_reason:
        lines.append(f"reason    {apply.failure_reason}")
    if apply.drifted:
        lines.append(f"edited    {', '.join(map(str, apply.drifted))}")
    if apply.kept_dirs:
        lines.append(f"kept      {', '.join(map(str, apply.kept_dirs))} (they hold other files)")
    if apply.needs_person:
        lines += section("Needs a person", _account(apply.needs_person))
        lines.append(f"halo evo try-again {apply} --as USER")
    if apply.rollback_outcome:
        lines += section("Rollback", _account(apply.rollback_outcome))
    if apply.status == ApplyStatus.APPLIED:
        lines += ["", f"halo evo rollback {apply} --as USER"]
    return lines


def scenario_lines(rows: Sequence[RegressionScenario], *, now: datetime) -> list[str]:
    if not rows:
        return ["No kept scenarios. A run leaves one when its change lands."]
    return [
        f"{row}  {'retired' if row.retired_at else 'in use':<8} {age(row.created_at, now=now):>4}  "
        f"{row.workspace.name}/{row.agent_id}  {row.target}  {_clip(row.test_message, 48)}"
        for row in rows
    ]


def scenario_page(row: RegressionScenario) -> list[str]:
    lines = [
        f"{row}  {'retired' if row.retired_at else 'in use'}",
        f"workspace {row.workspace.path}   agent {row.agent_id}   target {row.target}",
        f"left by   run-{row.run_id} with apply-{row.apply_id}",
    ]
    if row.retired_at:
        by = f" by {row.retired_by.get_username()}" if row.retired_by else ""
        lines.append(f"retired   {row.retired_at:%Y-%m-%d %H:%M} UTC{by}: {row.retired_reason}")
    for title, text in (
        ("Asked", row.test_message),
        ("The answer it is held to", row.answer),
        ("What landed, and why", row.change),
        ("What was really asked", row.original_message),
        ("What was really answered", row.baseline),
    ):
        if text:
            lines += section(title, text)
    verb = "restore" if row.retired_at else "retire"
    return [*lines, "", f"halo evo scenarios {verb} {row} --as USER"]


def archive_report(report: ArchiveReport, *, dry_run: bool) -> list[str]:
    would = "would be " if dry_run else ""
    told = (
        (f"{would}packed", report.archived),
        (f"{would}removed for good", report.purged),
        (
            "can't be rolled back from then on" if dry_run else "can't be rolled back any more",
            report.rollbacks_gone,
        ),
        (f"{would}cleared (left half done by a crash)", report.finished),
        (f"{would}removed (nobody's)", report.orphans),
        (f"{would}reduced to the changed files", report.reduced),
        ("left as it is", report.failed),
    )
    lines = [f"{name}  {words}" for words, names in told for name in names]
    return lines or ["Nothing to do."]


def section(title: str, text: str) -> list[str]:
    return ["", f"── {title} {_RULE[: max(0, 74 - len(title))]}", *text.split("\n")]


def age(moment: datetime, *, now: datetime) -> str:
    seconds = max(0, int((now - moment).total_seconds()))
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "m")):
        if seconds >= size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


def _account(values: dict[str, object]) -> str:
    return "\n".join(f"{label}: {text}" for label, text in said(values))


def _clip(text: str, length: int) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= length else flat[: length - 1] + "…"
