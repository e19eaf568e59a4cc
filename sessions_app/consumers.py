"""The ``chat:*`` frames of one socket. ``halo_site.consumers`` hands them on, with who asks."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial

from core import clock
from core.db.callers import Caller
from core.frames import (
    ChatAck,
    ChatDelete,
    ChatFrame,
    ChatInterrupt,
    ChatSend,
    ChatStop,
    ChatSubscribe,
    ChatSystem,
    Error,
    Reload,
)
from core.ids import is_session_id
from core.texts import encodable
from sessions_app.delete_exchange import delete_exchange
from sessions_app.end_turn import Way, end_turn
from sessions_app.errors import SessionError, SessionRefused
from sessions_app.images import checked_images
from sessions_app.live.catch_up import ReloadNeeded
from sessions_app.live.follow import Follower, follower, in_thread
from sessions_app.live.items import row_html
from sessions_app.live.view import View
from sessions_app.logs import records as make
from sessions_app.models import Session
from sessions_app.places import ui_log
from sessions_app.send_message import CHAT, Sent, check_may_send, send_message

VIEW = "workspaces.view"
MAX_VIEWS = 16

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Open:
    view: View
    follower: Follower
    sender: asyncio.Task[None]


class ChatFrames:
    """``send`` sends one frame's text. ``answer`` may raise a database error: the socket ends then."""

    def __init__(self, send: Callable[[str], Awaitable[None]]) -> None:
        self._send = send
        self._open: dict[str, _Open] = {}

    async def answer(self, frame: ChatFrame, caller: Caller) -> None:
        try:
            if isinstance(frame, ChatSubscribe):
                await self._subscribe(frame, caller)
            elif isinstance(frame, ChatSend):
                await self._take(frame, caller)
            elif isinstance(frame, ChatDelete):
                await self._delete(frame, caller)
            else:
                await in_thread(partial(_end_turn, frame, caller))
        except (SessionError, OSError) as error:
            await self._send(
                Error(
                    code=getattr(error, "code", "session_unreadable"),
                    message=str(error),
                    session=frame.session,
                    client_id=getattr(frame, "client_id", None),
                ).to_text()
            )

    async def check(self, caller: Caller) -> None:
        """Asked now and then: a permission that was taken away ends what it had opened."""
        if self._open and not await in_thread(partial(caller.may, VIEW)):
            for session_id in list(self._open):
                self._leave(session_id)
                await self._send(
                    Error(
                        code="forbidden", message="You may not look at this any more.", session=session_id
                    ).to_text()
                )

    def end(self) -> None:
        for session_id in list(self._open):
            self._leave(session_id)

    async def _subscribe(self, frame: ChatSubscribe, caller: Caller) -> None:
        self._leave(frame.session)
        path = await in_thread(lambda: ui_log(_found(frame.session, caller, VIEW)))
        if len(self._open) >= MAX_VIEWS:
            raise SessionRefused(
                f"This connection follows {MAX_VIEWS} sessions; open another one for more.", "too_many"
            )
        view = View(frame.session, html=frame.html)
        following = follower(frame.session, path)
        try:
            await following.join(view, after=frame.after)
        except ReloadNeeded as needed:
            await self._send(Reload(reason=needed.reason, session=frame.session).to_text())
            return
        sender = asyncio.create_task(self._send_view(view, following))
        self._open[frame.session] = _Open(view, following, sender)

    async def _send_view(self, view: View, following: Follower) -> None:
        try:
            await view.run(self._send)
        except Exception:  # the socket went away under it; its end tidies up
            logger.debug("A view of session %s can't be sent", view.session_id, exc_info=True)
        finally:
            following.leave(view)

    async def _take(self, frame: ChatSend, caller: Caller) -> None:
        sent = await in_thread(partial(_stored, frame, caller))
        if sent.answer is not None:
            kind = "answer" if sent.answer.ok else "refused"
            await self._say(
                frame.session,
                f"answer-{frame.client_id}",
                kind,
                sent.answer.text,
                follow=sent.answer.session_id,
            )
        await self._send(
            ChatAck(session=frame.session, client_id=frame.client_id, stamp=sent.stamp).to_text()
        )

    async def _delete(self, frame: ChatDelete, caller: Caller) -> None:
        """What it changes in the log comes to every view; who asked is told how far it reached."""
        text = await in_thread(partial(_deleted, frame, caller))
        await self._say(frame.session, f"deleted-{frame.stamp}", "answer", text)

    async def _say(self, session_id: str, row_id: str, kind: str, text: str, *, follow: str = "") -> None:
        """A row that stands in no log, to this socket alone."""
        row = make.system_row(row_id=row_id, at=clock.stamp(clock.now()), kind=kind, text=encodable(text))
        html = await in_thread(partial(row_html, row)) if self._wants_html(session_id) else None
        answer = ChatSystem(session=session_id, seq=None, row=row, html=html, follow=follow)
        await self._send(answer.to_text())

    def _wants_html(self, session_id: str) -> bool:
        opened = self._open.get(session_id)
        return opened is not None and opened.view.html

    def _leave(self, session_id: str) -> None:
        opened = self._open.pop(session_id, None)
        if opened is not None:
            opened.sender.cancel()
            opened.follower.leave(opened.view)


def _stored(frame: ChatSend, caller: Caller) -> Sent:
    session = _found(frame.session, caller, CHAT)
    check_may_send(session, caller)
    images = checked_images((image.media_type, image.data) for image in frame.images)
    return send_message(
        session=session,
        text=frame.text,
        images=images,
        client_id=frame.client_id,
        caller=caller,
        now=clock.now(),
    )


def _deleted(frame: ChatDelete, caller: Caller) -> str:
    session = _found(frame.session, caller, CHAT)
    deleted = delete_exchange(
        session=session, stamp=frame.stamp, archives=frame.archives, user=caller.user, now=clock.now()
    )
    return deleted.text


def _end_turn(frame: ChatStop | ChatInterrupt, caller: Caller) -> None:
    session = _found(frame.session, caller, CHAT)
    way: Way = "stop" if isinstance(frame, ChatStop) else "interrupt"
    end_turn(session, way, user=caller.user, now=clock.now())


def _found(session_id: str, caller: Caller, permission: str) -> Session:
    """The permission comes first: who may not look doesn't learn which sessions there are."""
    if not caller.may(permission):
        raise SessionRefused(
            f"The permission {permission} is needed, which an administrator can give (a token also needs its "
            "scope).",
            "forbidden",
        )
    row = None
    if is_session_id(session_id):
        row = Session.objects.select_related("workspace").filter(pk=session_id).first()
    if row is None:
        raise SessionRefused("There is no such session.", "not_found")
    return row
