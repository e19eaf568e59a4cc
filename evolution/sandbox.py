"""The copy of the prompt surface that a run or an apply works on, and the proof that nothing else changed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path, PurePosixPath

from core import atomic
from core.bounded_read import UnreadableFileError, read_bounded
from core.paths import UnsafePathError, WorkspacePaths
from evolution import changes
from evolution.artifacts import frozen
from evolution.artifacts.files import AttemptFiles
from evolution.changes import Change, Content
from evolution.errors import PhaseFailed
from evolution.phases.context import PhaseContext
from evolution.surface_folder import (
    HIDDEN,
    MAX_BYTES,
    Copy,
    copy_live,
    hash_surface,
    own_units,
    read_live,
    read_surface,
    walk,
)
from workspaces.compose import SurfaceError, compose
from workspaces.overrides import PLATFORM_FOLDER, Surface
from workspaces.publish_lock import MarkerUnreadable, SurfaceFiles, locked_surface_files, shared

READ_ONLY_NAMES = ("AGENTS.md", ".agents/skills")
"""Copied beside ``.halo`` so that the drafter can read them; never published."""


def prepare_run(ctx: PhaseContext) -> None:
    """Copy the live surface to ``base/`` and ``sandbox/``; check the frozen inputs against ``inputs.json``.

    Raises PhaseFailed: ``symlink:<rel>``, over 200 MB, an input that isn't as frozen; LockHeld while somebody
    publishes, which passes: the attempt ends and the next tick makes another.
    """
    try:
        if changed := frozen.changed_inputs(ctx.frozen):
            raise PhaseFailed(f"evidence_changed:{changed[0]}")
        for name in [*frozen.read_inputs(ctx.frozen), frozen.INPUTS]:
            ctx.evidence.vouch(ctx.frozen / name)
        meta = frozen.read_meta(ctx.frozen)
        context = frozen.read_context(ctx.frozen)
    except frozen.FrozenUnreadable as error:
        raise PhaseFailed(f"The run's frozen files can't be used: {error}.") from error
    _prepare(ctx, working_dir=meta.working_dir)
    differs = context_differences(ctx, context, working_dir=meta.working_dir)
    ctx.evidence.write_text(AttemptFiles(ctx.folder).differs, json.dumps(differs) + "\n")


def prepare_apply(ctx: PhaseContext) -> None:
    """The same for an apply, whose folder has no frozen inputs."""
    _prepare(ctx, working_dir=".")


def _prepare(ctx: PhaseContext, *, working_dir: str) -> None:
    files = AttemptFiles(ctx.folder)
    try:
        with _reading(ctx):
            live = locked_surface_files(_halo(ctx.workspace))
            copy = Copy(ctx.base)
            files.base.mkdir(parents=True)
            copy_live(live, copy)
        _copy_read_only(ctx.workspace, working_dir, copy)
        shutil.copytree(ctx.base, ctx.sandbox)
        manifest = ctx.evidence.vouch_tree(ctx.base)
        inside = {rel.removeprefix(".halo/"): known for rel, known in manifest.items() if _is_halo(rel)}
        beside = {rel: known for rel, known in manifest.items() if not _is_halo(rel)}
        ctx.evidence.write_text(files.base_manifest, json.dumps(inside, indent=1) + "\n")
        ctx.evidence.write_text(files.context_manifest, json.dumps(beside, indent=1) + "\n")
    except MarkerUnreadable as error:
        raise PhaseFailed(str(error)) from error
    except shutil.Error as error:
        # Its text is the list of all that failed; they failed alike.
        raise PhaseFailed(f"The prompt surface can't be copied: {error.args[0][0][2]}.") from error
    except OSError as error:
        raise PhaseFailed(f"The prompt surface can't be copied: {error}.") from error


def _reading(ctx: PhaseContext) -> AbstractContextManager[None]:
    """No publisher is at work meanwhile; one that lost its claim and holds the lock all the same is ended."""
    return shared(WorkspacePaths(ctx.workspace).evolution, may_end_holder=ctx.may_end_holder)


def _halo(workspace: Path) -> Path:
    halo = WorkspacePaths(workspace).halo
    if halo.is_symlink():
        raise PhaseFailed("symlink:.halo")
    if not halo.is_dir():
        raise PhaseFailed("workspace_missing")
    return halo


def _is_halo(rel: str) -> bool:
    return rel.startswith(".halo/")


def _copy_read_only(workspace: Path, working_dir: str, copy: Copy) -> None:
    """Project knowledge and the directory chain's instructions. A symlink among them is left out, not read."""
    for name in READ_ONLY_NAMES:
        path = workspace / name
        if path.is_dir() and not _through_link(workspace, name):
            for rel, entry in walk(path):
                if entry.is_file(follow_symlinks=False):
                    _copy_one(workspace, f"{name}/{rel}", copy)
            for folder in path.iterdir():  # an empty one, or a link to one, hides the global skill as well
                if folder.is_dir():
                    copy.add_folder(f"{name}/{folder.name}")
        elif not _through_link(workspace, name) and path.is_file():
            _copy_one(workspace, name, copy)
    folders = [part for part in PurePosixPath(working_dir).parts if part not in (".", "/")]
    for depth in range(1, len(folders) + 1):
        rel = f"{'/'.join(folders[:depth])}/.halo/INSTRUCTIONS.md"
        if ".." not in folders and not _through_link(workspace, rel) and (workspace / rel).is_file():
            _copy_one(workspace, rel, copy)


def _copy_one(workspace: Path, rel: str, copy: Copy) -> None:
    """Agents may write here meanwhile: a name that became a symlink is left out as one that was."""
    path = workspace / rel
    try:
        copy.reserve(path.lstat().st_size)
        data = read_bounded(path, limit=MAX_BYTES, real_root=str(workspace))
    except (UnreadableFileError, FileNotFoundError):
        return
    if data is not None:
        copy.add(rel, data)


def _through_link(workspace: Path, rel: str) -> bool:
    path = workspace
    for part in PurePosixPath(rel).parts:
        path = path / part
        if path.is_symlink():
            return True
    return False


def context_differences(ctx: PhaseContext, context: frozen.EvoContext, *, working_dir: str) -> list[str]:
    """Prompt files that a session of the frozen agent would load otherwise at this claim than it did then."""
    then = {file.rel: file.content for file in context.files}
    surface = Surface(SurfaceFiles(AttemptFiles(ctx.folder).base), ctx.global_folder)
    try:
        composed = compose(surface, context.agent_id, workspace_root=ctx.workspace, working_dir=working_dir)
    except (SurfaceError, UnsafePathError):
        return [f"agents/{context.agent_id}/agent.yaml"]  # with what it was then no session can begin now
    now = {file.rel: file.content for file in composed.files}
    return [rel for rel in {**then, **now} if then.get(rel) != now.get(rel)]


def complete(ctx: PhaseContext) -> None:
    """Fill up override folders that are new in the sandbox from the global ones they hide."""
    files = AttemptFiles(ctx.folder)
    mine = hash_surface(files.sandbox)
    new_units = changes.units(dict.fromkeys(mine, b"")) - own_units(files.base)
    for rel, content in hidden_surface(ctx.global_folder, ctx.base).items():
        if changes.unit(rel) in new_units and rel not in mine and content is not changes.NoFile.FOLDER:
            if not isinstance(content, bytes):
                raise PhaseFailed(f"symlink:global/{rel}")
            path = files.sandbox / rel
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)


def hidden_surface(global_folder: Path, root: Path) -> dict[str, Content]:
    """What files below ``root``'s ``.halo`` can hide: ``root``'s ``.agents/skills``, the global folder, and
    below both what ships with Halo.
    """
    machine = changes.hides(read_surface(global_folder, HIDDEN), read_surface(PLATFORM_FOLDER, HIDDEN))
    return changes.hides(read_surface(root / ".agents", ("skills",)), machine)


def proposed(files: AttemptFiles) -> dict[str, Content | None]:
    """Every path below ``.halo`` that the sandbox has otherwise than the base; None: it was taken away."""
    before, after = hash_surface(files.base), hash_surface(files.sandbox)
    rels = [rel for rel in sorted(before.keys() | after.keys()) if before.get(rel) != after.get(rel)]
    return {rel: _content(files.sandbox, rel) if rel in after else None for rel in rels}


def effective_changes(files: AttemptFiles, global_folder: Path) -> tuple[str, ...]:
    """The changed paths of an attempt without byte-equal copies of what they hide, reduced or not."""
    known = _reduced(files)
    if known is not None:
        return tuple(sorted(known))
    before = base_versions(files, global_folder)
    return tuple(rel for rel, content in proposed(files).items() if content != before.get(rel))


def base_versions(files: AttemptFiles, global_folder: Path) -> dict[str, Content]:
    """What sessions load without the draft of an attempt; of a reduced one only the changed files."""
    reduced = files.reduced.exists()
    hidden = read_surface(files.hidden) if reduced else hidden_surface(global_folder, files.base.parent)
    return changes.hides(read_surface(files.base), hidden)


def _content(root: Path, rel: str) -> Content:
    path = root / rel
    return changes.NoFile.SYMLINK if path.is_symlink() or not path.is_file() else path.read_bytes()


def classified(ctx: PhaseContext) -> tuple[Change, ...]:
    """What the sandbox would change in the live surface as it is now, each with its category: for the gates.

    Raises PhaseFailed when the live surface can't be read, LockHeld while it is being published.
    """
    with _reading(ctx):
        return _classified(ctx, proposed(AttemptFiles(ctx.folder)))


def would_publish(ctx: PhaseContext) -> tuple[Change, ...]:
    """The same of what publication would write, for its caller, who holds the workspace's lock.

    Publication never deletes, so a file that the merge dropped is no change; one that a new override folder
    would hide is. Raises PhaseFailed.
    """
    written = {
        rel: content for rel, content in proposed(AttemptFiles(ctx.folder)).items() if content is not None
    }
    return _classified(ctx, written)


def _classified(ctx: PhaseContext, changed: Mapping[str, Content | None]) -> tuple[Change, ...]:
    try:
        return changes.classify(
            live=read_live(locked_surface_files(_halo(ctx.workspace))),
            proposed=changed,
            hidden=hidden_surface(ctx.global_folder, ctx.workspace),
        )
    except (MarkerUnreadable, OSError) as error:
        raise PhaseFailed(f"The live surface can't be read: {error}") from error


def verify_untouched(ctx: PhaseContext) -> None:
    """Raises PhaseFailed (``evidence_changed:<rel>``) unless base, inputs and evidence are as written."""
    for path in ctx.evidence.changed():
        root = ctx.folder if path.is_relative_to(ctx.folder) else ctx.frozen
        shown = path.relative_to(root) if path.is_relative_to(root) else path
        raise PhaseFailed(f"evidence_changed:{shown}")


def reduce(folder: Path, *, global_folder: Path) -> None:
    """Keep the changed files and their base versions of a final row's attempt. Idempotent.

    What a changed file hid of the global folder goes to ``base/global/``, since that folder moves on.
    """
    files = AttemptFiles(folder)
    if not files.sandbox.is_dir():
        return
    kept = _reduced(files)
    if kept is None:
        kept = _keep(files, global_folder)
        atomic.write_json(files.reduced, sorted(kept))
    for root in (folder / "base", folder / "sandbox"):
        for rel, _entry in list(walk(root)):
            if rel.removeprefix(".halo/") not in kept and not rel.startswith("global/"):
                (root / rel).unlink()
        _remove_empty(root)


def _reduced(files: AttemptFiles) -> set[str] | None:
    try:
        return set(json.loads(files.reduced.read_bytes()))
    except FileNotFoundError:
        return None


def _keep(files: AttemptFiles, global_folder: Path) -> set[str]:
    """The changed paths; the global versions they hide are written out on the way."""
    kept = set(effective_changes(files, global_folder))
    own = own_units(files.base)
    for rel, content in hidden_surface(global_folder, files.base.parent).items():
        if rel in kept and changes.unit(rel) not in own and isinstance(content, bytes):
            target = files.hidden / rel
            target.parent.mkdir(parents=True, exist_ok=True)
            atomic.write_bytes(target, content)
    return kept


def _remove_empty(root: Path) -> None:
    folders = sorted(
        (path for path in root.rglob("*") if path.is_dir() and not path.is_symlink()), reverse=True
    )
    for path in folders:
        if path != root / ".halo" and not any(path.iterdir()):
            path.rmdir()
