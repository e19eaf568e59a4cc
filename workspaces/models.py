"""The folders that agents work in."""

from __future__ import annotations

from pathlib import Path

from django.db import models

from core.paths import WorkspacePaths


class Workspace(models.Model):
    """``path`` is a real path; ``host`` is the one machine that works it, moved by a person."""

    path = models.CharField(max_length=1024, unique=True)
    host = models.CharField(max_length=255)
    created_at = models.DateTimeField()

    class Meta:
        permissions = [
            ("view", "Can see runs, sessions and everything else that is shown here"),
            ("review", "Can approve, reject, retry and cancel evolution runs"),
            ("rollback", "Can roll back applied changes"),
            ("author", "Can open a session for authoring the prompt surface"),
            ("chat", "Can chat with agents"),
            ("use_full_access", "Can use full access"),
            ("change_settings", "Can change settings"),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def name(self) -> str:
        return Path(self.path).name

    @property
    def paths(self) -> WorkspacePaths:
        return WorkspacePaths(Path(self.path))
