"""A session that this process works, and sockets that follow it."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.contrib.auth.models import Permission, User
from django.contrib.contenttypes.models import ContentType

from core.processes import host_name
from sessions_app.create import create_session
from sessions_app.logs import read_ui
from sessions_app.models import Session
from sessions_app.places import ui_log
from tests.site.live_world import PATIENCE_SEC, Socket, connected
from workspaces.models import Workspace

NOW = datetime(2026, 1, 31, 9, 30, tzinfo=UTC)
ROW_FRAMES = ("chat:user", "chat:assistant", "chat:system")


def make_session(root: Path, *, access_level: str = "full", model: str = "") -> Session:
    """With the agent ``helper``; ``model`` is the ``model:`` part of its agent.yaml."""
    folder = root / ".halo" / "agents" / "helper"
    if not folder.exists():
        folder.mkdir(parents=True)
        (folder / "agent.yaml").write_text(f"name: Helper\ntools: [file_read, glob]\n{model}")
        (folder / "AGENT.md").write_text("You help.\n")
    workspace, _ = Workspace.objects.get_or_create(
        path=str(root.resolve()), defaults={"host": host_name(), "created_at": NOW}
    )
    return create_session(
        workspace=workspace, agent_id="helper", agent_name="Helper", access_level=access_level, now=NOW
    )


class ChatView:
    """What a page shows of a session, made of frames as ``chat_rows.js`` does it.

    ``rows``: finished ones, in the order of the page. ``after``: where it would go on after a lost connection.
    ``streamed``: by row and block.
    """

    def __init__(self) -> None:
        self.after = 0
        self.rows: list[dict[str, Any]] = []
        self.streamed: dict[tuple[str, int], str] = {}
        self.catching_up = False

    def take(self, frame: dict[str, Any]) -> None:
        kind = frame["type"]
        if kind in ROW_FRAMES:
            self._place(frame)
        elif kind == "chat:discard":
            self.rows = [row for row in self.rows if row["id"] != frame["row"]]
        elif kind in ("chat:stream", "chat:thinking"):
            key = (frame["row"], frame["block"])
            known = self.streamed.get(key, "")
            assert frame["at"] <= len(known), "a piece is missing"
            self.streamed[key] = known[: frame["at"]] + frame["text"]
        elif kind == "chat:subscribed":
            self.catching_up = False
            self.after = frame["last"]
        if not self.catching_up and frame.get("seq") is not None:
            self.after = frame["seq"]

    def _place(self, frame: dict[str, Any]) -> None:
        row, ids = frame["row"], [row["id"] for row in self.rows]
        if frame["before"] in ids:
            self.rows = [known for known in self.rows if known["id"] != row["id"]]
            place = [known["id"] for known in self.rows].index(frame["before"])
            self.rows.insert(place, row)
        elif row["id"] in ids:
            self.rows[ids.index(row["id"])] = row
        else:
            self.rows.append(row)


class ChatSocket(Socket):
    """``frames``: all that came, in order."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.view = ChatView()
        self.frames: list[dict[str, Any]] = []

    @property
    def rows(self) -> list[dict[str, Any]]:
        return self.view.rows

    @property
    def streamed(self) -> dict[tuple[str, int], str]:
        return self.view.streamed

    async def send_chat(self, kind: str, session: Session, **fields: Any) -> None:
        await self.send_json_to({"type": f"chat:{kind}", "session": session.pk, **fields})

    async def follow(self, session: Session, *, after: int = 0, html: bool = False) -> dict[str, Any]:
        """Returns the frame ``chat:subscribed``."""
        self.view.catching_up = True
        await self.send_chat("subscribe", session, after=after, html=html)
        return await self.chat_until("chat:subscribed")

    async def chat_until(self, kind: str, **fields: Any) -> dict[str, Any]:
        """The next frame of this type with these fields; what comes before it is taken in."""
        while True:
            frame = await self.chat_frame()
            if frame["type"] == kind and all(frame.get(name) == value for name, value in fields.items()):
                return frame

    async def chat_frame(self) -> dict[str, Any]:
        frame: dict[str, Any] = await self.receive_json_from(timeout=PATIENCE_SEC)
        self.frames.append(frame)
        self.view.take(frame)
        return frame


def chatting(cookie: str | None, **options: Any) -> AbstractAsyncContextManager[ChatSocket]:
    return connected(ChatSocket(cookie, **options))


def rows_in_log(session: Session) -> list[dict[str, Any]]:
    return read_ui(ui_log(session)).rows


def give(user: User, *names: str) -> User:
    """Permissions of the workspaces app."""
    kind = ContentType.objects.get(app_label="workspaces", model="workspace")
    for name in names:
        permission, _ = Permission.objects.get_or_create(
            content_type=kind, codename=name, defaults={"name": name}
        )
        user.user_permissions.add(permission)
    return user
