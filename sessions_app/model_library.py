"""Importing what a turn needs of the model library: more than a second, so never on the event loop.

Two threads that import it at once find each other's half-made modules (it imports itself in circles), so all
go through one lock.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from core import collector

if TYPE_CHECKING:
    from agents.compaction import Outcome as Compaction
    from agents.turn import TurnOutcome

_importing = threading.Lock()


def load() -> Callable[..., Coroutine[Any, Any, TurnOutcome]]:
    """``agents.loop.run_turn``, imported. Blocks while another thread imports.

    The collector rests meanwhile: the import makes many objects and no garbage, and would be scanned in vain.
    """
    with _importing, collector.at_rest():
        import pydantic_ai.direct  # noqa: F401

        from agents import model_call  # noqa: F401
        from agents.loop import run_turn
    return run_turn


def load_compaction() -> Callable[..., Coroutine[Any, Any, tuple[Compaction, str]]]:
    """``agents.loop.compact_now``, imported in the same way."""
    load()
    from agents.loop import compact_now

    return compact_now


def load_in_background() -> None:
    """Begin while something else waits for the disk; whoever needs it calls ``load``."""
    threading.Thread(target=load, name="model-library", daemon=True).start()
