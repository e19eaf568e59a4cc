"""The resume table of the swap, row by row, in all three directions; and the endless-edit loop."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from core import hashes
from evolution.swap import Action, Change, Swapper, decide
from tests.evolution.swap_world import no_step

OVERWRITE = Change("x", old="before", new="after")
ADD = Change("x", old=None, new="after")
REMOVE = Change("x", old="after", new=None)


@pytest.mark.parametrize(
    ("change", "target", "staged", "action"),
    [
        (OVERWRITE, "before", "after", Action.SWAP),
        (ADD, None, "after", Action.SWAP),
        (REMOVE, "after", None, Action.SWAP),
        (OVERWRITE, "after", "before", Action.DONE),
        (ADD, "after", None, Action.DONE),
        (REMOVE, None, "after", Action.DONE),
        (OVERWRITE, "other", "before", Action.EDITED),
        (OVERWRITE, None, "before", Action.EDITED),
        (OVERWRITE, "before", "before", Action.EDITED),
        (ADD, "other", None, Action.EDITED),
        (ADD, None, None, Action.EDITED),
        (REMOVE, "other", "after", Action.EDITED),
        (OVERWRITE, "after", "other", Action.GIVE_BACK),
        (REMOVE, None, "other", Action.GIVE_BACK),
        (OVERWRITE, "other", "after", Action.LEAVE),
        (OVERWRITE, None, "after", Action.LEAVE),
        (ADD, "other", "after", Action.LEAVE),
        (REMOVE, "other", None, Action.LEAVE),
        (OVERWRITE, "other", "other", Action.LEAVE),
        (OVERWRITE, None, "other", Action.LEAVE),
        (OVERWRITE, "before", "other", Action.LEAVE),
        (OVERWRITE, "after", None, Action.LEAVE),
        (ADD, "other", "other", Action.LEAVE),
    ],
)
def test_what_is_found_decides(
    change: Change, target: str | None, staged: str | None, action: Action
) -> None:
    assert decide(change, target=target, staged=staged) is action


def test_restoring_puts_a_late_text_live_even_where_ours_still_is() -> None:
    assert decide(OVERWRITE, target="before", staged="other", restoring=True) is Action.GIVE_BACK
    assert decide(REMOVE, target="after", staged="other", restoring=True) is Action.LEAVE


def folders(tmp_path: Path, *, live: str, staged: str) -> tuple[Path, Path]:
    for name, text in (("live", live), ("stage", staged)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "INDEX.md").write_text(text)
    return tmp_path / "live", tmp_path / "stage"


def hook(acts: dict[int, Callable[[], object]]) -> Callable[[str], None]:
    count = 0

    def step(_name: str) -> None:
        nonlocal count
        acts.get(count, lambda: None)()
        count += 1

    return step


@pytest.mark.parametrize("times", [1, 2, 3, 6])
def test_the_newest_of_many_edits_is_live_and_the_one_before_it_is_kept(tmp_path: Path, times: int) -> None:
    """A person saves by rename just before each exchange: every exchange brings out something unexpected."""
    live, stage = folders(tmp_path, live="before", staged="after")

    def save(number: int) -> Callable[[], object]:
        def act() -> None:
            (live / "new").write_text(f"edit {number}")
            (live / "new").replace(live / "INDEX.md")

        return act

    swapper = Swapper(halo=live, stage=stage, step=hook({number: save(number) for number in range(times)}))
    change = Change("INDEX.md", hashes.of_bytes(b"before"), hashes.of_bytes(b"after"))
    settled = swapper.settle(change)
    assert settled.outcome == "drift"
    assert (live / "INDEX.md").read_text() == f"edit {times - 1}"
    if times > 1:
        assert (stage / "INDEX.md").read_text() == f"edit {times - 2}"
        assert settled.kept == ("INDEX.md",)
    else:
        assert (stage / "INDEX.md").read_text() == "after" and settled.kept == ()


def test_the_stage_is_not_moved_over_a_file_that_appears(tmp_path: Path) -> None:
    live, stage = folders(tmp_path, live="gone", staged="after")
    (live / "INDEX.md").unlink()
    swapper = Swapper(
        halo=live, stage=stage, step=hook({0: lambda: (live / "INDEX.md").write_text("PERSON")})
    )
    settled = swapper.settle(Change("INDEX.md", None, hashes.of_bytes(b"after")))
    assert (settled.outcome, (live / "INDEX.md").read_text()) == ("drift", "PERSON")
    assert (stage / "INDEX.md").read_text() == "after"


def test_settling_needs_no_step_to_find_that_nothing_is_to_do(tmp_path: Path) -> None:
    live, stage = folders(tmp_path, live="after", staged="before")
    change = Change("INDEX.md", hashes.of_bytes(b"before"), hashes.of_bytes(b"after"))
    assert Swapper(halo=live, stage=stage, step=no_step).settle(change).outcome == "done"
