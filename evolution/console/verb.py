"""What a verb of ``halo evo`` is made of."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Options = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Answer:
    """``value`` for ``--json``, ``lines`` for people; ``ok`` False ends with exit code 1."""

    value: Any
    lines: list[str]
    ok: bool = True


@dataclass(frozen=True, slots=True)
class Verb:
    """``parts``: the verb is the name of a group, and these are what it does."""

    help: str
    run: Callable[[Options], Answer] = field(default=lambda options: Answer(None, []))
    arguments: Callable[[ArgumentParser], None] = field(default=lambda parser: None)
    decides: bool = False
    parts: Mapping[str, Verb] = field(default_factory=dict)
