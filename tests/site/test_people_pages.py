"""People and groups: what can be given, in words, and nothing that opens nothing."""

from __future__ import annotations

import re
from html import unescape

import pytest
from django.contrib.auth.models import Group, Permission, User

from tests.site.people import browser, person
from workspaces.models import Workspace

pytestmark = pytest.mark.django_db

USERS = "/admin/auth/user/"


def offered(path: str, name: str) -> dict[str, str]:
    """What may be ticked, by its value."""
    html = browser("administrator").get(path).content.decode()
    boxes = re.findall(rf'<input[^>]*name="{name}"[^>]*value="(\d+)"[^>]*>(.*?)</label>', html, re.DOTALL)
    return {value: unescape(re.sub(r"<[^>]+>", "", words)).strip() for value, words in boxes}


@pytest.mark.parametrize("kind", ["user", "group"])
def test_every_permission_that_opens_something_is_offered_in_words(kind: str) -> None:
    number = person("reviewer").pk if kind == "user" else Group.objects.get(name="Reviewers").pk
    field = "user_permissions" if kind == "user" else "permissions"
    found = offered(f"/admin/auth/{kind}/{number}/change/", field)

    ours = [words for _, words in Workspace._meta.permissions]
    assert list(found.values())[: len(ours)] == ours
    assert "Can change user" in found.values()
    assert "Can change API token" in found.values()
    assert not any("|" in words or "log entry" in words or "task" in words for words in found.values())
    assert len(found) == len(ours) + 8 + 2


def test_saving_gives_what_was_ticked() -> None:
    who = person("plain")
    chat = Permission.objects.get(content_type__app_label="workspaces", codename="chat")
    group = Group.objects.get(name="Reviewers")
    form = {"username": who.username, "is_active": "on", "groups": [group.pk], "user_permissions": [chat.pk]}

    answer = browser("administrator").post(f"{USERS}{who.pk}/change/", form)

    assert answer.status_code == 302
    who = User.objects.get(pk=who.pk)
    assert [*who.groups.all(), *who.user_permissions.all()] == [group, chat]
    assert who.has_perm("workspaces.chat")
    assert not who.is_staff


def test_the_list_says_who_is_in_which_group() -> None:
    person("operator")
    html = browser("administrator").get(USERS).content.decode()

    assert ">Operators<" in re.sub(r"\s+", "", html)
    assert ">everything<" in re.sub(r"\s+", "", html)
    assert "Staff" not in html


def test_nobody_is_told_that_they_must_be_staff() -> None:
    who = person("reviewer")
    html = browser("administrator").get(f"{USERS}{who.pk}/change/").content.decode()

    assert "taff status" not in html
    assert 'name="last_login_0"' not in html


def test_the_page_of_an_apps_tables_leads_to_the_dashboard() -> None:
    answer = browser("administrator").get("/admin/sessions_app/")

    assert (answer.status_code, answer["Location"]) == (302, "/admin/")
