"""Commands under bubblewrap: what they can't see, can't change and don't inherit."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agents import sandbox, shell, views
from agents.tools.context import ToolContext, ToolError, ToolLimits
from agents.tools.file_read import file_read
from agents.tools.grep import grep
from agents.tools.shell_exec import shell_exec
from agents.view import View

from .conftest import Held, Place
from .test_files import content

pytestmark = pytest.mark.sandbox


def run(view: View, command: str, **limits: int) -> str:
    return shell_exec(ToolContext(view, ToolLimits(**limits)), command)


@pytest.fixture
def view(place: Place) -> View:
    return views.workspace_view(place.root, place.global_folder)


def test_the_workspace_is_writable_and_the_tools_are_there(view: View, place: Place) -> None:
    out = run(
        view,
        "echo hi > made.txt && mkdir -p sub && mv made.txt sub/ && cat sub/made.txt && python3 -c 'print(1+1)'",
    )
    assert out == "hi\n2\n\n[exit code 0]"
    assert (place.root / "sub/made.txt").read_text() == "hi\n"


@pytest.mark.parametrize(
    "attempt",
    [
        "echo x > .halo/INSTRUCTIONS.md",
        "echo x > .halo/new.md",
        "rm -f .halo/INSTRUCTIONS.md",
        "mv .halo .old; mkdir .halo; echo x > .halo/INSTRUCTIONS.md",
        "mv .halo/INSTRUCTIONS.md .halo/x",
        "mv .halo/agents .halo/old",
        "ln -sf /etc/passwd .halo/INSTRUCTIONS.md",
        "echo x > new; mv new .halo/INSTRUCTIONS.md; rm -f new",
        "ln .halo/INSTRUCTIONS.md hard && echo x > hard",
        "mv .halo/memory .halo/m",
        "umount .halo; echo x > .halo/INSTRUCTIONS.md",
        "mount -o remount,rw .halo; echo x > .halo/INSTRUCTIONS.md",
        "unshare -Urm sh -c 'umount .halo; mount -o remount,rw,bind .halo; echo x > .halo/INSTRUCTIONS.md'",
        "chmod 777 .halo; touch -d yesterday .halo/INSTRUCTIONS.md; truncate -s 0 .halo/INSTRUCTIONS.md",
        "python3 -c \"import os; os.rename('.halo', 'x')\"",
        "cd .. && mv ws ws2",
        "echo x >> AGENTS.md; rm -f AGENTS.md; mv AGENTS.md b",
        "mv .agents b; echo x > .agents/skills/s/SKILL.md",
    ],
)
def test_the_surface_can_be_neither_written_nor_renamed_nor_replaced(place: Place, attempt: str) -> None:
    (place.root / "AGENTS.md").write_text("notes\n")
    (place.root / ".agents/skills/s").mkdir(parents=True)
    (place.root / ".agents/skills/s/SKILL.md").write_text("skill\n")
    before = content(place)
    run(views.workspace_view(place.root, place.global_folder), attempt)
    assert content(place) == before


def test_three_folders_of_halo_are_writable(view: View, place: Place) -> None:
    out = run(view, "for d in assets memory tmp; do echo $d > .halo/$d/x; done; cat .halo/*/x")
    assert "assets\nmemory\ntmp" in out
    assert (place.root / ".halo/memory/x").read_text() == "memory\n"


def test_nested_surfaces_on_the_way_to_the_working_directory_are_kept(place: Place) -> None:
    nested = place.root / "a/b/.halo"
    nested.mkdir(parents=True)
    (nested / "INSTRUCTIONS.md").write_text("nested\n")
    (place.root / "a/b/c").mkdir()
    view = views.workspace_view(place.root, place.global_folder, working_dir=place.root / "a/b/c")
    out = run(
        view,
        "pwd; touch here; cd ../../..; mv a z; mv a/b a/y; mv a/b/.halo q; echo x > a/b/.halo/INSTRUCTIONS.md",
    )
    assert out.startswith(str(place.root / "a/b/c"))
    assert (nested / "INSTRUCTIONS.md").read_text() == "nested\n"
    assert (place.root / "a/b/c/here").exists() and not (place.root / "z").exists()


def test_nothing_is_left_behind_for_absent_names(place: Place) -> None:
    (place.root / ".halo/tmp").rmdir()
    before = set(place.root.rglob("*"))
    assert "[exit code 0]" in run(views.workspace_view(place.root, place.global_folder), "true")
    assert set(place.root.rglob("*")) == before


def test_a_planted_symlink_binds_nothing(place: Place) -> None:
    (place.root / "AGENTS.md").symlink_to(place.home / "secrets/settings.yaml")
    (place.root / ".agents").symlink_to(place.home)
    out = run(views.workspace_view(place.root, place.global_folder), "cat AGENTS.md; ls .agents/")
    assert "sk-secret" not in out and "halo.sqlite3" not in out


@pytest.mark.parametrize("name", [".agents", "AGENTS.md", "a", "a/.halo", ".halo"])
def test_a_name_swapped_while_the_sandbox_is_built_binds_nothing(
    place: Place, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """A command beside this one trades a checked name for a link between our look and bubblewrap's mount."""
    for folder in (".agents", "a/.halo"):
        (place.root / folder).mkdir(parents=True)
    (place.root / "AGENTS.md").write_text("notes")
    secret = place.home / "secrets"
    target = secret / "settings.yaml" if name == "AGENTS.md" else secret
    start = shell._start

    def swap_first(arguments: list[str], **options: Any) -> Any:
        (place.root / name).rename(place.root / "aside")
        (place.root / name).symlink_to(target)
        return start(arguments, **options)

    view = views.workspace_view(place.root, place.global_folder, working_dir=place.root / "a")
    monkeypatch.setattr(shell, "_start", swap_first)
    before = content(place)[str(Path("home/secrets/settings.yaml"))]
    with pytest.raises(ToolError) as refused:
        run(view, f"cat {place.root}/{name} {place.root}/{name}/*; echo x > settings.yaml; touch ran")
    assert "sk-secret" not in str(refused.value) and "ro-bind" not in str(refused.value)
    assert content(place)["home/secrets/settings.yaml"] == before
    assert not list(place.root.rglob("ran")) and not list(place.home.rglob("ran"))


@pytest.mark.parametrize("level", ["workspace", "readonly"])
def test_nothing_else_of_the_host_is_visible(place: Place, level: str) -> None:
    other = place.root.parent / "other-ws"
    other.mkdir()
    (other / "secret.txt").write_text("secret of others")
    outside = socket.socket(socket.AF_UNIX)
    outside.bind(str(place.root.parent / "daemon.sock"))
    make = views.workspace_view if level == "workspace" else views.readonly_view
    view = make(place.root, place.global_folder)
    out = run(
        view,
        f"ls {place.root.parent}; cat {other}/secret.txt {place.home}/secrets/settings.yaml {place.home}/halo.sqlite3;"
        " cat /etc/shadow /etc/ssh/ssh_host_rsa_key; ls /root /home /var/run /run/docker.sock",
    )
    outside.close()
    assert "secret of others" not in out and "sk-secret" not in out and not re.search("^root:", out, re.M)
    assert "daemon.sock" not in out and "other-ws" not in out.splitlines()[0]
    visible = run(view, f"ls {place.root.parent}; ls {place.home}; ls {place.global_folder}").split()
    assert visible == ["home", "ws", "global", "prompts", "[exit", "code", "0]"]
    assert run(view, f"cat {place.global_folder}/prompts/all/tone.md").startswith("be kind")


def test_no_network_no_foreign_process_no_inherited_environment(
    view: View, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "SOME_TOKEN", "DATABASE_URL"):
        monkeypatch.setenv(name, "very-secret")
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        out = run(view, f"(echo > /dev/tcp/127.0.0.1/{port}) && echo CONNECTED; cat /proc/net/dev | wc -l")
        assert "CONNECTED" not in out
    out = run(
        view,
        f"env; cat /proc/*/environ | tr '\\0' '\\n'; ls /proc | grep -c '^[0-9]'; kill -9 {os.getpid()}",
    )
    assert "very-secret" not in out
    processes = int(next(line for line in out.splitlines() if line.isdigit()))
    assert processes < 10


def test_readonly_writes_only_to_its_own_tmp(place: Place) -> None:
    before = content(place)
    view = views.readonly_view(place.root, place.global_folder)
    mine = Path("/tmp") / f"halo-sandbox-{os.getpid()}"
    out = run(view, f"echo x > {mine} && cat {mine}; echo x > here; echo x > .halo/memory/x; mkdir d")
    assert out.startswith("x\n")
    assert content(place) == before
    assert not mine.exists()


def test_an_overlay_stands_in_for_the_surface(place: Place, tmp_path: Path) -> None:
    stand_in = tmp_path / "attempt/sandbox/.halo"
    stand_in.mkdir(parents=True)
    (stand_in / "INSTRUCTIONS.md").write_text("new rules\n")
    before = content(place)
    view = views.overlay_view(place.root, stand_in, place.global_folder)
    out = run(view, "cat .halo/INSTRUCTIONS.md; ls .halo; echo x > .halo/x; echo x > docs/x; mv .halo y")
    assert out.startswith("new rules\nINSTRUCTIONS.md\n")
    assert content(place) == before
    assert not (tmp_path / "ws/.halo/x").exists()


def test_a_home_inside_the_workspace_is_covered(tmp_path: Path) -> None:
    home = tmp_path / ".halo"
    for folder in ("secrets", "global/prompts", "memory"):
        (home / folder).mkdir(parents=True)
    (home / "secrets/settings.yaml").write_text("sk-secret")
    (home / "halo.sqlite3").write_text("rows")
    out = run(
        views.workspace_view(tmp_path, home / "global"),
        "cat .halo/secrets/* .halo/halo.sqlite3; ls -A .halo/secrets",
    )
    assert "sk-secret" not in out and "rows" not in out


@pytest.mark.parametrize("through_a_link", [False, True])
def test_a_home_beside_the_interpreter_is_covered(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, through_a_link: bool
) -> None:
    """A virtual environment that HALO_HOME lies in is shown to commands; HALO_HOME is not."""
    prefix = tmp_path
    if through_a_link:
        prefix = tmp_path.with_name(f"{tmp_path.name}-link")
        prefix.symlink_to(tmp_path)
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib/module.py").write_text("code\n")
    monkeypatch.setattr(sys, "prefix", str(prefix))
    out = run(
        views.workspace_view(place.root, place.global_folder),
        f"cat {prefix}/lib/module.py; cat {prefix}/home/secrets/* {place.home}/secrets/* {prefix}/home/halo.sqlite3",
    )
    assert out.startswith("code\n") and "sk-secret" not in out and "rows" not in out


def test_paths_that_a_setting_allows_are_readable(place: Place, tmp_path: Path) -> None:
    allowed = tmp_path / "datasets"
    allowed.mkdir()
    (allowed / "a.csv").write_text("1,2\n")
    view = views.workspace_view(place.root, place.global_folder, [allowed, tmp_path / "absent"])
    assert run(view, f"cat {allowed}/a.csv; echo x > {allowed}/b").startswith("1,2\n")
    assert not (allowed / "b").exists()


@pytest.mark.parametrize("through_a_link", [False, True])
def test_a_home_within_such_a_path_stays_hidden(place: Place, tmp_path: Path, through_a_link: bool) -> None:
    alias = tmp_path.with_name(f"{tmp_path.name}-alias")
    alias.symlink_to(tmp_path.parent)
    allowed = alias / tmp_path.name if through_a_link else tmp_path
    (tmp_path / "a.csv").write_text("1,2\n")
    view = views.readonly_view(place.root, place.global_folder, [allowed])
    secret = f"{allowed}/home/secrets/settings.yaml"
    out = run(view, f"cat {allowed}/a.csv; cat {secret} {place.home}/secrets/*; ls {allowed}/home")
    assert out.startswith("1,2\n") and "sk-secret" not in out and "secrets\n" not in out
    with pytest.raises(ToolError):
        file_read(ToolContext(view), secret)
    assert "1,2" in file_read(ToolContext(view), f"{allowed}/a.csv")


def test_a_timeout_ends_everything_inside(view: View, place: Place, held: Held) -> None:
    out = run(view, f"exec 3>{held.name}; (setsid sleep 600) & sleep 600", shell_timeout_sec=1)
    assert "killed after 1 s" in out
    assert held.is_free()


def test_the_sandbox_dies_with_this_process(place: Place, held: Held) -> None:
    program = f"""
from pathlib import Path
from agents import views
from agents.tools.context import ToolContext
from agents.tools.shell_exec import shell_exec
view = views.workspace_view(Path({str(place.root)!r}), Path({str(place.global_folder)!r}))
shell_exec(ToolContext(view), "exec 3>{held.name}; echo up >&3; sleep 600")
"""
    child = subprocess.Popen([sys.executable, "-c", program])
    assert held.wait() == b"up\n"
    child.kill()
    child.wait()
    assert held.wait() == b"", "the last process that held the pipe has gone"


def test_without_bubblewrap_commands_are_refused(view: View, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "why_unavailable", lambda: "bubblewrap is not installed.")
    with pytest.raises(ToolError) as refused:
        run(view, "echo hi")
    assert "not installed" in str(refused.value) and "apt install bubblewrap" in str(refused.value)
    assert grep(ToolContext(view), "two") == "docs/guide.md:2:two"


def test_an_error_never_shows_the_sandboxs_command_line(view: View, place: Place) -> None:
    broken = replace(view, working_dir=place.root / "gone")
    with pytest.raises(ToolError) as refused:
        run(broken, "echo hi")
    assert "--ro-bind" not in str(refused.value) and "bwrap" not in str(refused.value)
