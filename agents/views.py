"""The views of the access levels and of evaluation sessions; every one is only a list of mounts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from agents.view import WRITABLE_IN_HALO, Mount, Shell, View

GLOBAL_PROMPT_FILES = ("INSTRUCTIONS.md", "USER.md", "prompts", "agents", "skills")


def full_view(root: Path, *, global_folder: Path | None = None, working_dir: Path | None = None) -> View:
    """Level ``full``: the whole host but for prompt surfaces, which are read-only here as everywhere."""
    mounts = []
    if global_folder is not None:
        home = global_folder.resolve().parent
        mounts = [Mount(path, path) for path in (home / "global", home / "secrets")]
    return View(  # noqa: S604 - the name of a view's shell, not subprocess's
        root=root.resolve(),
        mounts=tuple(mounts),
        unrestricted=True,
        shell="host",
        working_dir=working_dir,
        guard_surface=True,
    )


def workspace_view(
    root: Path,
    global_folder: Path,
    extra: Iterable[Path] = (),
    *,
    working_dir: Path | None = None,
) -> View:
    """Level ``workspace``: all writable, its surface not. ``extra``: ``general.sandbox.allow``, readable."""
    real = root.resolve()
    halo = real / ".halo"
    source = halo.resolve()
    mounts = [Mount(real, real, writable=True), Mount(halo, source)]
    mounts += [Mount(halo / name, source / name, writable=True) for name in WRITABLE_IN_HALO]
    mounts += _frozen_in_workspace(real, working_dir)
    return _session_view(
        root=real,
        mounts=mounts,
        global_folder=global_folder,
        extra=extra,
        working_dir=working_dir,
    )


def readonly_view(
    root: Path,
    global_folder: Path,
    extra: Iterable[Path] = (),
    *,
    working_dir: Path | None = None,
) -> View:
    """Level ``readonly``: the same, and nothing can be written but a command's private ``/tmp``."""
    real = root.resolve()
    return _session_view(
        root=real,
        mounts=[Mount(real, real)],
        global_folder=global_folder,
        extra=extra,
        working_dir=working_dir,
    )


def overlay_view(
    root: Path,
    halo_source: Path,
    global_folder: Path,
    extra: Iterable[Path] = (),
    *,
    working_dir: Path | None = None,
) -> View:
    """Dry run, control, regression: the workspace read-only at its own path with another ``.halo`` in place.

    Only what the sandbox copied is there: the real ``.halo`` with its sessions can't be seen.
    """
    real = root.resolve()
    return _session_view(
        root=real,
        mounts=[Mount(real, real), Mount(real / ".halo", halo_source.resolve())],
        global_folder=global_folder,
        extra=extra,
        working_dir=working_dir,
    )


def folder_view(*, root: Path, read: Sequence[Path], write: Sequence[Path]) -> View:
    """Drafter, scorer, merger: exactly these paths, no shell. ``write`` paths may not exist yet."""
    mounts = [Mount(path.absolute(), path.absolute()) for path in read]
    mounts += [Mount(path.absolute(), path.absolute(), writable=True) for path in write]
    return View(root=root.absolute(), mounts=tuple(mounts))


def _session_view(
    *,
    root: Path,
    mounts: list[Mount],
    global_folder: Path,
    extra: Iterable[Path],
    working_dir: Path | None,
) -> View:
    shared = global_folder.resolve()
    readable = _readable(extra)
    mounts = [*(Mount(path, path) for path in readable), *mounts]
    mounts += [Mount(shared / name, shared / name) for name in GLOBAL_PROMPT_FILES]
    shell: Shell = "sandbox"
    return View(
        root=root,
        mounts=tuple(mounts),
        shell=shell,
        working_dir=working_dir,
        hidden=_under_every_name(_hidden(shared.parent, root), readable),
        guard_surface=True,
    )


def _hidden(home: Path, root: Path) -> tuple[Path, ...]:
    """``HALO_HOME`` itself; when it is the workspace's own ``.halo``, what no session may read of it."""
    if home == root / ".halo":
        return (home / "secrets", *(home / f"halo.sqlite3{end}" for end in ("", "-wal", "-shm", "-journal")))
    return (home,)


def _under_every_name(hidden: tuple[Path, ...], readable: Iterable[Path]) -> tuple[Path, ...]:
    """What lies in a readable folder whose path leads through a link has a second name there."""
    reals = [(path, path.resolve()) for path in readable]
    names = [
        path / one.relative_to(real) for path, real in reals for one in hidden if one.is_relative_to(real)
    ]
    return tuple(dict.fromkeys([*hidden, *names]))


def _readable(extra: Iterable[Path]) -> list[Path]:
    return [path.absolute() for path in extra if path.exists()]


def _frozen_in_workspace(root: Path, working_dir: Path | None) -> list[Mount]:
    """What shapes prompts outside the root's ``.halo``: agents' notes, and ``.halo`` folders on the chain.

    The folders that lead to such a ``.halo`` are mounts of their own, or renaming one would swap the surface.
    Names that are symlinks are left out: bound, they would show what they point at.
    """
    found = [Mount(path, path) for path in (root / ".agents", root / "AGENTS.md") if _is_itself(path)]
    chain = [root]
    for name in (working_dir or root).resolve().relative_to(root).parts:
        chain.append(chain[-1] / name)
    nested = [folder / ".halo" for folder in chain[1:] if _is_itself(folder / ".halo")]
    found += [Mount(path, path) for path in nested]
    found += [
        Mount(folder, folder, writable=True)
        for folder in chain[1:]
        if any(folder in path.parents for path in nested)
    ]
    return found


def _is_itself(path: Path) -> bool:
    return path.exists() and not path.is_symlink()
