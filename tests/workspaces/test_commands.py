"""``halo workspace``, ``halo settings`` and ``halo doctor`` as a person types them."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from channels.layers import channel_layers
from django.core.management import CommandError, call_command

from agents.sandbox import why_unavailable
from core.db.models import Event
from core.paths import HaloHome
from core.settings_file import Settings
from halo_site import doctor
from tests.postgres import free_port
from workspaces.models import Workspace

pytestmark = pytest.mark.django_db


@pytest.fixture
def machine(home: HaloHome, monkeypatch: pytest.MonkeyPatch) -> Iterator[HaloHome]:
    monkeypatch.setenv("HALO_HOME", str(home.root))
    why_unavailable.cache_clear()
    yield home
    why_unavailable.cache_clear()


def run(*arguments: str) -> str:
    output = io.StringIO()
    call_command(*arguments, stdout=output)
    return output.getvalue()


def run_json(*arguments: str) -> Any:
    return json.loads(run(*arguments, "--json"))


def test_a_workspace_is_added_listed_and_moved(machine: HaloHome, root: Path) -> None:
    added = run_json("workspace", "add", str(root))
    assert added["created"]
    assert "already" in run("workspace", "add", str(root))
    [row] = run_json("workspace", "list")
    assert (row["id"], row["path"], row["exists"]) == (added["id"], str(root), True)
    root.rename(root.with_name("renamed"))
    assert "missing" in run("workspace", "list")
    moved = run_json("workspace", "move", str(root), str(root.with_name("renamed")), "--host", "other")
    assert (moved["path"], moved["host"]) == (str(root.with_name("renamed")), "other")


def test_a_refusal_is_a_failed_command_and_adds_nothing(machine: HaloHome) -> None:
    with pytest.raises(CommandError, match="root of the file system") as caught:
        run("workspace", "add", "/")
    assert caught.value.returncode == 1
    assert Workspace.objects.count() == 0


def test_a_folder_inside_a_workspace_is_not_moved_by_mistake(machine: HaloHome, root: Path) -> None:
    run("workspace", "add", str(root))
    with pytest.raises(CommandError, match="lies in"):
        run("workspace", "move", str(root / "sub"), "--host", "other")
    assert Workspace.objects.get().host != "other"


def test_check_fails_on_a_fault_and_not_on_a_warning(machine: HaloHome, root: Path) -> None:
    run("workspace", "add", str(root))
    assert "Nothing is wrong" in run("workspace", "check", str(root))
    agent = root / ".halo" / "agents" / "a" / "agent.yaml"
    agent.parent.mkdir(parents=True)
    agent.write_text("name: A\ncolour: red\nteam: [ghost]\n")
    assert [fault["severity"] for fault in run_json("workspace", "check", str(root))] == [
        "warning",
        "warning",
    ]
    agent.write_text("name: A\ntools: x\nmodel: {provider: nobody}\n")
    with pytest.raises(CommandError):
        run("workspace", "check", str(root))
    agent.write_text("name: A\nmodel: {provider: groq, id: m}\n")
    with pytest.raises(CommandError):
        run("workspace", "check")


def test_settings_are_set_shown_and_unset(machine: HaloHome) -> None:
    run("settings", "set", "general.evolution.locked", "agents/legal/*, INDEX.md")
    assert run_json("settings", "get", "general.evolution.locked") == {
        "key": "general.evolution.locked",
        "value": ["agents/legal/*", "INDEX.md"],
        "source": "global",
    }
    assert run_json("settings", "set", "general.evolution.score_samples", "5")["changed"]
    assert run("settings", "get", "general.evolution.score_samples") == "5\n"
    run("settings", "set", "general.evolution.score_samples", "--unset")
    assert run("settings", "get", "general.evolution.score_samples") == "1\n"
    run("settings", "set", "general.evolution.four_eyes", "true")
    assert "general.evolution.four_eyes = true  (global)" in run("settings", "get")


def test_a_workspaces_own_settings(machine: HaloHome, root: Path) -> None:
    run("workspace", "add", str(root))
    run("settings", "set", "general.language", "de", "-w", str(root))
    assert run("settings", "get", "general.language", "-w", str(root)) == "de\n"
    assert run("settings", "get", "general.language") == "en-US\n"
    with pytest.raises(CommandError, match="global"):
        run("settings", "set", "general.evolution.level", "L2", "-w", str(root))


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("set", "general.evolution.level", "L9"), "L0, L1, L2, L3"),
        (("set", "general.evolution.score_samples", "many"), "from 1 to 9"),
        (("set", "general.evolution.levle", "L1"), "general.evolution.level"),
        (("get", "general.nothing"), "no setting"),
    ],
)
def test_a_wrong_key_or_value_is_refused(machine: HaloHome, arguments: tuple[str, ...], named: str) -> None:
    with pytest.raises(CommandError, match=named):
        run("settings", *arguments)
    assert not machine.settings_file.exists()


def test_a_secret_is_read_from_standard_input_and_never_printed(
    machine: HaloHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("sk-secret\n"))
    shown = run("settings", "set", "openai.secrets.api_key", "-")
    assert Settings.load(machine).get("openai.secrets.api_key") == "sk-secret"
    shown += run("settings", "get") + run("settings", "get", "openai.secrets.api_key")
    shown += run("settings", "get", "--json") + run("settings", "check")
    assert "sk-secret" not in shown


@pytest.mark.parametrize("value", [(), ("-",)])
def test_nothing_on_standard_input_is_no_value(
    machine: HaloHome, monkeypatch: pytest.MonkeyPatch, value: tuple[str, ...]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("sk-secret\n"))
    run("settings", "set", "openai.secrets.api_key", *value)
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    with pytest.raises(CommandError, match="--unset"):
        run("settings", "set", "openai.secrets.api_key", *value)
    assert Settings.load(machine).get("openai.secrets.api_key") == "sk-secret"


def test_a_value_stands_anywhere_on_the_line(machine: HaloHome) -> None:
    assert run("settings", "set", "general.language", "--json", "de")
    assert Settings.load(machine).get("general.language") == "de"


def test_settings_check_fails_on_a_fault(machine: HaloHome) -> None:
    assert "Nothing is wrong" in run("settings", "check")
    machine.secrets.mkdir(exist_ok=True)
    machine.settings_file.write_text("general: {evolution: {level: L9}}\n")
    with pytest.raises(CommandError):
        run("settings", "check")


def states(home: HaloHome) -> dict[str, str]:
    return {finding.name: finding.state for finding in doctor.examine(home)}


def test_a_healthy_machine_has_nothing_to_mend(machine: HaloHome) -> None:
    assert "fault" not in states(machine).values()
    assert all(finding["state"] != "fault" for finding in run_json("doctor"))


def test_every_finding_that_is_not_ok_says_how_to_mend_it(
    machine: HaloHome, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("workspace", "add", str(root))
    skill = root / ".halo" / "skills" / "s" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: s\ndescription: Use it: now\n---\n")
    machine.secrets.mkdir(exist_ok=True, mode=0o755)
    machine.secrets.chmod(0o755)
    machine.settings_file.write_text("general: {language: 5}\n")
    monkeypatch.setattr(doctor.shutil, "which", lambda name: None)
    findings = doctor.examine(machine)
    assert all(finding.mend for finding in findings if finding.state != "ok")
    text = "\n".join(f"{finding.state} {finding.text}" for finding in findings)
    assert "fault .halo/skills/s/SKILL.md:3" in text
    assert "open to others (mode 755)" in text
    assert "settings.yaml:1: general.language" in text
    assert "warning bubblewrap is not installed" in text
    assert "fault setpriv is missing; halo up can't start" in text
    with pytest.raises(CommandError, match="to mend"):
        run("doctor")


def test_a_sandbox_that_fails_is_told_with_its_reason(
    machine: HaloHome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bwrap"
    program.write_text("#!/bin/sh\necho 'setting up uid map: Permission denied' >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    [finding] = [finding for finding in doctor.examine(machine) if finding.name == "sandbox"]
    assert finding.state == "warning"
    assert "Permission denied" in finding.text


def test_a_redis_that_does_not_answer_is_named(
    machine: HaloHome, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = f"redis://127.0.0.1:{free_port()}/0"
    backend = "channels_redis.pubsub.RedisPubSubChannelLayer"
    settings.REDIS_URL = None
    assert "redis" not in states(machine)
    settings.REDIS_URL = address
    settings.CHANNEL_LAYERS = {"default": {"BACKEND": backend, "CONFIG": {"hosts": [address]}}}
    monkeypatch.setattr(channel_layers, "backends", {})

    [finding] = [finding for finding in doctor.examine(machine) if finding.name == "redis"]

    assert (finding.state, "REDIS_URL" in finding.mend) == ("warning", True)


def test_a_home_that_is_not_there_is_named(tmp_path: Path) -> None:
    [finding] = [finding for finding in doctor.examine(HaloHome(tmp_path / "none")) if finding.name == "home"]
    assert (finding.state, "halo up" in finding.mend) == ("fault", True)


def test_a_changed_setting_is_told_to_open_pages_without_its_value(machine: HaloHome) -> None:
    run("settings", "set", "general.evolution.level", "L2")
    run("settings", "set", "general.evolution.level", "L2")  # no change, nothing to tell
    event = Event.objects.get(kind="settings:changed")
    assert (event.object_id, event.payload) == ("general.evolution.level", {"by": None, "unset": False})
    with pytest.raises(CommandError):
        run("settings", "set", "general.evolution.level", "L9")
    assert Event.objects.filter(kind="settings:changed").count() == 1
