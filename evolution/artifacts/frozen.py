"""The run's own folder as frozen at enqueue: written once, fsynced, never again. No Django."""

from __future__ import annotations

import base64
import binascii
import itertools
import json
import mimetypes
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from agents.events import Message
from core import atomic, hashes
from evolution.conversation import tool_flow

INPUTS = "inputs.json"


class FrozenUnreadable(ValueError):
    """A frozen file is gone, was changed, or isn't what this version writes; the text names it."""


@dataclass(frozen=True, slots=True)
class Meta:
    """Who asked for what, about which session. ``created_at`` is a stamp (UTC, milliseconds)."""

    run_id: str
    trigger: str
    session_id: str
    agent_id: str
    hint: str
    workspace: str
    working_dir: str
    source_access: str
    created_at: str


@dataclass(frozen=True, slots=True)
class PromptFile:
    """``rel`` is below ``.halo``; ``scope`` workspace, global or builtin."""

    rel: str
    scope: str
    content: str


@dataclass(frozen=True, slots=True)
class Listing:
    """An agent or a skill on offer; bodies are read from the sandbox when needed."""

    id: str
    scope: str
    description: str = ""


@dataclass(frozen=True, slots=True)
class EvoContext:
    """The agent and everything its system prompt was made of."""

    agent_id: str
    agent_name: str
    system_prompt: str
    files: tuple[PromptFile, ...]
    agents: tuple[Listing, ...] = ()
    skills: tuple[Listing, ...] = ()


@dataclass(frozen=True, slots=True)
class FrozenFiles:
    folder: Path

    @property
    def snapshot(self) -> Path:
        return self.folder / "source-snapshot.json"

    @property
    def tool_flow(self) -> Path:
        return self.folder / "tool-flow.md"

    @property
    def images(self) -> Path:
        return self.folder / "images"

    @property
    def image_manifest(self) -> Path:
        return self.images / "manifest.json"

    @property
    def meta(self) -> Path:
        return self.folder / "meta.json"

    @property
    def context(self) -> Path:
        return self.folder / "evo-context.json"

    @property
    def readable(self) -> tuple[Path, ...]:
        """What the internal agents may read."""
        return (self.snapshot, self.tool_flow, self.images, self.meta, self.context)

    @property
    def inputs(self) -> Path:
        return self.folder / INPUTS


def write_frozen(folder: Path, *, messages: Sequence[Message], context: EvoContext, meta: Meta) -> None:
    """Write the whole folder durably; it must not exist. Raises OSError and leaves what it had written.

    All is written before the first fsync: the file system then takes several files down in one go.
    """
    files = FrozenFiles(folder)
    stripped, images = _without_images(messages)
    contents = {
        files.snapshot: _lines(stripped),
        files.tool_flow: tool_flow(messages).encode(errors="replace"),
        files.meta: _json(asdict(meta)),
        files.context: _json(asdict(context)),
    }
    _make_folder(folder)
    if images:
        files.images.mkdir()
        contents |= {files.folder / image.file: image.data for image in images}
        contents[files.image_manifest] = _json([image.entry for image in images])
    contents[files.inputs] = _json(
        {path.relative_to(folder).as_posix(): hashes.of_bytes(data) for path, data in contents.items()}
    )
    for path, data in contents.items():
        _write(path, data)
    for path in contents:
        atomic.fsync_file(path)
    for parent in [files.images, folder] if images else [folder]:
        atomic.fsync_folder(parent)
    atomic.fsync_folder(folder.parent)


def _make_folder(folder: Path) -> None:
    missing = list(itertools.takewhile(lambda parent: not parent.exists(), folder.parents))
    folder.mkdir(parents=True)
    for parent in reversed(missing):
        atomic.fsync_folder(parent.parent)


def _write(path: Path, data: bytes) -> None:
    """No temporary name, no fsync yet: nobody looks into the folder before its row is there."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    try:
        atomic.write_all(descriptor, data)
    finally:
        os.close(descriptor)


def _json(value: Any) -> bytes:
    return (json.dumps(value, ensure_ascii=False, indent=1) + "\n").encode(errors="replace")


_encode = json.JSONEncoder(ensure_ascii=False, check_circular=False).encode
"""Made once: ``json.dumps`` with an option builds an encoder for every message."""


def _lines(messages: Sequence[Message]) -> bytes:
    """A JSON list with one message a line, so that a tool can page through it."""
    body = ",\n".join(map(_encode, messages))
    return f"[\n{body}\n]\n".encode(errors="replace")


@dataclass(frozen=True, slots=True)
class _Image:
    file: str
    data: bytes
    entry: dict[str, Any]


_MAY_HOLD_IMAGES = (list, dict)


def _without_images(messages: Sequence[Message]) -> tuple[list[Message], list[_Image]]:
    """The messages with inline images replaced by the name of their file under ``images/``."""
    images: list[_Image] = []
    stripped: list[Message] = []
    for position, message in enumerate(messages):
        if not any(isinstance(part.get("content"), _MAY_HOLD_IMAGES) for part in message["parts"]):
            stripped.append(message)
            continue
        parts = [_part_without_images(part, position, images) for part in message["parts"]]
        same = all(new is old for new, old in zip(parts, message["parts"], strict=True))
        stripped.append(message if same else {**message, "parts": parts})
    return stripped, images


def _part_without_images(part: dict[str, Any], position: int, images: list[_Image]) -> dict[str, Any]:
    content = part.get("content")
    if isinstance(content, dict):
        new: Any = _piece_without_image(content, position, images)
        return part if new is content else {**part, "content": new}
    if not isinstance(content, list) or not any(_is_binary(piece) for piece in content):
        return part
    return {**part, "content": [_piece_without_image(piece, position, images) for piece in content]}


def _is_binary(piece: Any) -> bool:
    return isinstance(piece, dict) and piece.get("kind") == "binary" and isinstance(piece.get("data"), str)


def _piece_without_image(piece: Any, position: int, images: list[_Image]) -> Any:
    if not _is_binary(piece):
        return piece
    media_type = str(piece.get("media_type", "application/octet-stream"))
    try:
        data = base64.b64decode(piece["data"].replace("-", "+").replace("_", "/") + "==")
    except (binascii.Error, ValueError):
        return piece
    extension = mimetypes.guess_extension(media_type) or ".bin"
    file = f"images/{len(images) + 1}{extension}"
    entry = {
        "file": file,
        "mediaType": media_type,
        "message": position + 1,
        "bytes": len(data),
        "sha256": hashes.of_bytes(data),
    }
    images.append(_Image(file, data, entry))
    return {**{key: value for key, value in piece.items() if key != "data"}, "file": file}


def _load(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise FrozenUnreadable(f"{path.name} can't be read: {error}") from error


def read_meta(folder: Path) -> Meta:
    value = _load(FrozenFiles(folder).meta)
    try:
        return Meta(**value)
    except TypeError as error:
        raise FrozenUnreadable(f"meta.json isn't what was frozen: {error}") from error


def read_messages(folder: Path) -> list[Message]:
    value = _load(FrozenFiles(folder).snapshot)
    if not isinstance(value, list):
        raise FrozenUnreadable("source-snapshot.json is no list of messages")
    return value


def read_context(folder: Path) -> EvoContext:
    value = _load(FrozenFiles(folder).context)
    try:
        return EvoContext(
            agent_id=value["agent_id"],
            agent_name=value["agent_name"],
            system_prompt=value["system_prompt"],
            files=tuple(PromptFile(**item) for item in value["files"]),
            agents=tuple(Listing(**item) for item in value["agents"]),
            skills=tuple(Listing(**item) for item in value["skills"]),
        )
    except (TypeError, KeyError) as error:
        raise FrozenUnreadable(f"evo-context.json isn't what was frozen: {error!r}") from error


def read_inputs(folder: Path) -> dict[str, str]:
    """``{file: sha256}`` of everything frozen."""
    value = _load(FrozenFiles(folder).inputs)
    if not isinstance(value, dict):
        raise FrozenUnreadable("inputs.json is no list of hashes")
    return value


def changed_inputs(folder: Path) -> list[str]:
    """Frozen files that are gone or no longer hash as written."""
    return [name for name, known in read_inputs(folder).items() if _hash(folder / name) != known]


def _hash(path: Path) -> str | None:
    try:
        return None if path.is_symlink() else hashes.of_file(path)
    except OSError:
        return None
