"""Tokens a day over the last two weeks, as the first page's chart: bars in whole units, drawn without a script."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta

from django.db.models import F, Sum

from sessions_app.models import TokensOnDay

DAYS = 14
HEIGHT = 100
"""Units of the drawing's height; the highest bar fills it."""


@dataclass(frozen=True, slots=True)
class Bar:
    """One day: its tokens, and its place in the drawing (100 units wide a day; heights of the stacked parts)."""

    day: date
    left: int
    chat: int
    evolution: int
    chat_height: int
    evolution_height: int

    @property
    def total(self) -> int:
        return self.chat + self.evolution

    @property
    def chat_top(self) -> int:
        return HEIGHT - self.chat_height

    @property
    def evolution_top(self) -> int:
        return self.chat_top - self.evolution_height


@dataclass(frozen=True, slots=True)
class TokenChart:
    bars: list[Bar] = field(default_factory=list)

    @property
    def width(self) -> int:
        return 100 * len(self.bars)

    @property
    def chat(self) -> int:
        return sum(bar.chat for bar in self.bars)

    @property
    def evolution(self) -> int:
        return sum(bar.evolution for bar in self.bars)

    @property
    def most(self) -> int:
        return max((bar.total for bar in self.bars), default=0)


def read_tokens(*, now: datetime) -> TokenChart:
    """The last ``DAYS`` days (UTC), today's the last; a day without any has a bar of no height."""
    today = now.astimezone(UTC).date()
    days = [today - timedelta(days=back) for back in range(DAYS - 1, -1, -1)]
    used: dict[tuple[date, str], int] = defaultdict(int)
    for day, use, tokens in (
        TokensOnDay.objects.filter(day__gte=days[0], day__lte=today)
        .values_list("day", "use")
        .annotate(tokens=Sum(F("input_tokens") + F("output_tokens")))
    ):
        used[day, use] = tokens
    most = max((sum(used[day, use] for use in TokensOnDay.Use.values) for day in days), default=0)
    return TokenChart(
        [
            _bar(number, day, used[day, TokensOnDay.Use.CHAT], used[day, TokensOnDay.Use.EVOLUTION], most)
            for number, day in enumerate(days)
        ]
    )


def _bar(number: int, day: date, chat: int, evolution: int, most: int) -> Bar:
    return Bar(
        day=day,
        left=100 * number + 18,
        chat=chat,
        evolution=evolution,
        chat_height=_height(chat, most),
        evolution_height=_height(chat + evolution, most) - _height(chat, most),
    )


def _height(tokens: int, most: int) -> int:
    return round(HEIGHT * tokens / most) if most else 0
