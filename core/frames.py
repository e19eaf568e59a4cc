"""The frames of ``/ws/``: JSON objects with a ``type``. Described for people in docs/websocket.md.

A client's frame holds nothing but the fields named here; one that doesn't fit is answered with an ``Error``.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

MAX_FRAME_BYTES = 1024 * 1024
MAX_FRAMES_PER_SEC = 50

Topic = Literal["evolution", "session", "settings"]
"""The part of an event's kind before the colon."""


class _ClientFrame(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Subscribe(_ClientFrame):
    """Replaces the connection's subscription. ``since`` is the last event seen; None: from now on."""

    type: Literal["subscribe"]
    topics: list[Topic] = Field(min_length=1, max_length=16)
    since: int | None = Field(default=None, ge=0, lt=2**63)


class Ping(_ClientFrame):
    type: Literal["__ping__"]


SessionId = Annotated[str, Field(min_length=1, max_length=300)]
ClientId = Annotated[str, Field(min_length=1, max_length=128)]


class Image(_ClientFrame):
    """``data`` is base64."""

    media_type: str = Field(max_length=64)
    data: str


class ChatSubscribe(_ClientFrame):
    """Follow a session's log from behind record ``after``. ``html``: rows also come laid out for a page."""

    type: Literal["chat:subscribe"]
    session: SessionId
    after: int = Field(default=0, ge=0, lt=2**63)
    html: bool = False


class ChatSend(_ClientFrame):
    """Sent again with the same ``client_id``, it is acknowledged again and stored once."""

    type: Literal["chat:send"]
    session: SessionId
    client_id: ClientId
    text: str
    images: list[Image] = Field(default_factory=list, max_length=8)


class ChatStop(_ClientFrame):
    """End the turn that runs; what waits goes into the history unanswered."""

    type: Literal["chat:stop"]
    session: SessionId


class ChatInterrupt(_ClientFrame):
    """End the turn that runs; what waits is answered next."""

    type: Literal["chat:interrupt"]
    session: SessionId


class ChatDelete(_ClientFrame):
    """The message with this stamp goes, with its answers. ``archives``: how many archived parts the view counts."""

    type: Literal["chat:delete"]
    session: SessionId
    stamp: str = Field(min_length=1, max_length=32)
    archives: int = Field(ge=0, lt=2**31)


ChatFrame = ChatSubscribe | ChatSend | ChatStop | ChatInterrupt | ChatDelete
ClientFrame = Subscribe | ChatSubscribe | ChatSend | ChatStop | ChatInterrupt | ChatDelete | Ping

_CLIENT_FRAMES: TypeAdapter[ClientFrame] = TypeAdapter(Annotated[ClientFrame, Field(discriminator="type")])


_TYPES = (
    *("subscribe", "chat:subscribe", "chat:send", "chat:stop", "chat:interrupt", "chat:delete"),
    "__ping__",
)


class _ServerFrame(BaseModel):
    model_config = ConfigDict(frozen=True)

    def to_text(self) -> str:
        """ValueError for half a character, and for values that nest too deeply."""
        return self.model_dump_json()


class EventFrame(_ServerFrame):
    """``id`` goes into the next ``subscribe`` as ``since``."""

    type: Literal["event"] = "event"
    id: int
    kind: str
    object_id: str
    workspace_id: int | None
    payload: dict[str, Any]
    created_at: datetime


class Subscribed(_ServerFrame):
    """What was missed has been sent; ``last`` is the position from which events follow live."""

    type: Literal["subscribed"] = "subscribed"
    topics: list[Topic]
    last: int


class _AddressedFrame(_ServerFrame):
    """Holds only the addresses that it has."""

    def to_text(self) -> str:
        return self.model_dump_json(exclude_none=True)


class Reload(_AddressedFrame):
    """The client's view can't be brought up to date with what is sent; the subscription has ended.

    With ``session`` it is about the view of that session, without about events.
    """

    type: Literal["reload"] = "reload"
    reason: Literal["too_old", "too_many", "too_slow", "rewritten"]
    session: str | None = None


class Error(_AddressedFrame):
    """The frame that came before was refused, or a subscription was ended; the connection stays.

    ``session`` and ``client_id`` are those of the refused frame, where it had them.
    """

    type: Literal["error"] = "error"
    code: str
    message: str
    session: str | None = None
    client_id: str | None = None


class _SessionFrame(_ServerFrame):
    session: str


class ChatSubscribed(_SessionFrame):
    """What was missed has been sent. ``last`` is where the view stands: the next ``after``."""

    type: Literal["chat:subscribed"] = "chat:subscribed"
    last: int
    working: bool


class ChatAck(_SessionFrame):
    """Stored, whatever dies next. ``stamp`` is on the row that will show it; empty for a command, which was run."""

    type: Literal["chat:ack"] = "chat:ack"
    client_id: str
    stamp: str


class _RowFrame(_SessionFrame):
    """A row as it is from now on, new or changed; it stands in front of row ``before``, else last.

    ``seq`` goes into the next ``after``; None: this row stands in no log (a command's answer), or has no number
    in it. ``row`` as in docs/sessions.md.
    """

    seq: int | None
    row: dict[str, Any]
    before: str | None = None
    html: str | None = None


class ChatUser(_RowFrame):
    type: Literal["chat:user"] = "chat:user"


class ChatAssistant(_RowFrame):
    """One reply of the model with its tool calls and their results; it retires what was streamed of it."""

    type: Literal["chat:assistant"] = "chat:assistant"


class ChatSystem(_RowFrame):
    """``follow``: a command opened another session, and the conversation goes on there."""

    type: Literal["chat:system"] = "chat:system"
    follow: str = ""


class _TextFrame(_SessionFrame):
    """From character ``at`` on (Unicode code points), block ``block`` of the growing row ``row`` is ``text``."""

    row: str
    block: int
    at: int
    text: str


class ChatStream(_TextFrame):
    type: Literal["chat:stream"] = "chat:stream"


class ChatThinking(_TextFrame):
    type: Literal["chat:thinking"] = "chat:thinking"


class ChatToolCall(_SessionFrame):
    type: Literal["chat:tool_call"] = "chat:tool_call"
    row: str
    block: int
    call_id: str
    tool: str
    arguments: Any


class ChatToolResult(_SessionFrame):
    type: Literal["chat:tool_result"] = "chat:tool_result"
    row: str
    block: int
    call_id: str
    text: str
    is_error: bool = False
    interrupted: bool = False


class ChatDiscard(_SessionFrame):
    """The row goes: a model call that failed and is tried again."""

    type: Literal["chat:discard"] = "chat:discard"
    seq: int | None
    row: str


class ChatUsage(_SessionFrame):
    """``context_tokens``: how full the context was at the last model call. ``output_tokens``: of the session."""

    type: Literal["chat:usage"] = "chat:usage"
    context_tokens: int
    output_tokens: int


class WaitingMessage(BaseModel):
    model_config = ConfigDict(frozen=True)

    stamp: str
    text: str
    source: str = ""


class ChatWaiting(_SessionFrame):
    """All messages that are stored and stand in no row yet."""

    type: Literal["chat:waiting"] = "chat:waiting"
    messages: list[WaitingMessage]


class ChatWorking(_SessionFrame):
    """A turn runs, here or in another process."""

    type: Literal["chat:working"] = "chat:working"


class ChatComplete(_SessionFrame):
    """No turn runs any more."""

    type: Literal["chat:complete"] = "chat:complete"


class Pong(_ServerFrame):
    type: Literal["__pong__"] = "__pong__"


class BadFrameError(ValueError):
    """Says which field is wrong and how; never repeats the frame."""


def read_client_frame(text: str) -> ClientFrame:
    """Raises BadFrameError."""
    try:
        return _CLIENT_FRAMES.validate_json(text)
    except ValidationError as error:
        raise BadFrameError(_in_words(error)) from error
    except UnicodeEncodeError as error:
        raise BadFrameError("The text holds half a character.") from error


def _in_words(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    if first["type"] in ("union_tag_invalid", "union_tag_not_found"):
        return f"type: must be one of {', '.join(_TYPES)}"
    if first["type"] == "extra_forbidden":
        return f"{first['loc'][0]}: holds a field that it doesn't have"
    place = ".".join(str(part) for part in first["loc"])
    return f"{place}: {first['msg']}" if place else first["msg"]
