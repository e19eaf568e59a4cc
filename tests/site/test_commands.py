"""Every command tells what it does, is in the list, and is in the documents; the list itself comes at once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from django.core.management import get_commands, load_command_class

from core.version import halo_version
from halo_site.cli import settings_for
from halo_site.command_list import COMMANDS, INTERNAL, help_text

ROOT = Path(__file__).resolve().parents[2]
OUR_APPS = {"agents", "core.db", "cron", "evolution", "halo_site", "nodes", "sessions_app", "workspaces"}
OURS = {name: app for name, app in get_commands().items() if app in OUR_APPS}


def _halo(*arguments: str, home: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "halo_site", *arguments],
        cwd=ROOT,
        env={"HALO_HOME": str(home), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_list_holds_every_command_and_no_other() -> None:
    assert set(COMMANDS) | set(INTERNAL) == set(OURS)
    assert not set(COMMANDS) & set(INTERNAL)


@pytest.mark.parametrize("name", sorted(OURS))
def test_every_command_says_what_it_does(name: str) -> None:
    command = load_command_class(OURS[name], name)

    assert len(command.help) > 20
    assert "usage:" in command.create_parser("halo", name).format_help()


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_is_in_the_documents(name: str) -> None:
    texts = [path.read_text() for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))]

    assert any(f"halo {name}" in text for text in texts)


def test_help_needs_no_django_and_no_home(tmp_path: Path) -> None:
    code = (
        "import sys; sys.argv = ['halo', '--help']\n"
        "from halo_site.cli import main; main()\n"
        "assert 'django' not in sys.modules, 'Django was imported'"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={"HALO_HOME": str(tmp_path / "home")},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip() == help_text().strip()
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize(
    ("arguments", "settings"),
    [
        ("chat -w 1", "slim"),
        ("session list", "slim"),
        ("session archive abc --as rita", "web"),
        ("session --traceback delete abc", "web"),
        ("evo archive", "slim"),
        ("migrate", "web"),
    ],
)
def test_what_is_noted_in_the_admins_log_runs_where_that_is(arguments: str, settings: str) -> None:
    assert settings_for(arguments.split()) == f"halo_site.settings.{settings}"


def test_an_unknown_command_is_a_usage_error(tmp_path: Path) -> None:
    done = _halo("evolve", home=tmp_path)

    assert done.returncode == 2
    assert "evolve" in done.stderr


@pytest.mark.parametrize("arguments", [("--version",), ("version",), ("evo", "--version")])
def test_the_version_is_halos(arguments: tuple[str, ...], tmp_path: Path) -> None:
    done = _halo(*arguments, home=tmp_path)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip() == halo_version()
    assert done.stdout.startswith("Halo ")


def test_the_help_of_a_command_shows_its_own_options(tmp_path: Path) -> None:
    done = _halo("chat", "--help", home=tmp_path)

    assert "--access" in done.stdout
    assert "--pythonpath" not in done.stdout
    assert "--verbosity" not in done.stdout


@pytest.mark.parametrize(
    ("arguments", "wrong"),
    [
        (("up", "--port", "99999"), "99999"),
        (("evo", "list", "--limit", "-1"), "-1"),
        (("evo", "list", "--limit", "0"), "0"),
        (("session", "list", "--limit", "many"), "many"),
    ],
)
def test_a_number_out_of_range_is_a_usage_error(
    arguments: tuple[str, ...], wrong: str, tmp_path: Path
) -> None:
    done = _halo(*arguments, home=tmp_path)

    assert (done.returncode, done.stdout) == (2, "")
    assert f"this is '{wrong}'" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_home_without_database_says_what_to_run(tmp_path: Path) -> None:
    done = _halo("evo", "list", home=tmp_path)

    assert (done.returncode, done.stdout) == (1, "")
    assert "halo migrate" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_wrong_value_in_the_environment_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "halo_site", "check"],
        cwd=ROOT,
        env={"HALO_HOME": str(tmp_path), "DATABASE_URL": "mysql://localhost/halo"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 2
    assert "mysql" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("--model", "m"),
        ("--endpoint", "http://127.0.0.1:1/v1"),
        ("--provider", "openai-compatible", "--model", "m"),
    ],
)
def test_a_demo_is_never_played_on_another_model_than_was_asked_for(
    arguments: tuple[str, ...], tmp_path: Path
) -> None:
    done = _halo("demo", *arguments, home=tmp_path / "home")

    assert (done.returncode, done.stdout) == (2, "")
    assert "openai-compatible" in done.stderr


@pytest.mark.parametrize("command", [("doctor",), ("evo", "list"), ("demo",)])
def test_a_home_that_can_not_be_written_is_named_in_one_line(
    command: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("no folder\n")
    done = _halo(*command, home=tmp_path / "file" / "home")

    assert (done.returncode, done.stdout) == (1, "")
    assert len(done.stderr.splitlines()) == 1
    assert str(tmp_path / "file") in done.stderr


def test_a_database_that_can_not_be_opened_is_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "halo.sqlite3").mkdir()
    done = _halo("evo", "list", home=tmp_path)

    assert (done.returncode, done.stdout) == (1, "")
    assert "unable to open database file" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_refusal_is_told_in_its_own_words_alone(tmp_path: Path) -> None:
    done = _halo("settings", "set", "general.evolution.level", "L9", home=tmp_path)

    assert done.returncode == 1
    assert done.stderr == (
        "general.evolution.level: 'L9' (text) can't be saved; wanted one of L0, L1, L2, L3.\n"
    )
    assert not (tmp_path / "secrets" / "settings.yaml").exists()
