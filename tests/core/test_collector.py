"""The collector rests while anybody asked for it, and goes on as it was."""

from __future__ import annotations

import gc

import pytest

from core import collector


def test_it_goes_on_when_the_last_one_is_done() -> None:
    assert gc.isenabled()
    with collector.at_rest():
        with collector.at_rest():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_it_goes_on_after_a_failure() -> None:
    with pytest.raises(ValueError, match="x"), collector.at_rest():
        raise ValueError("x")
    assert gc.isenabled()


def test_one_that_was_off_stays_off() -> None:
    gc.disable()
    try:
        with collector.at_rest():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
