"""Messages between a wrapper and its zygote: a length and a pickle, over a socket pair only they hold."""

from __future__ import annotations

import pickle
import socket
import struct
from dataclasses import dataclass, replace
from typing import Any

from evolution.phases.context import ChildSpec

_LENGTH = struct.Struct("!I")


class PeerGone(Exception):
    """The other end was closed: its process is dead or is leaving."""

    def __init__(self) -> None:
        super().__init__(
            "the process at the other end of an agent's session has ended (killed, or out of memory)"
        )


@dataclass(frozen=True, slots=True)
class StartChild:
    spec: ChildSpec


@dataclass(frozen=True, slots=True)
class ChildStarted:
    pid: int


@dataclass(frozen=True, slots=True)
class Answer:
    """What a child has to say at its end; ``error`` is empty when its turn completed.

    ``spent``: input and output tokens of all its model calls; a child that was killed tells of none.
    """

    exit_code: int
    text: str = ""
    error: str = ""
    spent: tuple[int, int] = (0, 0)


def send(connection: socket.socket, message: Any) -> None:
    """Raises PeerGone."""
    data = pickle.dumps(message)
    try:
        connection.sendall(_LENGTH.pack(len(data)) + data)
    except (BrokenPipeError, ConnectionResetError) as error:
        raise PeerGone from error


def receive(connection: socket.socket) -> Any:
    """Block for one whole message. Raises PeerGone."""
    (length,) = _LENGTH.unpack(_exactly(connection, _LENGTH.size))
    return pickle.loads(_exactly(connection, length))  # noqa: S301 - the peer is our own fork


def encode_answer(answer: Answer) -> bytes:
    return pickle.dumps(answer)


def decode_answer(data: bytes, *, exit_code: int) -> Answer:
    """``exit_code`` is what the process really ended with."""
    answer: Answer = pickle.loads(data)  # noqa: S301 - written by our own fork
    return replace(answer, exit_code=exit_code)


def _exactly(connection: socket.socket, count: int) -> bytes:
    data = bytearray()
    while len(data) < count:
        try:
            piece = connection.recv(count - len(data))
        except ConnectionResetError as error:
            raise PeerGone from error
        if not piece:
            raise PeerGone
        data += piece
    return bytes(data)
