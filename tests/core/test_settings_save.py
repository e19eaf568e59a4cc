"""Saving settings: refused as a whole or written as a whole, and nobody's keys are lost."""

from __future__ import annotations

import multiprocessing
import stat
from pathlib import Path

import pytest
import yaml

from core.paths import HaloHome, WorkspacePaths
from core.settings_file import Settings
from core.settings_save import UNSET, SettingsRefusedError, save


@pytest.fixture
def home(tmp_path: Path) -> HaloHome:
    return HaloHome(tmp_path / "home")


@pytest.fixture
def workspace(tmp_path: Path) -> WorkspacePaths:
    paths = WorkspacePaths(tmp_path / "ws")
    paths.halo.mkdir(parents=True)
    return paths


def test_a_saved_value_is_read_back_from_a_private_file(home: HaloHome) -> None:
    changed = save(home, {"general.evolution.level": "L2", "openai.secrets.api_key": "sk-1"})
    assert changed == ("general.evolution.level", "openai.secrets.api_key")
    assert Settings.load(home).get("openai.secrets.api_key") == "sk-1"
    assert stat.S_IMODE(home.settings_file.stat().st_mode) == 0o600
    assert stat.S_IMODE(home.secrets.stat().st_mode) == 0o700


def test_an_open_folder_and_file_are_closed_on_save(home: HaloHome) -> None:
    home.secrets.mkdir(parents=True, mode=0o755)
    home.settings_file.write_text("general: {language: de}\n")
    home.settings_file.chmod(0o644)
    save(home, {"general.language": "fr"})
    assert stat.S_IMODE(home.settings_file.stat().st_mode) == 0o600
    assert stat.S_IMODE(home.secrets.stat().st_mode) == 0o700


def test_unknown_keys_survive(home: HaloHome) -> None:
    home.secrets.mkdir(parents=True)
    home.settings_file.write_text(
        "future: {x: [1, {y: 2}]}\ngeneral: {later: true, language: de}\n7: seven\n"
    )
    save(home, {"general.language": "fr", "general.compact.keep_messages": 9})
    assert yaml.safe_load(home.settings_file.read_text()) == {
        "future": {"x": [1, {"y": 2}]},
        "general": {"later": True, "language": "fr", "compact": {"keep_messages": 9}},
        7: "seven",
    }


def test_aliases_are_written_apart(home: HaloHome) -> None:
    home.secrets.mkdir(parents=True)
    home.settings_file.write_text("general: &g {language: de}\nother: *g\n")
    save(home, {"general.language": "fr"})
    assert yaml.safe_load(home.settings_file.read_text()) == {
        "general": {"language": "fr"},
        "other": {"language": "de"},
    }


@pytest.mark.parametrize(
    ("key", "value", "bound"),
    [
        ("general.evolution.score_samples", 10, "from 1 to 9"),
        ("general.evolution.auto_apply_threshold", -1, "from 0 to 100"),
        ("general.evolution.auto_apply_threshold", "80", "whole number"),
        ("general.evolution.level", "L4", "L0, L1, L2, L3"),
        ("general.session.fsync", None, "turn, always, never"),
        ("general.web_fetch.allow_private", ["a b"], "host names"),
        ("general.observability.endpoint", "file:///etc/passwd", "http"),
        ("general.observability.headers", "a=b\nc", "text"),
        ("general.nothing", 1, "key of the schema"),
    ],
)
def test_a_refused_value_names_key_and_bound_and_writes_nothing(
    home: HaloHome, key: str, value: object, bound: str
) -> None:
    save(home, {"general.language": "de"})
    before = home.settings_file.read_bytes()
    with pytest.raises(SettingsRefusedError) as caught:
        save(home, {"general.language": "fr", key: value})
    [refusal] = caught.value.refusals
    assert refusal.key == key
    assert bound in refusal.wanted
    assert home.settings_file.read_bytes() == before


def test_a_refused_secret_is_not_repeated(home: HaloHome) -> None:
    with pytest.raises(SettingsRefusedError) as caught:
        save(home, {"openai.secrets.api_key": ["sk-secret"]})
    assert "sk-secret" not in str(caught.value)


def test_a_global_key_is_refused_for_a_workspace(home: HaloHome, workspace: WorkspacePaths) -> None:
    with pytest.raises(SettingsRefusedError, match="machine"):
        save(home, {"general.evolution.level": "L2"}, workspace=workspace)
    assert not workspace.settings_file.exists()
    save(home, {"general.language": "de"}, workspace=workspace)
    assert Settings.load(home, workspace).source("general.language") == "workspace"


@pytest.mark.parametrize("text", ["general: [", "- a", "general: {language: de, language: fr}", "general: 5"])
def test_a_file_that_cannot_be_kept_whole_is_not_touched(home: HaloHome, text: str) -> None:
    home.secrets.mkdir(parents=True)
    home.settings_file.write_text(text)
    with pytest.raises(SettingsRefusedError, match="mend"):
        save(home, {"general.language": "fr"})
    assert home.settings_file.read_text() == text


def test_unset_brings_the_default_back_and_leaves_no_empty_shell(home: HaloHome) -> None:
    save(home, {"general.evolution.level": "L2"})
    assert save(home, {"general.evolution.level": UNSET}) == ("general.evolution.level",)
    assert save(home, {"general.evolution.level": UNSET}) == ()
    assert Settings.load(home).source("general.evolution.level") == "default"
    assert home.settings_file.read_text() == ""


def test_a_placeholder_may_stand_for_any_value(home: HaloHome, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HALO_TEST_SAMPLES", "4")
    save(home, {"general.evolution.score_samples": "<<HALO_TEST_SAMPLES>>"})
    assert Settings.load(home).get("general.evolution.score_samples") == 4


def test_a_persons_symlink_stays_one(home: HaloHome, tmp_path: Path) -> None:
    home.secrets.mkdir(parents=True)
    kept = tmp_path / "dotfiles" / "halo.yaml"
    kept.parent.mkdir()
    kept.write_text("general: {language: de}\n")
    home.settings_file.symlink_to(kept)
    save(home, {"general.language": "fr"})
    assert home.settings_file.is_symlink()
    assert "fr" in kept.read_text()


def test_a_workspace_file_that_links_out_is_not_written(
    home: HaloHome, workspace: WorkspacePaths, tmp_path: Path
) -> None:
    outside = tmp_path / "outside.yaml"
    outside.write_text("a: 1\n")
    workspace.settings_file.symlink_to(outside)
    with pytest.raises(SettingsRefusedError, match="symlink"):
        save(home, {"general.language": "fr"}, workspace=workspace)
    assert outside.read_text() == "a: 1\n"


def _save_one(root: str, key: str, value: int) -> None:
    for _ in range(10):
        save(HaloHome(Path(root)), {key: UNSET})
        save(HaloHome(Path(root)), {key: value})


def test_two_writers_of_different_keys_both_keep_theirs(home: HaloHome) -> None:
    keys = {"general.session.max_queue_size": 7, "general.limits.shell_timeout_sec": 8}
    context = multiprocessing.get_context("fork")
    writers = [
        context.Process(target=_save_one, args=(str(home.root), key, value)) for key, value in keys.items()
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    settings = Settings.load(home)
    assert {key: settings.get(key) for key in keys} == keys
