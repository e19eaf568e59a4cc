"""What the verbs on workspaces refuse, each with a stable code.

WorkspaceRefused      ``code``: not_a_folder, overlaps_home, nested, surface_not_a_folder, still_there,
                      no_surface, taken, changed, name_unusable, nothing_to_do, unknown_workspace, ambiguous
"""

from __future__ import annotations


class WorkspaceRefused(Exception):
    """The caller asked for something that isn't possible; nothing was changed."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
