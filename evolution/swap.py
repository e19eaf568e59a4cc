"""The swap of one file, for publish, restore and rollback alike.

A ``Change`` is the hash a live file should have and the hash it shall have. The new content waits under the
same name in ``stage/`` and changes places with the live file in one rename, so nothing is ever unlinked from
the surface, and what came out is looked at every time. ``settle`` decides by what it finds; settling again is
how a crash is recovered from (evolution.md, "The swap", has the table).
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path
from typing import Literal

from core.folders import NotAFolder
from evolution.surface_look import Step, look
from evolution.swap_steps import OUT, PersonWasFaster, Steps


@dataclass(frozen=True, slots=True)
class Change:
    """``old``: the hash expected live, ``new``: the hash wanted live; None: no such file."""

    rel: str
    old: str | None
    new: str | None


@dataclass(frozen=True, slots=True)
class Settled:
    """``done``; ``edited``: done, but a person has changed the file since; ``drift``: not done, a person's
    text is live. ``kept``: texts of a person found in the snapshot, as paths relative to ``stage/``."""

    rel: str
    outcome: Literal["done", "edited", "drift"]
    kept: tuple[str, ...] = ()


class Action(Enum):
    SWAP = auto()
    DONE = auto()
    EDITED = auto()
    GIVE_BACK = auto()
    LEAVE = auto()


def decide(change: Change, *, target: str | None, staged: str | None, restoring: bool = False) -> Action:
    """The table of evolution.md, for all three directions.

    ``restoring``: a text of a person in the stage belongs into the surface even when what we published is
    still live, or the old surface would not come back.
    """
    if staged == change.old and change.old != change.new:
        return Action.DONE if target == change.new else Action.EDITED
    if staged == change.new:
        if target == change.old:
            return Action.SWAP
        return Action.DONE if target == change.new else Action.LEAVE
    ours_is_live = target == change.new or (restoring and target == change.old and change.new is not None)
    if staged is not None and change.old is not None and ours_is_live:
        return Action.GIVE_BACK
    return Action.LEAVE


class Swapper:
    """Settles changes between ``halo`` and ``stage`` ."""

    def __init__(
        self,
        *,
        halo: Path,
        stage: Path,
        step: Step,
        restoring: bool = False,
        may_create: Iterable[str] = (),
    ) -> None:
        self.steps = Steps(halo=halo, stage=stage, step=step, may_create=may_create)
        self._halo = halo
        self._stage = stage
        self._restoring = restoring

    def settle(self, change: Change) -> Settled:
        """Bring one file where it belongs, or find out why not. Safe to repeat. Raises OSError."""
        self.steps.tidy(change.rel)
        target, staged = self._look(change.rel)
        action = decide(change, target=target, staged=staged, restoring=self._restoring)
        outcome: Literal["done", "edited", "drift"] = "drift"
        if action is Action.DONE:
            outcome = "done"
        elif action is Action.EDITED:
            outcome = "edited"
        elif action is Action.SWAP and self._swap(change):
            outcome = "done"
        elif action is Action.GIVE_BACK:
            self._give_back(change.rel, live=target)
        return Settled(change.rel, outcome, () if outcome == "done" else self._kept(change))

    def _swap(self, change: Change) -> bool:
        """Whether the change is live and what came out is what was expected."""
        rel = change.rel
        try:
            if change.old is None:
                self.steps.make_parents(rel)
                self.steps.put_in(rel, "put-in")
                return True
            if change.new is None:
                self.steps.take_out(rel)
            else:
                self.steps.exchange(rel, "exchange")
        except (PersonWasFaster, NotAFolder):
            return False
        if self._look(rel)[1] == change.old:
            return True
        self._give_back(rel, live=change.new)
        return False

    def _give_back(self, rel: str, *, live: str | None) -> None:
        """Put a person's text from the stage into the surface, where ``live`` should be now.

        If that brings out anything else, it is newer than what we put there: it goes live again, and so on
        until what comes out is what we had put in. The older text stays in the stage.
        """
        expected, ours = live, self._look(rel)[1]
        with suppress(PersonWasFaster, NotAFolder):
            with suppress(PersonWasFaster):
                while expected is not None:
                    self.steps.exchange(rel, "give-back")
                    found = self._look(rel)[1]
                    if found == expected:
                        return
                    expected, ours = ours, found
            self.steps.put_in(rel, "give-back")

    def _look(self, rel: str) -> tuple[str | None, str | None]:
        return look(self._halo, rel), look(self._stage, rel)

    def _kept(self, change: Change) -> tuple[str, ...]:
        known = (None, change.old, change.new)
        return tuple(
            path for path in (change.rel, f"{OUT}/{change.rel}") if look(self._stage, path) not in known
        )
