"""What differs between two prompt surfaces, and how far each change reaches. Pure; no Django.

The categories are the table of evolution.md, "Auto-apply".
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Category(StrEnum):
    PROMPT = "prompt"
    CAPABILITY = "capability"
    MANUAL = "manual"


@dataclass(frozen=True, slots=True)
class Change:
    """One surface path that differs; ``why`` says what made it a manual or capability change."""

    rel: str
    category: Category
    why: str
