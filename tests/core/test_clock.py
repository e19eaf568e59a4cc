"""Stamps have one width in every year, so that they sort as text."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from core import clock


@pytest.mark.parametrize(
    ("moment", "stamp"),
    [
        (datetime(1, 1, 1, tzinfo=UTC), "0001-01-01T00:00:00.000Z"),
        (datetime(2026, 1, 31, 9, 30, 0, 123_999, tzinfo=UTC), "2026-01-31T09:30:00.123Z"),
        (datetime(2026, 1, 1, tzinfo=timezone(timedelta(hours=2))), "2025-12-31T22:00:00.000Z"),
    ],
)
def test_a_stamp_is_in_utc_and_milliseconds(moment: datetime, stamp: str) -> None:
    assert clock.stamp(moment) == stamp
