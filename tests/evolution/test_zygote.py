"""Children of the zygote: their streams, their limits, their bond to the wrapper."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agents.turn import View
from core.processes import ProcessIdentity
from evolution import wire, zygote
from evolution.children import Children
from evolution.errors import ClaimLost
from evolution.phases.context import ChildSpec
from evolution.spawn import PROJECT_ROOT

SCRIPTED = "tests.evolution.scripted_child:run"


def spec(folder: Path, script: dict[str, Any], **values: Any) -> ChildSpec:
    return ChildSpec(
        **{
            "agent_id": "__evo_agent__",
            "surface": folder / ".halo",
            "global_folder": folder / "global",
            "workspace": folder,
            "brief": json.dumps(script),
            "view": View(root=folder, mounts=()),
            "access": "readonly",
            "tools": None,
            "model": None,
            "session_folder": folder / "sessions",
            "log": folder / "attempt" / "sub-cli.log",
            **values,
        }
    )


def until(what: Callable[[], Any]) -> Any:
    """Wait for a condition of another process; the limit is only there to fail."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        if found := what():
            return found
        time.sleep(0.01)
    raise AssertionError("it did not happen within 20 s")


@pytest.fixture
def warm() -> Iterator[zygote.Zygote]:
    started = zygote.start(SCRIPTED)
    yield started
    started.close()


@pytest.fixture
def children(warm: zygote.Zygote) -> Children:
    return Children(warm, check=lambda: None, grace_sec=0.2)


def test_the_brief_goes_in_and_the_answer_comes_out(children: Children, tmp_path: Path) -> None:
    result = children.run(spec(tmp_path, {"say": "grüße", "print": "working"}))
    assert (result.exit_code, result.text, result.ended_by) == (0, "grüße", "exit")
    again = children.run(spec(tmp_path, {"exit": 3, "error": "no model", "print": "again"}))
    assert (again.exit_code, again.error) == (3, "no model")
    assert (tmp_path / "attempt/sub-cli.log").read_text() == "working\nagain\n"


def test_what_each_child_used_is_accounted_for(warm: zygote.Zygote, tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    children = Children(warm, check=lambda: None, grace_sec=0.2, account=told.append)
    children.run(spec(tmp_path, {"spent": [120, 30]}))
    children.run(spec(tmp_path, {"exit": 1, "error": "no model", "spent": [7, 0]}))
    children.run(spec(tmp_path, {"die": signal.SIGKILL}))
    assert told == [(120, 30), (7, 0), (0, 0)]


def test_a_child_that_dies_is_an_answer_too(children: Children, tmp_path: Path) -> None:
    killed = children.run(spec(tmp_path, {"die": signal.SIGKILL}))
    assert killed.exit_code != 0
    assert "ended by signal 9" in killed.error
    raised = children.run(spec(tmp_path, {"raise": "bad luck"}))
    assert raised.exit_code == 1
    assert "RuntimeError: bad luck" in (tmp_path / "attempt/sub-cli.log").read_text()
    assert children.run(spec(tmp_path, {"say": "fine"})).text == "fine"


def test_a_zygote_that_dies_says_so(warm: zygote.Zygote, children: Children, tmp_path: Path) -> None:
    """The text becomes the row's reason, when every try ends like this."""
    os.kill(warm.pid, signal.SIGKILL)
    with pytest.raises(wire.PeerGone, match="has ended"):
        children.run(spec(tmp_path, {"say": "hello"}))


def test_time_and_silence_end_a_child(children: Children, tmp_path: Path) -> None:
    silent = children.run(spec(tmp_path, {"hang": True}, silence_sec=0))
    assert silent.ended_by == "silence"
    late = children.run(spec(tmp_path, {"hang": True}, timeout_sec=0))
    assert (late.ended_by, late.exit_code) == ("timeout", -signal.SIGTERM)


def test_output_resets_the_silence(warm: zygote.Zygote, tmp_path: Path) -> None:
    """A clock of our own: every look is a second later, and the child prints between most looks."""
    seconds = iter(range(10_000))
    children = Children(warm, check=lambda: None, elapsed=lambda: float(next(seconds)))
    script = {"beats": 20, "beat_sec": 0.05, "say": "done"}
    result = children.run(spec(tmp_path, script, silence_sec=2))
    assert (result.ended_by, result.text) == ("exit", "done")


def test_one_that_ignores_the_signal_is_killed(children: Children, tmp_path: Path) -> None:
    result = children.run(spec(tmp_path, {"ignore_term": True, "hang": True}, timeout_sec=0))
    assert (result.ended_by, result.exit_code) == ("timeout", -signal.SIGKILL)


def test_a_lost_claim_ends_the_child_in_flight(warm: zygote.Zygote, tmp_path: Path) -> None:
    lost = threading.Event()

    def check() -> None:
        if lost.is_set():
            raise ClaimLost("gone")

    children = Children(warm, check=check, grace_sec=0.2)
    touched = tmp_path / "pid"

    def lose() -> None:
        until(lambda: touched.exists() and touched.read_text())
        lost.set()
        children.abort()

    thread = threading.Thread(target=lose)
    thread.start()
    with pytest.raises(ClaimLost):
        children.run(spec(tmp_path, {"hang": True, "touch": str(touched)}))
    thread.join()
    assert ProcessIdentity.of(int(touched.read_text())) is None
    with pytest.raises(ClaimLost):
        children.run(spec(tmp_path, {"say": "never started"}))


def test_a_claim_lost_while_the_child_starts_ends_it_too(warm: zygote.Zygote, tmp_path: Path) -> None:
    """Nobody calls ``abort`` here: the watch has to see it."""
    touched = tmp_path / "pid"

    def check() -> None:
        if touched.exists() and touched.read_text():
            raise ClaimLost("gone")

    children = Children(warm, check=check, grace_sec=0.2)
    with pytest.raises(ClaimLost):
        children.run(spec(tmp_path, {"hang": True, "touch": str(touched)}))
    assert ProcessIdentity.of(int(touched.read_text())) is None
    children.check = lambda: None
    assert children.run(spec(tmp_path, {"say": "next"})).text == "next"


HOST = """
import sys
from pathlib import Path
from evolution import zygote
from evolution.children import Children
from tests.evolution.test_zygote import SCRIPTED, spec
import json
folder = Path(sys.argv[1])
children = Children(zygote.start(SCRIPTED), check=lambda: None)
print(children.zygote.pid, flush=True)
result = children.run(spec(folder, json.loads(sys.argv[2])))
print(result.text, flush=True)
children.zygote.close()
"""


def host(folder: Path, script: dict[str, Any], environment: dict[str, str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", HOST, str(folder), json.dumps(script)],
        cwd=PROJECT_ROOT,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("stubborn", [False, True])
def test_a_killed_wrapper_leaves_nobody_behind(tmp_path: Path, stubborn: bool) -> None:
    touched = tmp_path / "pid"
    script = {"hang": True, "touch": str(touched)}
    with host(tmp_path, script, {}) as process:
        assert process.stdout is not None
        zygote_process = ProcessIdentity.of(int(process.stdout.readline()))
        pid = int(until(lambda: touched.exists() and touched.read_text()))
        child = ProcessIdentity.of(pid)
        assert zygote_process is not None
        assert child is not None
        if stubborn:
            zygote_process.send(signal.SIGKILL)  # the child has to notice by itself
        process.kill()
    until(lambda: not zygote_process.is_alive() and not child.is_alive())


def test_no_secret_in_a_childs_environment(tmp_path: Path) -> None:
    """Nor where the kernel shows it: /proc/<pid>/environ is what the wrapper was started with."""
    secrets = {"DATABASE_URL": "sqlite:////tmp/s3cret", "SECRET_KEY": "s3cret", "REDIS_URL": "redis://s3cret"}
    with host(tmp_path, {"environ": True}, {**secrets, "KEPT": "by-the-child"}) as process:
        output, _ = process.communicate(timeout=30)
    assert "by-the-child" in output
    assert "s3cret" not in output


def test_nor_a_secret_that_settings_take_from_a_variable(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "secrets").mkdir(parents=True)
    (home / "secrets/settings.yaml").write_text("openai: {secrets: {api_key: <<TEAM_LLM>>}}\n")
    environment = {"TEAM_LLM": "s3cret", "HALO_HOME": str(home), "KEPT": "by-the-child"}
    with host(tmp_path, {"environ": True}, environment) as process:
        output, _ = process.communicate(timeout=30)
    assert "by-the-child" in output
    assert "s3cret" not in output
