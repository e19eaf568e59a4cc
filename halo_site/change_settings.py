"""Changing settings as a person: asked for the permission, written, told to every view, kept in the admin's log."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType
from django.core.exceptions import PermissionDenied
from django.db import transaction

from core.paths import HaloHome
from core.settings_file import is_protected
from core.settings_save import UNSET, Refusal, SettingsRefusedError, save
from core.settings_schema import SCHEMA
from halo_site.settings_event import announce
from workspaces.models import Workspace

PERMISSION = "workspaces.change_settings"
_PLACEHOLDER = re.compile(r"<<([A-Za-z_][A-Za-z0-9_]*)>>")


def change_settings(
    *, user: User, home: HaloHome, changes: Mapping[str, Any], workspace: Workspace | None, now: datetime
) -> tuple[str, ...]:
    """The keys whose value changed. Raises PermissionDenied, SettingsRefusedError (nothing written), OSError."""
    if not user.has_perm(PERMISSION):
        raise PermissionDenied(
            f"You may not change settings; an administrator can give you the permission {PERMISSION}, "
            "for instance through the group Operators."
        )
    refusals = [refusal for key, value in changes.items() if (refusal := _leak(key, value)) is not None]
    if refusals:
        raise SettingsRefusedError(*refusals)
    changed = save(home, changes, workspace=workspace.paths if workspace is not None else None)
    with transaction.atomic():
        for key in changed:
            _tell(key, user=user, unset=changes[key] is UNSET, workspace=workspace, now=now)
    return changed


def _leak(key: str, value: Any) -> Refusal | None:
    """A setting that pages and prompts show must not read a secret out of the environment."""
    setting = SCHEMA.get(key)
    if setting is None or setting.secret:
        return None
    for text in value if isinstance(value, list) else [value]:
        found = _PLACEHOLDER.fullmatch(text) if isinstance(text, str) else None
        if found is not None and is_protected(found[1]):
            return Refusal(key, f"<<{found[1]}>>, which may hold a secret,", setting.wanted)
    return None


def _tell(key: str, *, user: User, unset: bool, workspace: Workspace | None, now: datetime) -> None:
    """Values stay out of both: they may be secrets, and the log of a form is read by more people."""
    announce(key, by=user.pk, unset=unset, workspace=workspace, now=now)
    place = f" for {workspace.path}" if workspace is not None else ""
    LogEntry.objects.create(
        user_id=user.pk,
        content_type=ContentType.objects.get_for_model(Workspace),
        object_id=str(workspace.pk) if workspace is not None else "",
        object_repr=key[:200],
        action_flag=CHANGE,
        change_message=f"{'Took out' if unset else 'Set'} {key}{place}",
        action_time=now,
    )
