"""Commands at ``full``: output, limits, what they inherit, and that killing means all of them."""

from __future__ import annotations

import os
import threading

import pytest

from agents import environment, views
from agents.abort import AbortToken
from agents.tools import context as tool_context
from agents.tools.context import ToolContext, ToolError, ToolLimits
from agents.tools.shell_exec import shell_exec
from core.settings_schema import PROVIDER_KEY_VARIABLES

from .conftest import Held, Place


@pytest.fixture
def here(place: Place) -> ToolContext:
    return ToolContext(views.full_view(place.root, global_folder=place.global_folder))


def test_both_streams_in_order_with_the_exit_code(here: ToolContext) -> None:
    command = "echo 1; echo 2 >&2; echo 3; printf '\\xff\\xfe' ; cat; exit 7"
    assert shell_exec(here, command) == "1\n2\n3\n\ufffd\ufffd\n[exit code 7]"


def test_it_starts_in_the_working_directory(place: Place) -> None:
    view = views.full_view(place.root, working_dir=place.root / "docs")
    assert shell_exec(ToolContext(view), "pwd").startswith(str(place.root / "docs"))


def test_output_is_kept_to_the_cap(place: Place) -> None:
    limits = ToolLimits(shell_output_bytes=10_000)
    out = shell_exec(ToolContext(views.full_view(place.root), limits), "seq 1 100000")
    assert len(out) < 11_000
    assert out.startswith("1\n2\n") and "99999\n100000\n" in out and "bytes in the middle were dropped" in out


def test_a_command_longer_than_the_kernel_takes_says_what_to_do(here: ToolContext) -> None:
    assert shell_exec(here, ":" + " " * 131_070) == "[exit code 0]"
    with pytest.raises(ToolError, match=r"131,071 bytes at most; write a long one into a script"):
        shell_exec(here, ":" + " " * 131_071)


def test_secrets_are_not_inherited(here: ToolContext, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = [
        "OPENAI_API_KEY",
        "DATABASE_URL",
        "REDIS_URL",
        "SECRET_KEY",
        "HALO_NODE_TOKEN",
        "OTEL_MADE",
        "MY_KEY",
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        *(name for names in PROVIDER_KEY_VARIABLES.values() for name in names),
    ]
    for name in [*secret, "OTEL_OPERATORS", "HARMLESS"]:
        monkeypatch.setenv(name, f"value-of-{name}")
    monkeypatch.setattr(environment, "_settings_made", set())
    environment.remember_settings_made(["OTEL_MADE"])
    context = ToolContext(here.view, secret_env=frozenset({"MY_KEY"}))
    out = shell_exec(context, "env")
    assert not [name for name in secret if name + "=" in out]
    assert "value-of-OTEL_OPERATORS" in out and "value-of-HARMLESS" in out


def test_a_timeout_kills_the_whole_group(here: ToolContext, held: Held) -> None:
    command = f"exec 3>{held.name}; (sleep 600; touch worker) & sh -c 'sleep 600; true' & echo up; wait"
    out = shell_exec(here, command, timeout=1)
    assert out.startswith("up\n") and "killed after 1 s" in out and "[exit code -15]" in out
    assert held.is_free()


def test_what_ignores_sigterm_is_killed_after_the_grace(
    here: ToolContext, held: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tool_context, "KILL_GRACE_SEC", 0.3)
    out = shell_exec(
        here, f"exec 3>{held.name}; trap '' TERM; echo up; while :; do sleep 0.05; done", timeout=1
    )
    assert "killed after 1 s" in out and "[exit code -9]" in out
    assert held.is_free()


def test_a_worker_may_finish_within_the_grace(place: Place, here: ToolContext) -> None:
    shell_exec(here, "trap 'echo saved > state; exit 0' TERM; while :; do sleep 0.05; done", timeout=1)
    assert (place.root / "state").read_text() == "saved\n"


def test_an_abort_kills_at_once(here: ToolContext) -> None:
    token = AbortToken()
    context = ToolContext(here.view, is_aborted=lambda: token.is_set, on_abort=token.on_abort)
    threading.Timer(0.3, token.abort).start()
    out = shell_exec(context, "echo up; sleep 600")
    assert out.startswith("up\n") and "turn was stopped" in out


def test_a_background_process_does_not_hold_the_turn(here: ToolContext) -> None:
    out = shell_exec(here, "sleep 5 & echo $!")
    assert "background process" in out
    os.kill(int(out.split()[0]), 9)


@pytest.mark.parametrize(
    ("command", "timeout"), [("", 0), ("  ", 0), ("a\0b", 0), ("true", -1), ("true", 99_999)]
)
def test_senseless_calls_are_refused(here: ToolContext, command: str, timeout: int) -> None:
    with pytest.raises(ToolError):
        shell_exec(here, command, timeout)


def test_a_vanished_workspace_is_named(place: Place) -> None:
    view = views.full_view(place.root / "gone")
    with pytest.raises(ToolError, match="gone"):
        shell_exec(ToolContext(view), "true")
