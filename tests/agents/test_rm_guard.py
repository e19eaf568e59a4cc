"""The catch against recursive deletes of the wrong folder, in the spellings people and models use."""

from __future__ import annotations

from pathlib import Path

import pytest

from agents import rm_guard, views
from agents.tools.context import ToolContext, ToolError
from agents.tools.shell_exec import shell_exec

from .conftest import Place

ROOT = Path("/srv/work/ws")


@pytest.mark.parametrize(
    "command",
    [
        "rm -rf /",
        "rm -fr /*",
        "rm -r -f -- /",
        "rm --recursive --force /",
        "rm --rec /",
        "rm -Rf //",
        "sudo rm -rf /",
        "sudo -u root rm -rf /",
        "env X=1 nice -n 5 rm -rf /",
        "/bin/rm -rf /",
        "\\rm -rf /",
        "'rm' -rf /",
        'r"m" -rf "/"',
        "rm -rf ~",
        "rm -rf ~/",
        "rm -rf $HOME",
        'rm -rf "${HOME}"/*',
        "rm -rf /home",
        "rm -rf /home/someone",
        "rm -rf .",
        "rm -rf ./",
        "rm -rf *",
        "rm -rf ./*",
        "rm -rf ..",
        "rm -rf $PWD",
        "rm -rf /srv/work/ws",
        "rm -rf docs/..",
        "rm -rf docs .halo",
        "rm -rf .halo/",
        "rm -rf .halo/*",
        "rm . -rf",
        "cd docs && rm -rf ..",
        "cd / && rm -rf .",
        "cd /; rm -rf *",
        "(cd / && rm -rf .)",
        "true || rm -rf .",
        "if true; then rm -rf .; fi",
        "echo x | xargs true & rm -rf .",
        "X=/; rm -rf $X",
        "bash -c 'rm -rf /'",
        'sh -ec "cd / && rm -rf ."',
        "eval rm -rf /",
        "echo $(rm -rf /)",
        "echo `rm -rf /`",
        "true\nrm -rf .",
        "rm -rf \\\n  .",
        "rm -rf {docs,.halo}",
        "busybox rm -rf /",
    ],
)
def test_refused(command: str) -> None:
    assert rm_guard.protected_target(command, folder=ROOT, root=ROOT) is not None


@pytest.mark.parametrize(
    "command",
    [
        "rm -rf build",
        "rm -rf ./node_modules dist",
        "rm file",
        "rm -f .halo",
        "rm *",
        "rm -rf /tmp/x",
        "rm -rf docs/*",
        "cd docs && rm -rf .",
        "echo rm -rf /",
        "git commit -m 'rm -rf /'",
        "grep -r 'rm -rf .' .",
        'for d in a b; do rm -rf "$d"; done',
        "rm -rf '*'x",
        "ls 'unclosed",
        "rm -rf .halo/tmp/x",
    ],
)
def test_allowed(command: str) -> None:
    assert rm_guard.protected_target(command, folder=ROOT, root=ROOT) is None


def test_a_refused_command_does_not_run(place: Place) -> None:
    context = ToolContext(views.full_view(place.root))
    with pytest.raises(ToolError, match="recursively"):
        shell_exec(context, "touch ran; rm -rf .")
    assert not (place.root / "ran").exists()
    assert (place.root / ".halo/INSTRUCTIONS.md").exists()


def test_a_link_to_the_workspace_is_seen_through(place: Place) -> None:
    (place.root / "docs/up").symlink_to(place.root)
    assert rm_guard.protected_target("rm -rf docs/up/", folder=place.root, root=place.root)


@pytest.mark.parametrize(
    "command",
    [
        "rm -rf " + "{a,b}" * 60,
        "rm -rf {" + "a," * 60_000,
        "x=aaaaaaaaaa; " + "x=$x$x; " * 60 + "rm -rf $x",
    ],
    ids=["braces", "an open brace", "a variable that doubles"],
)
def test_no_spelling_keeps_the_guard_busy_for_ever(command: str) -> None:
    """Written out, these need more time or memory than there is; the shell itself can be killed, this can't."""
    assert rm_guard.protected_target(command, folder=ROOT, root=ROOT) is None
    assert rm_guard.protected_target(f"{command}; rm -rf .", folder=ROOT, root=ROOT) == str(ROOT)
