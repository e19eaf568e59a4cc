"""The admin's name, colours and sidebar, in the order in which they are used."""

from __future__ import annotations

from typing import Any

from django.templatetags.static import static
from django.urls import reverse_lazy


def _item(title: str, icon: str, page: str, permission: str = "halo_site.login.may_enter") -> dict[str, Any]:
    return {"title": title, "icon": icon, "link": reverse_lazy(f"admin:{page}"), "permission": permission}


UNFOLD: dict[str, Any] = {
    "SITE_TITLE": "Halo",
    "SITE_HEADER": "Halo",
    "SITE_SUBHEADER": "Agents under review",
    "SITE_URL": None,  # there is no other site to go back to
    "SITE_SYMBOL": "trip_origin",
    "SITE_FAVICONS": [
        {"rel": "icon", "type": "image/svg+xml", "href": lambda request: static("halo/icon.svg")}
    ],
    "STYLES": [
        lambda request: static("halo/scripting.css"),
        lambda request: static("halo/stock.css"),
    ],
    "SHOW_VIEW_ON_SITE": False,
    "COLORS": {
        "primary": {
            "50": "#f4f2ff",
            "100": "#ebe7ff",
            "200": "#d9d2ff",
            "300": "#bdb0ff",
            "400": "#9c86ff",
            "500": "#7d5cff",
            "600": "#6d4aff",
            "700": "#5b3df0",
            "800": "#4a30c9",
            "900": "#3d29a1",
            "950": "#24176d",
        }
    },
    "SIDEBAR": {
        "show_search": False,
        "show_all_applications": False,
        "navigation": [
            {
                "title": "Decide",
                "items": [
                    _item("Dashboard", "dashboard", "index"),
                    _item("Runs", "rate_review", "evolution_evolutionrun_changelist"),
                    _item("Applies", "published_with_changes", "evolution_evolutionapply_changelist"),
                    _item("Kept scenarios", "verified", "evolution_regressionscenario_changelist"),
                ],
            },
            {
                "title": "Work",
                "items": [
                    _item("Sessions", "forum", "sessions_app_session_changelist"),
                    _item("Workspaces", "folder_open", "workspaces_workspace_changelist"),
                ],
            },
            {
                "title": "Keep",
                "items": [
                    _item("Events", "bolt", "core_event_changelist"),
                    _item("Settings", "tune", "settings"),
                    _item("People", "person", "auth_user_changelist", "halo_site.login.may_see_people"),
                    _item("Groups", "groups", "auth_group_changelist", "halo_site.login.may_see_groups"),
                    _item("Tokens", "key", "core_apitoken_changelist", "halo_site.login.may_see_tokens"),
                ],
            },
        ],
    },
}
