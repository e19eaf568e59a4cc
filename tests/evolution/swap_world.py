"""A workspace with a prepared publication, people who edit it, and processes that die in the middle.

The person in these tests writes texts that contain ``PERSON``; whatever happens, each must be found again.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from core import hashes
from core.paths import WorkspacePaths
from evolution import manifest as manifests
from evolution import publish, restore, rollback, snapshot
from evolution.errors import Refused
from evolution.manifest import Manifest
from evolution.publish import Drifted
from evolution.rollback_plan import newest_plan
from evolution.surface_folder import read_surface
from workspaces import publish_lock

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
APPLY = "apply1"

OLD = {
    "INSTRUCTIONS.md": "old instructions\n",
    "USER.md": "a user\n",
    "agents/helper/AGENT.md": "old helper\n",
    "agents/helper/agent.yaml": "name: helper\n",
    "docs/guide.md": "a guide\n",
    "prompts/all/tone.md": "old tone\n",
}
NEW = {
    "INSTRUCTIONS.md": "new instructions\n",
    "agents/helper/AGENT.md": "new helper\n",
    "prompts/all/brief.md": "new prompt\n",
    "skills/dig/SKILL.md": "new skill\n",
    "skills/dig/notes.md": "as shipped\n",
}
CREATED = ("skills/dig", "skills")
TOUCHED = tuple(sorted(NEW))

Step = Callable[[str], None]


@contextmanager
def folder_in_memory(otherwise: Path) -> Iterator[Path]:
    """A folder in memory where there is one: thousands of fsyncs are not what is tested here."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else otherwise) as name:
        yield Path(name)


def no_step(_name: str) -> None:
    """Nothing happens at any step."""


def claimed() -> None:
    """The row is ours."""


@dataclass
class World:
    root: Path

    @property
    def halo(self) -> Path:
        return WorkspacePaths(self.root / "workspace").halo

    @property
    def snapshot_folder(self) -> Path:
        return WorkspacePaths(self.root / "workspace").evolution.snapshot(APPLY, 1)

    @property
    def stage(self) -> Path:
        return self.snapshot_folder / "stage"

    @property
    def manifest(self) -> Manifest:
        return manifests.read(self.snapshot_folder)

    def prepare(self, *, step: Step = no_step, confirm: Callable[[], None] = claimed) -> Manifest:
        return snapshot.prepare(
            halo=self.halo,
            base_manifest=self.root / "base.json",
            sandbox=self.root / "sandbox",
            snapshot_folder=self.snapshot_folder,
            apply_id=APPLY,
            source_run_ids=["run1", "run2"],
            hidden=read_surface(self.root / "global"),
            now=NOW,
            confirm=confirm,
            step=step,
        )

    def publish(
        self, *, step: Step = no_step, confirm: Callable[[], None] = claimed
    ) -> publish.PublishOutcome:
        return publish.publish(
            halo=self.halo,
            snapshot_folder=self.snapshot_folder,
            manifest=self.manifest,
            confirm=confirm,
            step=step,
        )

    def restore(
        self, *, step: Step = no_step, confirm: Callable[[], None] = claimed
    ) -> restore.RestoreOutcome:
        return restore.restore(
            halo=self.halo,
            snapshot_folder=self.snapshot_folder,
            manifest=self.manifest,
            confirm=confirm,
            step=step,
        )

    def rollback(
        self,
        *,
        attempt: int = 2,
        force: bool = False,
        shown: list[dict[str, object]] | None = None,
        step: Step = no_step,
        confirm: Callable[[], None] = claimed,
    ) -> rollback.RollbackOutcome:
        found = newest_plan(self.snapshot_folder)
        if found is None:
            folder = self.snapshot_folder / f"rollback-{attempt}"
            made = rollback.plan(
                halo=self.halo,
                snapshot_folder=self.snapshot_folder,
                rollback_folder=folder,
                force=force,
                shown=shown or [],
                now=NOW,
                confirm=confirm,
                step=step,
            )
            found = folder, made
        return rollback.execute(
            halo=self.halo,
            snapshot_folder=self.snapshot_folder,
            rollback_folder=found[0],
            plan=found[1],
            confirm=confirm,
            step=step,
        )

    def publish_with(self, step: Step) -> object:
        return self.publish(step=step)

    def restore_with(self, step: Step) -> object:
        return self.restore(step=step)

    def rollback_with(self, step: Step) -> object:
        return self.rollback(step=step)

    def live(self) -> dict[str, str]:
        """The surface as it lies on disk, ``docs/`` included, ``evo/`` not."""
        tops = [path for path in self.halo.iterdir() if path.name != "evo"]
        files = [path for top in tops for path in ([top] if top.is_file() else top.rglob("*"))]
        return {path.relative_to(self.halo).as_posix(): path.read_text() for path in files if path.is_file()}

    def seen(self) -> dict[str, str]:
        """What a loader reads of the touched files now."""
        files = publish_lock.surface_files(self.halo, is_final=lambda _apply_id: False)
        found = {rel: files.read(rel) for rel in TOUCHED}
        return {rel: data.decode() for rel, data in found.items() if data is not None}

    def folders(self) -> set[str]:
        return {
            path.relative_to(self.halo).as_posix()
            for path in self.halo.rglob("*")
            if path.is_dir() and not path.is_relative_to(self.halo / "evo")
        }

    def marker_stands(self) -> bool:
        return publish_lock.read_marker(WorkspacePaths(self.root / "workspace").evolution) is not None

    def write(self, rel: str, text: str) -> None:
        """A person saves over the file."""
        path = self.halo / rel
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def write_by_rename(self, rel: str, text: str) -> None:
        """A person's editor saves beside the file and renames."""
        path = self.halo / rel
        path.parent.mkdir(parents=True, exist_ok=True)
        path.with_name("editor~").write_text(text)
        path.with_name("editor~").replace(path)

    def findable(self, text: str) -> bool:
        """Whether a person's text is live or somewhere in the snapshot's stages."""
        places = [self.halo / rel for rel in self.live()]
        places += [path for path in self.snapshot_folder.rglob("*") if path.is_file()]
        return any(text in path.read_text() for path in places)


def build(root: Path) -> World:
    """A live surface, a base, a sandbox with the merged changes; nothing prepared yet."""
    world = World(root)
    (world.halo / "evo").mkdir(parents=True)
    for rel, text in OLD.items():
        world.write(rel, text)
    (world.halo / "agents/helper/AGENT.md").chmod(0o640)
    surface = {rel: text for rel, text in OLD.items() if not rel.startswith("docs/")}
    (root / "base.json").write_text(
        json.dumps({rel: hashes.of_bytes(text.encode()) for rel, text in OLD.items()})
    )
    for rel, text in (surface | NEW).items():
        path = root / "sandbox" / rel
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (root / "global/skills/dig").mkdir(parents=True)
    (root / "global/skills/dig/notes.md").write_text(NEW["skills/dig/notes.md"])
    return world


def copy_of(world: World, root: Path) -> World:
    """The same state in another place, modes included."""
    shutil.copytree(world.root, root, symlinks=True)
    return World(root)


def steps_of(action: Callable[[Step], object]) -> list[str]:
    """The names an undisturbed run announces."""
    names: list[str] = []
    action(names.append)
    return names


def both(first: Step, second: Step) -> Step:
    def step(name: str) -> None:
        first(name)
        second(name)

    return step


def in_child(body: Callable[[], object]) -> int:
    """Run ``body`` in a forked child; the exit code, negative for a signal: 0 done, 3 drifted or refused."""
    pid = os.fork()
    if pid == 0:
        code = 9
        try:
            body()
            code = 0
        except (Drifted, Refused):
            code = 3
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def at(number: int, action: Callable[[], object], *, then: Step = no_step) -> Step:
    """A hook that acts just before the operation of the step with this number."""
    count = 0

    def step(name: str) -> None:
        nonlocal count
        if count == number:
            count += 1
            action()
        else:
            count += 1
        then(name)

    return step


def recover(world: World, *, step: Step = no_step) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """What a resumed wrapper does: publish, or restore on drift. (ending, edited, kept)."""
    try:
        outcome = world.publish(step=step)
    except Drifted:
        restored = world.restore(step=step)
        return "restored", restored.edited, restored.kept
    return "applied", outcome.edited_since, outcome.kept
