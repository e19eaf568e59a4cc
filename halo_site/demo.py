"""``halo demo``: the main job on the shipped sample, start to end, by the very parts that do it every day."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.contrib.auth.models import User

from core.db.clock import database_now
from core.paths import HaloHome, halo_home
from evolution.approve import approve, seen_now
from evolution.console import as_text
from evolution.follow import follow
from evolution.models import EvolutionApply, EvolutionRun
from evolution.run_view import RunView, view_run
from evolution.states import ApplyStatus, RunStatus
from halo_site.demo_stage import Stage
from halo_site.first_run import ensure_reviewer, prepare
from halo_site.sample_folder import Script, fresh_copy, read_script, use_model
from sessions_app import commands, queue
from sessions_app.create import create_session
from sessions_app.engine import Engine
from sessions_app.models import Session
from workspaces.models import Workspace
from workspaces.register import register

REVIEWER = "demo"
PROJECT_ROOT = Path(__file__).resolve().parents[1]


class DemoEnded(Exception):
    """The text says where it stopped and what to look at."""


@dataclass(frozen=True, slots=True)
class Options:
    """``model`` is an ``agent.yaml`` model section; None plays with the built-in rule engine."""

    model: dict[str, Any] | None = None


def run_demo(options: Options, *, stage: Stage) -> int:
    """Play it; returns the exit code."""
    begun = time.monotonic()
    home = halo_home()
    try:
        Demo(options, home=home, stage=stage).play()
    except DemoEnded as ended:
        stage.heading("The demo stopped here")
        stage.line(str(ended))
        return 1
    stage.note(f"All of it took {time.monotonic() - begun:.0f} s.")
    return 0


class Demo:
    def __init__(self, options: Options, *, home: HaloHome, stage: Stage) -> None:
        self._options = options
        self._home = home
        self._stage = stage
        self._script: Script = read_script()

    def play(self) -> None:
        workspace = self._prepare()
        session, before = self._converse(workspace)
        run = self._evolve(session)
        view = self._review(run)
        apply = self._publish(run)
        after = self._ask_again(workspace)
        self._compare(before=before, after=after)
        self._say_how_back(apply, view)

    def _prepare(self) -> Workspace:
        prepare(self._home)
        folder = fresh_copy(self._home)
        if self._options.model is not None:
            use_model(folder, agent=self._script.agent, model=self._options.model)
        workspace, _ = register(folder, home=self._home, now=database_now())
        self._stage.heading("A workspace of its own")
        self._stage.line(f"{folder}: a shop's documents in .halo/docs, and an agent that answers from them.")
        if self._options.model is None:
            self._stage.line(
                "The agents run on `offline`: a small rule engine that reads these files. No key, no network, and "
                "no language model, so it shows the machinery, not a model's wit."
            )
        else:
            self._stage.line(f"The agents run on {self._options.model['id']}.")
        return workspace

    def _converse(self, workspace: Workspace) -> tuple[Session, str]:
        """Play the conversation; the session, and the answer to the message that is asked again later."""
        self._stage.heading("1  A conversation in which the agent breaks its own rules")
        session = self._new_session(workspace)
        answers = {message: self._ask(session, message) for message in self._script.messages}
        return session, answers.get(self._script.ask_again, "")

    def _new_session(self, workspace: Workspace) -> Session:
        return create_session(
            workspace=workspace,
            agent_id=self._script.agent,
            agent_name=self._script.agent,
            access_level="full",
            now=database_now(),
        )

    def _ask(self, session: Session, text: str) -> str:
        self._stage.said("you", text)
        queue.accept(session=session, text=text, now=database_now())
        engine = Engine(home=self._home)
        try:
            outcome = asyncio.run(engine.work(session.pk))
        finally:
            engine.close()
        if outcome is None or outcome.status != "completed":
            raise DemoEnded(f"The agent gave no answer: {outcome.error if outcome else 'nothing waited'}")
        self._stage.said("agent", outcome.text)
        return outcome.text

    def _evolve(self, session: Session) -> EvolutionRun:
        self._stage.heading(
            "2  /evo: the conversation is frozen, a run drafts a change and puts it to the test"
        )
        command = f"/evo {self._script.hint}"
        self._stage.said("you", command)
        result = commands.run(command, session=session, now=database_now())
        self._stage.said("halo", result.text)
        run = EvolutionRun.objects.filter(source_session_id=session.pk).order_by("-pk").first()
        if not result.ok or run is None:
            raise DemoEnded("The run could not be queued; the line above says why.")
        self._stage.follow(follow(run))
        if run.status != RunStatus.AWAITING_REVIEW:
            raise DemoEnded(f"{run} is {run.status}: {run.failure_reason or run.skip_reason}")
        return run

    def _review(self, run: EvolutionRun) -> RunView:
        self._stage.heading("3  What a reviewer sees")
        run = EvolutionRun.objects.select_related("workspace", "current_apply").get(pk=run.pk)
        view = view_run(run, home=self._home)
        if view.patch is not None:
            self._stage.block("What and why", view.patch.body)
        for change in view.changes:
            self._stage.block(f"{change.rel} against the live file", "")
            self._stage.diff(change.diff())
        if view.patch is not None:
            self._stage.block("Tried with another message", view.patch.scenario.test_message)
        self._stage.block("With the draft (dry run)", view.answers.dry_run)
        self._stage.block("Without it (control)", view.answers.control)
        for lines in (as_text.score(view), as_text.gates(view)):
            if lines:
                self._stage.block(lines[1].strip("─ "), "\n".join(lines[2:]))
        return view

    def _publish(self, run: EvolutionRun) -> EvolutionApply:
        self._stage.heading("4  Approved: merged, tried once more, published file by file")
        reviewer: User = ensure_reviewer(REVIEWER)
        run.refresh_from_db()
        apply = approve(runs=[seen_now(run)], user=reviewer, now=database_now())
        self._stage.note(f"{run} approved by the user {REVIEWER!r} into {apply}")
        self._stage.follow(follow(apply))
        if apply.status != ApplyStatus.APPLIED:
            raise DemoEnded(f"{apply} is {apply.status}: {apply.failure_reason}")
        return apply

    def _ask_again(self, workspace: Workspace) -> str:
        self._stage.heading("5  The same question in a new session: the new files are live")
        return self._ask(self._new_session(workspace), self._script.ask_again)

    def _compare(self, *, before: str, after: str) -> None:
        self._stage.heading("Before and after")
        self._stage.block(f"Before ({len(before.split())} words)", before)
        self._stage.block(f"After ({len(after.split())} words)", after)

    def _say_how_back(self, apply: EvolutionApply, view: RunView) -> None:
        self._stage.heading("And back again, byte for byte, whenever you like")
        self._stage.line(command_line("evo", "rollback", str(apply), "--as", REVIEWER))
        self._stage.note("More: " + command_line("evo", "show", str(view.run)))


def command_line(*arguments: str) -> str:
    """A Halo command as it works when pasted into this shell."""
    home = os.environ.get("HALO_HOME")
    prefix = f"HALO_HOME={shlex.quote(home)} " if home else ""
    return prefix + shlex.join([*_program(), *arguments])


def _program() -> list[str]:
    beside = Path(sys.executable).with_name("halo")
    found = shutil.which("halo")
    if found is not None and Path(found) == beside:
        return ["halo"]
    if not beside.exists():
        return [sys.executable, str(PROJECT_ROOT / "manage.py")]
    try:
        return [str(beside.relative_to(Path.cwd()))]
    except ValueError:
        return [str(beside)]
