"""Wrappers as real processes on real rows and a real workspace; only the agents are scripted."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from django.db import connections

from core.paths import WorkspacePaths
from evolution import ticker, transitions, wrapper, zygote
from evolution.artifacts.files import AttemptFiles
from evolution.artifacts.frozen import EvoContext, Listing, Meta, PromptFile, write_frozen
from evolution.claim import RunSeen
from evolution.models import EvolutionApply, EvolutionRun
from evolution.spawn import Order
from tests.evolution.phase_world import conversation, patch_text, write
from tests.evolution.rows import SCORE, Rows, fresh
from tests.evolution.scripted_agents import NEW, OLD, SCRIPTED_AGENTS

Step = Callable[[str], None]


def nothing(_name: str) -> None:
    """The step hook of a wrapper that nothing happens to."""


def fork_wrapper(order: Order, *, step: Step = nothing, agents: str = SCRIPTED_AGENTS) -> int:
    """Start a wrapper process and wait for its end: its exit code, negative for a signal."""
    pid = start_wrapper(order, step=step, agents=agents)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def start_wrapper(order: Order, *, step: Step = nothing, agents: str = SCRIPTED_AGENTS) -> int:
    """The pid of a wrapper process; the caller has to wait for it. ``agents`` is what its children run.

    A fork of the test, so that hundreds are quick; ``test_wrapper_command`` starts the command itself.
    """
    connections.close_all()
    pid = os.fork()
    if pid:
        return pid
    code = 70
    try:
        os.setsid()
        order.log.parent.mkdir(parents=True, exist_ok=True)
        log = os.open(order.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.dup2(log, 1)
        os.dup2(log, 2)
        sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__  # type: ignore[assignment]
        warm = None if order.verb == "rollback" else zygote.start(agents)
        code = wrapper.work(order, zygote=warm, step=step, afterwards=lambda: None)
    except BaseException:  # noqa: BLE001 - this process must not go on as the test
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


@dataclass
class Steps:
    """A step hook that acts at the ``at``-th step, counted from 1, and notes the names in ``log``."""

    log: Path
    at: int = 0
    act: Callable[[], None] = lambda: os.kill(os.getpid(), signal.SIGKILL)
    also: dict[str, Callable[[], None]] = field(default_factory=dict)
    count: int = 0

    def __call__(self, name: str) -> None:
        self.count += 1
        with self.log.open("a") as log:
            log.write(name + "\n")
        if name in self.also:
            self.also[name]()
        if self.count == self.at:
            self.act()


@dataclass
class ProcessWorld:
    """One workspace on disk and in the database."""

    rows: Rows

    @classmethod
    def make(cls, folder: Path, name: str) -> ProcessWorld:
        world = cls(Rows.make(folder, name=name))
        for rel, text in OLD.items():
            write(world.paths.halo / rel, text)
        write(world.paths.halo / "agents/guide/agent.yaml", "name: Guide\ntools: [file_read]\n")
        return world

    @property
    def paths(self) -> WorkspacePaths:
        return self.rows.workspace.paths

    def pending(self, **values: Any) -> EvolutionRun:
        """A run as enqueued: its frozen files, then its row."""
        run = self.rows.pending(agent_id="guide", **values)
        instructions = PromptFile("INSTRUCTIONS.md", "workspace", OLD["INSTRUCTIONS.md"])
        write_frozen(
            self.paths.evolution.run(run.pk),
            messages=conversation(),
            context=EvoContext("guide", "Guide", "prompt", (instructions,), (Listing("guide", "workspace"),)),
            meta=Meta(
                run_id=run.pk,
                trigger="note",
                session_id=run.source_session_id,
                agent_id="guide",
                hint="",
                workspace=str(self.paths.root),
                working_dir=".",
                source_access="full",
                created_at="2026-01-31T09:32:00.000Z",
            ),
        )
        return run

    def approved(self) -> EvolutionApply:
        """A pending apply of a run that has all its artifacts; the run's own wrapper is not played."""
        run = self.pending()
        claim = transitions.claim_run(run_id=run.pk, attempts=0, now=self.rows.now)
        assert claim is not None
        files = AttemptFiles(self.paths.evolution.run_attempt(run.pk, 1))
        write(files.patch, patch_text())
        write(files.baseline, "It depends.\n")
        write(files.dry_run_output, "Two hours.\n")
        for rel, text in NEW.items():
            write(files.sandbox / rel, text)
        transitions.await_review(
            claim, score=SCORE, auto_reason="level", has_observation=False, now=self.rows.now
        )
        apply_id = transitions.approve(
            runs=[RunSeen(run.pk, 1)],
            workspace_id=self.rows.workspace.pk,
            user=self.rows.user,
            now=self.rows.now,
        )
        return EvolutionApply.objects.get(pk=apply_id)

    def applied(self) -> EvolutionApply:
        apply = self.approved()
        assert tick() == [0]
        assert fresh(apply).status == "applied"
        return fresh(apply)

    def begin_rollback(self, apply: EvolutionApply) -> Order:
        with ticker.ticker_lock():
            claim = transitions.begin_rollback(
                apply_id=apply.pk,
                attempts=apply.attempts,
                user=self.rows.user,
                force=False,
                seen=[],
                now=ticker.database_now(),
            )
        return ticker.order_for(claim)

    def surface(self) -> dict[str, str]:
        """The published files as they are live."""
        halo = self.paths.halo
        return {rel: (halo / rel).read_text() for rel in NEW if (halo / rel).exists()}

    @property
    def marker_stands(self) -> bool:
        return self.paths.evolution.marker_file.exists()


def tick(step: Step = nothing, *, agents: str = SCRIPTED_AGENTS, now: datetime | None = None) -> list[int]:
    """One pass; each wrapper is a process that is waited for. Their exit codes."""
    codes: list[int] = []
    ticker.tick(spawn=lambda order: codes.append(fork_wrapper(order, step=step, agents=agents)), now=now)
    return codes


def tick_to_rest(step: Step = nothing, *, agents: str = SCRIPTED_AGENTS) -> None:
    """Passes until one finds nothing to start."""
    while tick(step, agents=agents):
        pass
