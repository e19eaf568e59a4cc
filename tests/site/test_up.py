"""``halo up`` for real: address, first password, health, restart of a dead web process, a clean end."""

from __future__ import annotations

import configparser
import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from core import clock
from core.processes import ProcessIdentity
from evolution import transitions
from halo_site import up as halo_up
from tests.evolution.rows import Rows
from tests.postgres import free_port

ROOT = Path(__file__).resolve().parents[2]


@contextmanager
def up(home: Path, *arguments: str, browser: str = "") -> Iterator[subprocess.Popen[str]]:
    environment = {**os.environ, "HALO_HOME": str(home), "BROWSER": browser}
    environment.pop("DJANGO_SETTINGS_MODULE", None)
    process = subprocess.Popen(
        [sys.executable, "-u", "-m", "halo_site", "up", *arguments],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def line_with(process: subprocess.Popen[str], text: str) -> str:
    """The next line of output that holds ``text``; everything before it is only shown on failure."""
    assert process.stdout is not None
    read = []
    for line in process.stdout:
        read.append(line)
        if text in line:
            return line
    raise AssertionError(f"no line with {text!r} in:\n{''.join(read)}")


def address_of(line: str) -> str:
    found = re.search(r"http://\S+/", line)
    assert found is not None
    return found[0]


def until(what: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if found := what():
            return found
        time.sleep(0.05)
    raise AssertionError("it did not happen within 60 s")


def asked(address: str) -> dict[str, Any] | None:
    """What it says of itself; None while nothing listens, or while it isn't well."""
    try:
        with urllib.request.urlopen(address, timeout=10) as answer:  # noqa: S310 - our server, loopback
            value: dict[str, Any] = json.loads(answer.read())
            return value
    except (urllib.error.URLError, ConnectionError):
        return None


def children_of(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.mark.timeout(300)
def test_up_serves_restarts_what_dies_and_ends_cleanly(tmp_path: Path) -> None:
    with up(tmp_path / "home", "--port", "0") as process:
        address = address_of(line_with(process, "Halo is at"))
        password = line_with(process, "First administrator: admin")
        assert "shown only now" in password
        assert until(lambda: asked(f"{address}healthz")) == {"status": "ok"}
        ready = until(lambda: asked(f"{address}readyz"))
        assert ready.pop("status") == "ready"
        assert set(ready.values()) == {True}
        web, cluster = until(lambda: (found := children_of(process.pid))[1:] and found)
        identities = [ProcessIdentity.of(pid) for pid in (web, cluster)]

        os.kill(web, signal.SIGKILL)
        line_with(process, "starting it again")
        until(lambda: asked(f"{address}readyz"))

        process.send_signal(signal.SIGINT)
        line_with(process, "Halo has ended")
        assert process.wait(timeout=60) == 0
        assert not any(identity and identity.is_alive() for identity in identities)
        assert asked(f"{address}healthz") is None

    with up(tmp_path / "home", "--port", "0", "--no-cluster") as process:
        line_with(process, "Halo is at")
        assert "First administrator" not in line_with(process, "ticks alone")
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 0


@pytest.mark.timeout(300)
def test_the_address_is_opened_and_wrappers_that_work_on_are_named(tmp_path: Path) -> None:
    home, opened = tmp_path / "home", tmp_path / "opened"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {opened}.part\nmv {opened}.part {opened}\n')
    browser.chmod(0o755)
    wrapper = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
    try:
        with up(home, "--port", "0", "--no-cluster", "--open", browser=f"{browser} %s") as process:
            address = address_of(line_with(process, "Halo is at"))
            until(opened.exists)
            assert opened.read_text() == f"{address}\n"
            run = _work_on_a_run(home, tmp_path, pid=wrapper.pid)
            process.send_signal(signal.SIGINT)
            told = line_with(process, "works on by itself")
            assert process.wait(timeout=60) == 0
        assert wrapper.poll() is None
    finally:
        wrapper.kill()
        wrapper.wait()

    assert told == f"run-{run} works on by itself (pid {wrapper.pid}, draft).\n"


def _work_on_a_run(home: Path, folder: Path, *, pid: int) -> str:
    """A run at work, whose wrapper is this process."""
    program = f"""
        import dataclasses, django
        django.setup()
        from pathlib import Path
        from django.db import transaction
        from core import clock
        from core.processes import ProcessIdentity
        from evolution import transitions
        from tests.evolution.rows import Rows
        rows = dataclasses.replace(Rows.make(Path({str(folder)!r})), now=clock.now())
        with transaction.atomic():
            run, claim = rows.claimed()
            transitions.write_process(claim, process=ProcessIdentity.of({pid}), now=rows.now)
            transitions.set_phase(claim, phase="draft", now=rows.now)
        print(run.pk)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        cwd=ROOT,
        env={**os.environ, "HALO_HOME": str(home), "DJANGO_SETTINGS_MODULE": "halo_site.settings.web"},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


@pytest.mark.timeout(120)
def test_the_service_in_the_docs_leaves_wrappers_alone() -> None:
    text = (ROOT / "docs/evolution.md").read_text()
    unit = configparser.ConfigParser()
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read_string(text.partition("```ini\n")[2].partition("```")[0])
    assert unit["Service"]["KillMode"] == "process"
    assert unit["Service"]["ExecStart"].endswith("/halo up")


@pytest.mark.django_db
@pytest.mark.usefixtures("halo_home")
def test_it_names_the_wrappers_that_work_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = Rows.make(tmp_path)
    (run, claim), (_, late) = rows.claimed(), rows.claimed()
    now = clock.now()
    mine = ProcessIdentity.current()
    transitions.write_process(claim, process=mine, now=now)
    transitions.set_phase(claim, phase="draft", now=now)
    transitions.write_process(late, process=replace(mine, start_time=mine.start_time - 1), now=now)
    supervisor = Mock(start_web=lambda: 8000)
    monkeypatch.setattr(halo_up, "_supervisor", lambda *_, **__: supervisor)
    monkeypatch.setattr(halo_up.signal, "signal", lambda *_: None)
    said: list[str] = []

    assert halo_up.up(halo_up.DEFAULTS, say=said.append) == 0

    supervisor.run.assert_called_once_with()
    assert said[-2:] == [f"{run} works on by itself (pid {os.getpid()}, draft).", "Halo has ended."]
    assert not any("works on" in line for line in said[:-2])


def test_a_taken_port_is_told_with_a_way_out(tmp_path: Path) -> None:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", free_port()))
        taken.listen()
        port = taken.getsockname()[1]
        with up(tmp_path / "home", "--port", str(port), "--no-cluster") as process:
            assert "--port" in line_with(process, "choose another")
            assert process.wait(timeout=60) == 1


@pytest.mark.timeout(120)
def test_listening_beyond_this_machine_needs_the_names(tmp_path: Path) -> None:
    with up(tmp_path / "home", "--host", "0.0.0.0") as process:  # noqa: S104 - it is refused
        assert "ALLOWED_HOSTS" in line_with(process, "needs")
        assert process.wait(timeout=60) == 2
    assert (tmp_path / "home" / "halo.sqlite3").stat().st_size == 0
