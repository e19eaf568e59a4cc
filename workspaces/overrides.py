"""Which file counts: the workspace's, the machine's or the shipped one.

``INSTRUCTIONS.md`` and ``USER.md`` are taken from the first layer that has them. ``agents/<id>/``,
``skills/<id>/`` and ``prompts/<scope>/`` are taken as whole folders: a layer that has the folder hides the
layers below it, file by file included. ``INDEX.md`` and ``AGENTS.md`` are the workspace's alone.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal

from core.bounded_read import UnreadableFileError, read_bounded
from core.faults import Fault, shown
from core.paths import UnsafePathError, checked_relative, inside, inside_real
from core.texts import is_one_line
from workspaces.publish_lock import SurfaceFiles

Scope = Literal["workspace", "global", "builtin"]
FolderKind = Literal["agents", "skills", "prompts"]

PLATFORM_FOLDER = Path(__file__).resolve().parent / "platform"
"""The files that ship with Halo and are seeded into ``global/``."""

MAX_PROMPT_BYTES = 1024 * 1024

_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,63}")


def is_folder_id(text: str) -> bool:
    """Whether ``text`` may name an agent or a skill: letters, digits, ``-`` and ``_``, at most 64."""
    return _ID.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class Folder:
    """One agent, skill or prompt folder of the layer that counts; ``rel`` is relative to ``files``' folder."""

    id: str
    scope: Scope
    rel: str
    files: SurfaceFiles

    def read(self, name: str) -> bytes | None:
        """A file of this folder, None when there is none. Raises UnreadableFileError, UnsafePathError."""
        return self.files.read(f"{self.rel}/{name}")

    def shown(self, name: str = "") -> str:
        """Where the file lies, for people: relative to the workspace, absolute for machine-wide files."""
        rel = f"{self.rel}/{name}" if name else self.rel
        return shown_path(self.files, self.scope, rel)


@dataclass(frozen=True, slots=True)
class Text:
    """A prompt file as it counts; ``rel`` as in ``.halo`` (``global/`` mirrors it)."""

    rel: str
    scope: Scope
    content: str


def shown_path(files: SurfaceFiles, scope: Scope, rel: str) -> str:
    return f"{files.halo.name if scope == 'workspace' else files.halo}/{rel}"


class Surface:
    """The prompt surface as one session sees it.

    ``workspace`` is a view of the workspace's ``.halo`` (live: ``publish_lock.surface_files``; a sandbox:
    ``SurfaceFiles``); what lies beside it (``AGENTS.md``, ``.agents/skills/``, sub-folders' instructions) is
    read from the same parent folder. None: a machine without a workspace.
    """

    def __init__(self, workspace: SurfaceFiles | None, global_folder: Path) -> None:
        self.workspace = workspace
        self.root = workspace.halo.parent if workspace is not None else None
        self._layers: list[tuple[Scope, SurfaceFiles]] = [
            ("global", SurfaceFiles(global_folder)),
            ("builtin", SurfaceFiles(PLATFORM_FOLDER)),
        ]
        if workspace is not None:
            self._layers.insert(0, ("workspace", workspace))

    def file(self, name: str, faults: list[Fault]) -> Text | None:
        """``INSTRUCTIONS.md`` or ``USER.md`` of the first layer that has it.

        One that can't be read hides those below it all the same: falling back to a more general text in
        silence is what its author didn't want.
        """
        for scope, files in self._layers:
            if _there(files.exists, name):
                return _text(files, scope, name, faults)
        return None

    def own_file(self, name: str, faults: list[Fault]) -> Text | None:
        """A file of the workspace's ``.halo`` alone (``INDEX.md``)."""
        if self.workspace is None or not _there(self.workspace.exists, name):
            return None
        return _text(self.workspace, "workspace", name, faults)

    def folder(self, kind: FolderKind, name: str) -> Folder | None:
        """The folder of the first layer that has one. ``name`` is checked: anything but an id is None."""
        if not is_folder_id(name):
            return None
        for scope, files, base in self._bases(kind):
            rel = f"{base}/{name}"
            if _there(files.is_dir, rel):
                return Folder(name, scope, rel, files) if _problem(files, rel) is None else None
        return None

    def folders(self, kind: FolderKind, faults: list[Fault]) -> list[Folder]:
        """Every folder that counts, in name order; one that can't be used, or named so, is a fault."""
        found: dict[str, Folder | None] = {}
        for scope, files, base in self._bases(kind):
            for name in _names(files, base, scope, faults):
                rel = f"{base}/{name}"
                if name in found or not _there(files.is_dir, rel):
                    continue
                problem = _problem(files, rel)
                if not is_folder_id(name):
                    wanted = "a folder name of letters, digits, '-' and '_', at most 64"
                    faults.append(Fault(shown_path(files, scope, base), None, "", shown(name), wanted))
                elif problem is not None:
                    faults.append(
                        Fault(shown_path(files, scope, rel), None, "", problem, "a readable folder")
                    )
                    found[name] = None
                else:
                    found[name] = Folder(name, scope, rel, files)
        return [folder for _, folder in sorted(found.items()) if folder is not None]

    def texts(self, folder: Folder, faults: list[Fault]) -> list[Text]:
        """The ``*.md`` files of a folder, in name order."""
        names = [n for n in _names(folder.files, folder.rel, folder.scope, faults) if n.endswith(".md")]
        for name in [n for n in names if not is_one_line(n)]:
            wanted = "a name in UTF-8 without control characters; it is left out"
            faults.append(Fault(folder.shown(), None, "", shown(name), wanted))
            names.remove(name)
        texts = [_text(folder.files, folder.scope, f"{folder.rel}/{name}", faults) for name in names]
        return [text for text in texts if text is not None]

    def agents_md(self, faults: list[Fault]) -> Text | None:
        """``AGENTS.md`` beside ``.halo``: project knowledge that other tools read as well."""
        return self._beside("AGENTS.md", faults)

    def instructions_chain(self, working_dir: str, faults: list[Fault]) -> list[Text]:
        """``<folder>/.halo/INSTRUCTIONS.md`` from below the root down to ``working_dir``, general to specific.

        Raises UnsafePathError for a working directory outside the workspace.
        """
        if self.root is None or PurePosixPath(working_dir) == PurePosixPath("."):
            return []
        parts = PurePosixPath(checked_relative(working_dir)).parts
        inside(self.root, working_dir)
        folders = ["/".join(parts[: length + 1]) for length in range(len(parts))]
        texts = [self._beside(f"{folder}/.halo/INSTRUCTIONS.md", faults) for folder in folders]
        return [text for text in texts if text is not None]

    def _bases(self, kind: FolderKind) -> Iterator[tuple[Scope, SurfaceFiles, str]]:
        for scope, files in self._layers:
            yield scope, files, kind
            if scope == "workspace" and kind == "skills" and self.root is not None:
                yield "workspace", SurfaceFiles(self.root / ".agents", agents_write=True), "skills"

    def _beside(self, rel: str, faults: list[Fault]) -> Text | None:
        if self.root is None:
            return None
        try:
            real_root = os.path.realpath(self.root)
            data = read_bounded(inside_real(real_root, rel), limit=MAX_PROMPT_BYTES, real_root=real_root)
        except (UnsafePathError, UnreadableFileError, OSError) as error:
            faults.append(Fault(rel, None, "", str(error), "a readable text file; it is left out"))
            return None
        return None if data is None else Text(rel, "workspace", decoded(data, rel, faults))


def _there(question: Callable[[str], bool], rel: str) -> bool:
    """Whether something stands there; what can't be followed does, and is named when it is read."""
    try:
        return question(rel)
    except (UnsafePathError, OSError):
        return True


def _problem(files: SurfaceFiles, rel: str) -> str | None:
    """Why a folder can't be used: it leads out of the workspace, or may not be read."""
    try:
        files.listdir(rel)
    except (UnsafePathError, OSError) as error:
        return str(error)
    return None


def _names(files: SurfaceFiles, rel: str, scope: Scope, faults: list[Fault]) -> list[str]:
    """The names in a folder, hidden ones aside; a folder that can't be read is a fault and has none."""
    try:
        return [name for name in files.listdir(rel) if not name.startswith(".")]
    except (UnsafePathError, OSError) as error:
        faults.append(Fault(shown_path(files, scope, rel), None, "", str(error), "a readable folder"))
        return []


def _text(files: SurfaceFiles, scope: Scope, rel: str, faults: list[Fault]) -> Text | None:
    where = shown_path(files, scope, rel)
    try:
        data = files.read(rel)
    except (UnsafePathError, UnreadableFileError, OSError) as error:
        faults.append(Fault(where, None, "", str(error), "a readable text file; it is left out"))
        return None
    if data is None:
        return None
    if len(data) > MAX_PROMPT_BYTES:
        wanted = f"at most {MAX_PROMPT_BYTES} bytes; it is left out"
        faults.append(Fault(where, None, "", f"{len(data)} bytes", wanted))
        return None
    return Text(rel, scope, decoded(data, where, faults))


def decoded(data: bytes, where: str, faults: list[Fault]) -> str:
    """Text with LF ends; bytes that are no UTF-8 and NULs become U+FFFD, with a warning that names the line."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        found = f"byte {data[error.start]:#04x}"
        faults.append(Fault(where, line, "", found, "UTF-8; such bytes are replaced", "warning"))
        text = data.decode("utf-8-sig", "replace")
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        faults.append(Fault(where, line, "", "a NUL", "text; it is replaced", "warning"))
        text = text.replace("\0", "\ufffd")
    return text.replace("\r\n", "\n")
