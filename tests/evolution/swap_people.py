"""The edits a person makes in the middle of a swap, and the file systems it may happen on."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from dataclasses import dataclass

from tests.evolution.swap_world import TOUCHED, World, no_step

TEXT = "PERSON was here\n"


@dataclass(frozen=True)
class Edit:
    """``prepare`` runs before anything starts (opening a descriptor), ``make`` is the edit itself."""

    name: str
    rel: str
    make: Callable[[World, int], None]
    text: str = TEXT
    opens: bool = False

    @property
    def changes(self) -> bool:
        return self.name != "no edit"

    @property
    def races(self) -> bool:
        """Whether it may fall between two moves of the same file."""
        return self.changes and self.rel in TOUCHED

    def open(self, world: World) -> int:
        """A descriptor of the file as it was at the start, or -1."""
        return os.open(world.halo / self.rel, os.O_WRONLY | os.O_APPEND) if self.opens else -1


def _in_place(rel: str) -> Callable[[World, int], None]:
    return lambda world, _: world.write(rel, TEXT)


def _by_rename(rel: str) -> Callable[[World, int], None]:
    return lambda world, _: world.write_by_rename(rel, TEXT)


def _delete(rel: str) -> Callable[[World, int], None]:
    return lambda world, _: (world.halo / rel).unlink(missing_ok=True)


def _through(world: World, descriptor: int) -> None:
    os.write(descriptor, TEXT.encode())


EDITS = [
    Edit("no edit", "USER.md", lambda _world, _descriptor: None, text=""),
    Edit("target in place", "INSTRUCTIONS.md", _in_place("INSTRUCTIONS.md")),
    Edit("target by rename", "agents/helper/AGENT.md", _by_rename("agents/helper/AGENT.md")),
    Edit("target deleted", "INSTRUCTIONS.md", _delete("INSTRUCTIONS.md"), text=""),
    Edit("name of a new file", "skills/dig/SKILL.md", _by_rename("skills/dig/SKILL.md")),
    Edit("another file", "USER.md", _in_place("USER.md")),
    Edit("file in a new folder", "skills/dig/mine.md", _in_place("skills/dig/mine.md")),
    Edit("late write", "INSTRUCTIONS.md", _through, opens=True),
]


def _refuse(*operations: str) -> Callable[[str], None]:
    def step(name: str) -> None:
        if name.startswith(operations):
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), name)

    return step


FILE_SYSTEMS: dict[str, Callable[[str], None]] = {
    "exchange": no_step,
    "no exchange": _refuse("exchange:", "give-back:"),
    "no renameat2": _refuse("exchange:", "give-back:", "put-in:", "try:", "put-back:"),
}
