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


ClientFrame = Subscribe | Ping

_CLIENT_FRAMES: TypeAdapter[ClientFrame] = TypeAdapter(Annotated[ClientFrame, Field(discriminator="type")])


_TYPES = ("subscribe", "__ping__")


class _ServerFrame(BaseModel):
    model_config = ConfigDict(frozen=True)

    def text(self) -> str:
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


class Reload(_ServerFrame):
    """The client's view can't be brought up to date with events; the subscription has ended."""

    type: Literal["reload"] = "reload"
    reason: Literal["too_old", "too_many", "too_slow"]


class Error(_ServerFrame):
    """The frame that came before was refused, or a subscription was ended; the connection stays."""

    type: Literal["error"] = "error"
    code: Literal["bad_frame", "forbidden"]
    message: str


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
