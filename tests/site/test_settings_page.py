"""Settings in the browser: what is in force, what isn't and why, who may change it, and no secret shown."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client

from core.db.models import Event
from core.paths import halo_home
from core.settings_file import Settings
from tests.evolution.rows import Rows
from tests.site.people import browser

pytestmark = pytest.mark.django_db

PAGE = "/admin/settings/"
LEVEL = "general.evolution.level"
KEEP = "general.compact.keep_messages"
SECRET = "anthropic.secrets.api_key"


@pytest.fixture(autouse=True)
def home(halo_home: Path) -> Path:
    (halo_home / "secrets").mkdir(parents=True)
    return halo_home / "secrets" / "settings.yaml"


@pytest.fixture
def operator() -> Client:
    return browser("operator")


def in_force(key: str) -> object:
    return Settings.load(halo_home()).get(key)


def test_a_change_is_in_force_told_and_recorded(operator: Client) -> None:
    answer = operator.post(PAGE, {f"set:{LEVEL}": "L1", f"was:{LEVEL}": ""})

    assert answer.status_code == 302
    assert in_force(LEVEL) == "L1"
    event = Event.objects.get(kind="settings:changed")
    assert event.object_id == LEVEL
    entry = LogEntry.objects.get()
    assert (entry.user.get_username(), entry.object_repr) == ("a-operator", LEVEL)


@pytest.mark.parametrize(
    ("key", "text"),
    [
        (KEEP, "1001"),
        (KEEP, "many"),
        (KEEP, "1.5"),
        (LEVEL, "L9"),
        ("general.evolution.control_run", "perhaps"),
        ("general.sandbox.allow", "relative/path"),
        ("general.observability.endpoint", "ftp://x"),
    ],
)
def test_what_is_out_of_bounds_is_refused_beside_its_field(
    operator: Client, home: Path, key: str, text: str
) -> None:
    answer = operator.post(PAGE, {f"set:{key}": text, f"was:{key}": "", f"set:{LEVEL}X": "1"})

    shown = answer.content.decode()
    assert answer.status_code == 400
    assert "can&#x27;t be saved" in shown
    assert text in shown
    assert not home.exists()
    assert not Event.objects.exists()


def test_whoever_may_only_look_sees_no_button_and_is_refused(home: Path) -> None:
    reviewer = browser("reviewer")

    assert "<fieldset disabled>" in reviewer.get(PAGE).content.decode()
    assert reviewer.post(PAGE, {f"set:{LEVEL}": "L3", f"was:{LEVEL}": ""}).status_code == 403
    assert not home.exists()
    assert not Event.objects.exists()


def test_a_secret_is_written_and_never_shown(operator: Client) -> None:
    operator.post(PAGE, {f"set:{SECRET}": "sk-hidden-1"})

    shown = operator.get(PAGE).content.decode()
    assert in_force(SECRET) == "sk-hidden-1"
    assert "sk-hidden-1" not in shown
    assert "It is set." in shown
    told = [*Event.objects.values_list("payload", flat=True), *LogEntry.objects.values_list("change_message")]
    assert "sk-hidden-1" not in str(told)


def test_a_secret_comes_back_from_no_refusal(operator: Client) -> None:
    answer = operator.post(PAGE, {f"set:{SECRET}": "sk-hidden-2\x01", f"set:{KEEP}": "-1", f"was:{KEEP}": ""})

    assert answer.status_code == 400
    assert "sk-hidden-2" not in answer.content.decode()


def test_an_empty_secret_field_keeps_it_and_the_box_takes_it_out(operator: Client) -> None:
    operator.post(PAGE, {f"set:{SECRET}": "sk-hidden-3"})

    operator.post(PAGE, {f"set:{SECRET}": "", f"set:{LEVEL}": "L1", f"was:{LEVEL}": ""})
    assert in_force(SECRET) == "sk-hidden-3"

    operator.post(PAGE, {f"set:{SECRET}": "", f"remove:{SECRET}": "1"})
    assert in_force(SECRET) == ""


def test_emptied_means_the_default_again(operator: Client) -> None:
    operator.post(PAGE, {f"set:{KEEP}": "9", f"was:{KEEP}": ""})
    operator.post(PAGE, {f"set:{KEEP}": "", f"was:{KEEP}": "9"})

    assert in_force(KEEP) == 5


def test_an_old_page_undoes_nobodys_change(operator: Client) -> None:
    operator.post(PAGE, {f"set:{KEEP}": "9", f"was:{KEEP}": ""})
    operator.post(PAGE, {f"set:{KEEP}": "", f"was:{KEEP}": "", f"set:{LEVEL}": "L2", f"was:{LEVEL}": ""})

    assert (in_force(KEEP), in_force(LEVEL)) == (9, "L2")


def test_lists_are_one_a_line(operator: Client) -> None:
    key = "general.evolution.locked"
    operator.post(PAGE, {f"set:{key}": "agents/legal/*\r\n docs/* \r\n", f"was:{key}": ""})

    assert in_force(key) == ["agents/legal/*", "docs/*"]
    assert "agents/legal/*\ndocs/*</textarea>" in operator.get(PAGE).content.decode()


def test_a_value_of_the_environment_is_never_on_the_page(
    operator: Client, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HALO_LANGUAGE_HERE", "de-AT-hidden")
    home.write_text("general:\n  language: <<HALO_LANGUAGE_HERE>>\n")

    shown = operator.get(PAGE).content.decode()

    assert "&lt;&lt;HALO_LANGUAGE_HERE&gt;&gt;" in shown
    assert "de-AT-hidden" not in shown


def test_a_shown_setting_can_not_be_pointed_at_a_secret(operator: Client, home: Path) -> None:
    key = "general.language"
    answer = operator.post(PAGE, {f"set:{key}": "<<SECRET_KEY>>", f"was:{key}": ""})

    assert answer.status_code == 400
    assert not home.exists()


def test_faults_of_the_file_are_shown_and_escaped(operator: Client, home: Path) -> None:
    home.write_text(
        "general:\n  compact:\n    keep_messages: '<script>x()</script>'\n  evolution: {level: L0}\n"
    )

    shown = operator.get(PAGE).content.decode()

    assert "Not in force" in shown
    assert "<script>x()" not in shown


def test_a_broken_file_is_shown_as_such_and_not_overwritten(operator: Client, home: Path) -> None:
    home.write_text("general: [\n")

    assert "Not in force" in operator.get(PAGE).content.decode()
    assert operator.post(PAGE, {f"set:{LEVEL}": "L1", f"was:{LEVEL}": ""}).status_code == 400
    assert home.read_text() == "general: [\n"


def test_a_workspaces_own_file_takes_what_may_stand_in_it(operator: Client, tmp_path: Path) -> None:
    workspace = Rows.make(tmp_path).workspace
    page = f"{PAGE}?workspace={workspace.pk}"

    shown = operator.get(page).content.decode()
    assert KEEP in shown
    assert f"set:{LEVEL}" not in shown

    operator.post(page, {f"set:{KEEP}": "7", f"was:{KEEP}": "", f"set:{LEVEL}": "L3", f"was:{LEVEL}": ""})
    assert Settings.load(halo_home(), workspace.paths).get(KEEP) == 7
    assert in_force(KEEP) == 5
    assert in_force(LEVEL) == "L0"


@pytest.mark.parametrize("number", ["0", "x", "999999999999999999999", "-1", "²"])
def test_a_workspace_that_is_none_is_not_found(operator: Client, number: str) -> None:
    assert operator.get(PAGE, {"workspace": number}).status_code == 404
