"""``halo token``: made once, listed without its secret, revoked for good."""

from __future__ import annotations

import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from core.db.models import ApiToken
from tests.site.api_world import bearer, call, person


def _run(*arguments: Any) -> str:
    out = StringIO()
    call_command("token", *arguments, stdout=out, stderr=StringIO())
    return out.getvalue()


def test_a_token_is_made_listed_and_revoked(db: None) -> None:
    person("operator")

    secret = _run("create", "for CI", "--as", "operator", "--scope", "view").strip()
    listed = _run("list", "--json")

    assert call(Client(), "GET", "/api/workspaces", **bearer(secret)).status_code == 200
    assert secret not in listed
    [row] = json.loads(listed)
    assert (row["name"], row["user"], row["scopes"], row["revoked"]) == (
        "for CI",
        "operator",
        ["view"],
        False,
    )

    _run("revoke", row["id"])

    assert call(Client(), "GET", "/api/workspaces", **bearer(secret)).status_code == 401
    assert "revoked" in _run("list")
    with pytest.raises(CommandError, match="no live token"):
        _run("revoke", row["id"])


@pytest.mark.parametrize(
    "arguments",
    [
        ("create", " ", "--as", "operator", "--scope", "view"),
        ("create", "x", "--as", "operator", "--scope", "view", "--days", "367"),
        ("create", "x", "--as", "nobody", "--scope", "view"),
        ("create", "x", "--as", "operator", "--scope", "everything"),
    ],
)
def test_what_cannot_be_made_is_refused(db: None, arguments: tuple[str, ...]) -> None:
    person("operator")

    with pytest.raises(CommandError):
        _run(*arguments)

    assert not ApiToken.objects.exists()


def test_an_agents_shell_makes_no_token(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    person("operator")
    monkeypatch.setenv("HALO_SESSION", "abc")

    with pytest.raises(CommandError, match="belongs to an agent"):
        _run("create", "x", "--as", "operator", "--scope", "view")

    assert not ApiToken.objects.exists()


def test_the_admin_revokes_and_shows_no_digest(admin_client: Client) -> None:
    from core import clock
    from core.db.api_tokens import issue

    token = issue(user=person("operator"), name="x", scopes=["view"], days=1, now=clock.now()).token

    shown = admin_client.get(f"/admin/core/apitoken/{token.pk}/change/", follow=True)
    listed = admin_client.post(
        "/admin/core/apitoken/", {"action": "revoke", "_selected_action": [token.pk]}, follow=True
    )

    assert shown.status_code == listed.status_code == 200
    assert token.digest not in shown.content.decode() + listed.content.decode()
    token.refresh_from_db()
    assert token.revoked_at is not None
