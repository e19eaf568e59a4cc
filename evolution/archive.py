"""What is over is packed after 14 days and gone 30 days later; what a crash left half done is finished.

A pass may be run anywhere on the workspaces' host, any number at once, and killed at any point: each row is
worked under its folder's lock, and its conditional change comes before the removal of its files.
"""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from django.db.models import Q, QuerySet

from core import clock
from core.db.clock import database_now
from core.paths import EvolutionPaths
from core.processes import host_name
from evolution import orphans, transitions, zips
from evolution.folder_lock import FolderBusy, holding
from evolution.models import EvolutionApply, EvolutionRun
from evolution.places import Row, folder_of, kind_of, zip_of
from evolution.reduce import is_reducible, reduce_all
from evolution.spawn import Order
from evolution.states import APPLY_FINAL, RUN_FINAL, ApplyStatus
from evolution.zips import Step, ZipDamaged
from workspaces.models import Workspace

logger = logging.getLogger(__name__)

ARCHIVED_AFTER = timedelta(days=14)
PURGED_AFTER = timedelta(days=30)
REDUCED_AFTER = timedelta(hours=1)
"""A wrapper that was cancelled may still write for a moment; it reduces what it ends itself."""


@dataclass(slots=True)
class ArchiveReport:
    """What a pass did, or with ``dry_run`` would do; all by name.

    ``rollbacks_gone``: applied changes that can't be taken back from now on. ``failed``: what was left for the
    next pass, and why. ``unfinished``: the time it was given was over.
    """

    archived: list[str] = field(default_factory=list)
    purged: list[str] = field(default_factory=list)
    rollbacks_gone: list[str] = field(default_factory=list)
    finished: list[str] = field(default_factory=list)
    orphans: list[str] = field(default_factory=list)
    reduced: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    unfinished: bool = False

    @property
    def did_something(self) -> bool:
        return bool(self.archived or self.purged or self.finished or self.orphans or self.reduced)


def archive(
    *,
    now: datetime | None = None,
    dry_run: bool = False,
    seconds: float | None = None,
    step: Step = lambda name: None,
) -> ArchiveReport:
    """One pass over the workspaces of this host. ``step`` is called between two actions; tests kill there."""
    pass_ = _Pass(
        now=now or database_now(),
        dry_run=dry_run,
        step=step,
        until=None if seconds is None else clock.suspended_seconds() + seconds,
    )
    for workspace in Workspace.objects.filter(host=host_name()).order_by("pk"):
        pass_.work(workspace)
    return pass_.report


class _TimeIsUp(Exception):
    """The pass was given only so many seconds; the next one goes on."""


@dataclass(slots=True)
class _Pass:
    now: datetime
    dry_run: bool
    step: Step
    until: float | None
    report: ArchiveReport = field(default_factory=ArchiveReport)

    def work(self, workspace: Workspace) -> None:
        paths = workspace.paths.evolution
        if not workspace.paths.halo.is_dir() or not orphans.is_usable(paths):
            self._failed(workspace.path, "its .halo/evo can't be reached, or leads elsewhere")
            return
        if not (paths.root.is_dir() or workspace.runs.exists() or workspace.applies.exists()):
            return  # nobody ever asked for a run here
        try:
            if not self.dry_run:
                paths.root.mkdir(exist_ok=True)
            self._tidy(workspace)
            self._each(workspace, self._at_rest_for(REDUCED_AFTER), self._reduce)
            self._each(workspace, self._at_rest_for(ARCHIVED_AFTER), self._archive)
            self._each(workspace, self._over(), self._purge)
        except _TimeIsUp:
            self.report.unfinished = True

    # Which rows, by a condition that is asked once more under the folder's lock.

    def _at_rest_for(self, age: timedelta) -> Q:
        return Q(archived_at__isnull=True, finished_at__lte=self.now - age)

    def _over(self) -> Q:
        """Rolled back since it was archived, a change counts from then."""
        return Q(
            archived_at__lte=self.now - PURGED_AFTER,
            finished_at__lte=self.now - ARCHIVED_AFTER - PURGED_AFTER,
        )

    def _each(self, workspace: Workspace, condition: Q, work: Callable[[Row], None]) -> None:
        """Runs first: an apply goes after the last run that names it."""
        finals: tuple[tuple[type[Row], frozenset[str]], ...] = (
            (EvolutionRun, frozenset(RUN_FINAL)),
            (EvolutionApply, frozenset(APPLY_FINAL)),
        )
        for model, final in finals:
            rows: QuerySet[Row] = model._default_manager.filter(
                condition, workspace=workspace, status__in=sorted(final)
            ).select_related("workspace")
            for row_id in list(rows.order_by("pk").values_list("pk", flat=True)):
                self._guarded(f"{kind_of(model)}-{row_id}", workspace.paths.evolution, rows, row_id, work)

    def _guarded(
        self, name: str, paths: EvolutionPaths, rows: QuerySet[Row], row_id: str, work: Callable[[Row], None]
    ) -> None:
        self._ask_time()
        try:
            with nullcontext() if self.dry_run else holding(paths.folder_lock(kind_of(rows.model), row_id)):
                row = rows.filter(pk=row_id).first()
                if row is not None:
                    work(row)
        except FolderBusy:
            logger.info("%s is being worked by another pass or a retry", name)
        except (OSError, ZipDamaged) as error:
            self._failed(name, str(error))

    # What is done with one.

    def _reduce(self, row: Row) -> None:
        if (reduce_all if not self.dry_run else is_reducible)(row):
            self.report.reduced.append(str(row))
            self.step("reduced")

    def _archive(self, row: Row) -> None:
        folder, target = folder_of(row), zip_of(row)
        self.report.archived.append(str(row))
        if self.dry_run:
            return
        packed = folder.exists()
        try:
            if packed:
                zips.pack(folder, target, step=self.step)
            elif target.exists():
                zips.check(target)
        except (OSError, ZipDamaged):
            self.report.archived.pop()
            raise
        if not transitions.mark_archived(row, now=self.now):
            self.report.archived.pop()
            if packed:
                target.unlink(missing_ok=True)
            return
        self.step("row archived")
        _remove(folder)
        self.step("folder removed")

    def _purge(self, row: Row) -> None:
        if isinstance(row, EvolutionApply) and self._is_needed(row):
            return
        if not self.dry_run and not transitions.purge(row, now=self.now):
            return
        self.report.purged.append(str(row))
        if row.status == ApplyStatus.APPLIED and isinstance(row, EvolutionApply):
            self.report.rollbacks_gone.append(str(row))
        if self.dry_run:
            return
        self.step("row purged")
        for path in _belongings(row):
            _remove(path)
            self.step("removed")

    def _is_needed(self, apply: EvolutionApply) -> bool:
        gone = [name.removeprefix("run-") for name in self.report.purged]  # of a dry run they still stand
        runs = EvolutionRun.objects.exclude(pk__in=gone)
        active = runs.filter(applies=apply).exclude(status__in=sorted(RUN_FINAL))
        return runs.filter(current_apply=apply).exists() or active.exists()

    # What crashes left.

    def _tidy(self, workspace: Workspace) -> None:
        for found in orphans.list_artifacts(workspace.paths.evolution):
            self._ask_time()
            try:
                lock = workspace.paths.evolution.folder_lock(found.kind, found.row_id)
                with nullcontext() if self.dry_run else holding(lock):
                    if os.path.lexists(found.path):  # no other pass was here first
                        self._tidy_one(workspace, found)
            except FolderBusy:
                continue
            except (OSError, ZipDamaged) as error:
                self._failed(found.name, str(error))
        for scrap in [] if self.dry_run else orphans.list_scraps(workspace.paths.evolution):
            try:
                orphans.remove_scrap(scrap)
            except OSError as error:
                self._failed(scrap.name, str(error))

    def _tidy_one(self, workspace: Workspace, found: orphans.Artifact) -> None:
        model: type[Row] = EvolutionRun if found.kind == "run" else EvolutionApply
        row: Row | None = model._default_manager.filter(pk=found.row_id).first()
        if row is None:
            if orphans.is_orphan(found, known_since=workspace.created_at):
                self._take(found, self.report.orphans)
        elif row.workspace_id != workspace.pk or found.place == "history":
            return
        elif found.place == "folder" and row.archived_at is not None:
            zips.check(workspace.paths.evolution.archived(found.kind, found.row_id))
            self._take(found, self.report.finished)
        elif (
            found.place == "zip"
            and row.archived_at is None
            and orphans.folder_of(workspace.paths.evolution, found).is_dir()
        ):
            # Of a pass that died before its row was changed, or of a retry that died after: the folder counts.
            self._take(found, self.report.finished)

    def _take(self, found: orphans.Artifact, names: list[str]) -> None:
        names.append(found.name)
        if not self.dry_run:
            _remove(found.path)
            self.step("removed")

    def _ask_time(self) -> None:
        if self.until is not None and clock.suspended_seconds() >= self.until:
            raise _TimeIsUp

    def _failed(self, name: str, reason: str) -> None:
        logger.warning("%s was left as it is: %s", name, reason)
        self.report.failed.append(f"{name}: {reason}")


def _belongings(row: Row) -> list[Path]:
    kind = kind_of(type(row))
    found = [zip_of(row), folder_of(row), Order(kind, row.pk, row.attempts).log]
    return found if kind == "run" else [*found, row.workspace.paths.evolution.history(row.pk)]


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
