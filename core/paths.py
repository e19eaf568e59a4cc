"""Every path under ``HALO_HOME`` and a workspace's ``.halo/``; no other module joins these names."""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass
from pathlib import Path, PurePosixPath


class UnsafePathError(ValueError):
    """A path from outside that leaves the folder it belongs to, or can't be a path at all."""


def halo_home() -> HaloHome:
    """The machine-wide folder: ``$HALO_HOME``, else ``~/.halo``."""
    return HaloHome(Path(os.environ.get("HALO_HOME") or Path.home() / ".halo").absolute())


@dataclass(frozen=True, slots=True)
class HaloHome:
    root: Path

    @property
    def global_folder(self) -> Path:
        return self.root / "global"

    @property
    def internal_sessions(self) -> Path:
        return self.global_folder / "internal-sessions"

    @property
    def evolution_logs(self) -> Path:
        return self.global_folder / "logs" / "evo"

    @property
    def secrets(self) -> Path:
        return self.root / "secrets"

    @property
    def settings_file(self) -> Path:
        return self.secrets / "settings.yaml"

    @property
    def secret_key_file(self) -> Path:
        return self.secrets / "secret_key"

    @property
    def database_file(self) -> Path:
        return self.root / "halo.sqlite3"


@dataclass(frozen=True, slots=True)
class WorkspacePaths:
    """``root`` is the workspace's real path."""

    root: Path

    @property
    def halo(self) -> Path:
        return self.root / ".halo"

    @property
    def settings_file(self) -> Path:
        return self.halo / "settings.yaml"

    @property
    def sessions(self) -> Path:
        return self.halo / "sessions"

    @property
    def evolution(self) -> EvolutionPaths:
        return EvolutionPaths(self.halo / "evo")


@dataclass(frozen=True, slots=True)
class EvolutionPaths:
    """``<workspace>/.halo/evo``; layout: evolution.md, "On disk"."""

    root: Path

    def run(self, run_id: str) -> Path:
        return self.runs / run_id

    def run_attempt(self, run_id: str, attempt: int) -> Path:
        return self.run(run_id) / "attempts" / str(attempt)

    def apply(self, apply_id: str) -> Path:
        return self.applies / apply_id

    def apply_attempt(self, apply_id: str, attempt: int) -> Path:
        return self.apply(apply_id) / "attempts" / str(attempt)

    def history(self, apply_id: str) -> Path:
        return self.histories / f"apply-{apply_id}"

    def snapshot(self, apply_id: str, attempt: int) -> Path:
        return self.history(apply_id) / str(attempt)

    def rollback(self, apply_id: str, snapshot_attempt: int, attempt: int) -> Path:
        return self.snapshot(apply_id, snapshot_attempt) / f"rollback-{attempt}"

    @property
    def runs(self) -> Path:
        return self.root / "runs"

    @property
    def applies(self) -> Path:
        return self.root / "applies"

    @property
    def histories(self) -> Path:
        return self.root / "history"

    @property
    def archive(self) -> Path:
        return self.root / "archive"

    def archived(self, kind: str, row_id: str) -> Path:
        """``kind`` is ``run`` or ``apply``."""
        return self.archive / f"{kind}-{row_id}.zip"

    def folder_lock(self, kind: str, row_id: str) -> Path:
        """Held by whoever packs, unpacks or removes that row's folder."""
        return self.archive / f".{kind}-{row_id}.lock"

    @property
    def lock_file(self) -> Path:
        return self.root / "publish.lock"

    @property
    def marker_file(self) -> Path:
        return self.root / "publishing"


def expanded(text: str) -> Path:
    """What a person typed: ``~`` and ``~user`` stand for homes; of a user there isn't it stays as it is."""
    try:
        return Path(text).expanduser()
    except RuntimeError:
        return Path(text)


_UNCLEAN = frozenset({"", ".", ".."})


def checked_relative(text: str) -> str:
    """``text`` as a clean relative POSIX path, or UnsafePathError that names what is wrong with it."""
    if "\0" not in text and _UNCLEAN.isdisjoint(text.split("/")):
        return text
    if "\0" in text:
        raise UnsafePathError("A path can't contain a NUL byte.")
    path = PurePosixPath(text)
    if not path.parts:
        raise UnsafePathError("The path is empty.")
    if path.is_absolute():
        raise UnsafePathError(f"{text!r} is absolute; give a path relative to the folder.")
    if ".." in path.parts:
        raise UnsafePathError(f"{text!r} climbs out of its folder with '..'.")
    return path.as_posix()


def inside(folder: Path, text: str) -> Path:
    """``text`` below ``folder``, symlinks followed; UnsafePathError when that lies elsewhere.

    For reading and showing only: between this check and an open a link can be swapped; tools that act for
    an agent open through ``agents.files``.
    """
    return inside_real(os.path.realpath(folder), text)


def inside_real(root: str, text: str) -> Path:
    """``inside`` for a folder whose real path the caller has found out, to ask many questions about it."""
    relative = checked_relative(text)
    candidate = _followed(os.path.join(root, relative), text)  # noqa: PTH118 - Path costs ten times as much
    if candidate != root and not candidate.startswith(root.rstrip("/") + "/"):
        raise UnsafePathError(f"{text!r} leads out of {root} through a symlink.")
    return Path(candidate)


def _followed(path: str, text: str) -> str:
    """The real path, also of what isn't there yet; a loop of symlinks is refused."""
    try:
        return os.path.realpath(path, strict=True)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise UnsafePathError(f"{text[:200]!r} can't be followed: its symlinks form a loop.") from error
    return os.path.realpath(path)


def checked_workspace(path: Path) -> Path:
    """The real path of a folder that may become a workspace; UnsafePathError for the root folder."""
    real = path.resolve()
    if not real.is_dir():
        raise UnsafePathError(f"{path} is not a folder.")
    if real == Path(real.anchor):
        raise UnsafePathError(f"{real} is the root of the file system and can't be a workspace.")
    return real
