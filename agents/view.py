"""What a session sees of the disk: the values (made in ``views``, obeyed by ``files`` and ``sandbox``).

This module and the tools below it also run on linked machines, on Python 3.9.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Shell = Literal["host", "sandbox", "none"]


@dataclass(frozen=True)
class Mount:
    """``source`` shown at ``path`` (absolute, both). The longest matching ``path`` decides."""

    path: Path
    source: Path
    writable: bool = False


def _never() -> bool:
    return False


@dataclass(frozen=True)
class View:
    """What file tools and sandboxed commands see of the disk. Both read the same mounts.

    ``unrestricted`` (level ``full``): every path of the host; ``mounts`` then only take rights away (the
    prompt surface stays read-only). ``shell``: host (own process group), sandbox (bubblewrap), none.
    ``hidden`` paths look absent, whatever mount they lie in. ``guard_surface``: below any folder named
    ``.halo`` only ``assets/``, ``memory/`` and ``tmp/`` can be written, whatever the mounts allow.
    ``authoring`` says, at every write, whether a person has the session open for it: then file tools (no
    command) may write the prompt files of the root's own ``.halo``.
    """

    root: Path
    mounts: tuple[Mount, ...]
    unrestricted: bool = False
    shell: Shell = "none"
    working_dir: Path | None = None
    hidden: tuple[Path, ...] = ()
    guard_surface: bool = False
    authoring: Callable[[], bool] = _never

    @property
    def folder(self) -> Path:
        """Where relative paths and commands start."""
        return self.working_dir or self.root

    def mount_of(self, path: Path) -> Mount | None:
        """The mount that decides about ``path`` (absolute, without ``..``); None: nothing is there."""
        found: Mount | None = Mount(Path("/"), Path("/"), writable=True) if self.unrestricted else None
        for mount in self.mounts:
            if (path == mount.path or mount.path in path.parents) and (
                found is None or len(mount.path.parts) >= len(found.path.parts)
            ):
                found = mount
        return found

    def is_hidden(self, path: Path) -> bool:
        """Whether a mount nested in a hidden folder doesn't show ``path`` all the same."""
        for hidden in self.hidden:
            if path == hidden or hidden in path.parents:
                mount = self.mount_of(path)
                if mount is None or len(mount.path.parts) <= len(hidden.parts):
                    return True
        return False

    def may_write(self, path: Path) -> bool:
        mount = self.mount_of(path)
        if mount is None or self.is_hidden(path):
            return False
        if self.is_authored(path) and self.authoring():
            return True
        if not mount.writable:
            return False
        return not (self.guard_surface and self.in_surface(path))

    def is_authored(self, path: Path) -> bool:
        """Whether ``path`` is one of the root's prompt files, or lies in a folder of them."""
        halo = self.root / ".halo"
        return halo in path.parents and path.relative_to(halo).parts[0] in AUTHORED

    def in_surface(self, path: Path) -> bool:
        """Whether ``path`` belongs to a prompt surface: of this workspace, or at ``full`` of any other."""
        inside_root = path == self.root or self.root in path.parents
        return in_surface(path.relative_to(self.root) if inside_root else path)


AUTHORED = ("INSTRUCTIONS.md", "INDEX.md", "USER.md", "agents", "skills", "prompts", "docs")
WRITABLE_IN_HALO = ("assets", "memory", "tmp")


def in_surface(path: Path) -> bool:
    """Whether ``path`` is a folder named ``.halo`` or lies below one, outside its three writable folders."""
    parts = path.parts
    for position, part in enumerate(parts):
        if part == ".halo":
            below = parts[position + 1 :]
            if len(below) < 2 or below[0] not in WRITABLE_IN_HALO:
                return True
    return False
