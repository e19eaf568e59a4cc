"""``view_image``: what counts as an image, who is offered it, and what becomes of it."""

from __future__ import annotations

import base64
import os
from collections.abc import Callable

import pytest

from agents import history as wire
from agents import views
from agents.providers.testing import IMAGE_REFUSED, ScriptedServer, failure, text, tool_calls
from agents.tools.context import ToolContext, ToolError
from agents.tools.registry import offered_tools
from agents.tools.view_image import MAX_BYTES, view_image

from .conftest import Place, Played

Play = Callable[..., Played]
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


async def test_the_model_sees_the_image_and_the_log_its_name(play: Play, place: Place) -> None:
    (place.root / "dot.png").write_bytes(PNG)
    with ScriptedServer([tool_calls(("view_image", {"path": "dot.png"})), text("A dot.")]) as server:
        played = play(server.endpoint, tools=("view_image",))
        assert (await played.run()).status == "completed"
    assert played.of_type("tool_result")[0].text == f"dot.png: image/png, {len(PNG):,} bytes"
    sent = str(server.requests[1]["messages"])
    assert base64.b64encode(PNG).decode() in sent and "image_url" in sent
    assert wire.has_images(played.saved)


async def test_a_provider_that_refuses_it_gets_a_placeholder(play: Play, place: Place) -> None:
    (place.root / "dot.png").write_bytes(PNG)
    steps = [
        tool_calls(("view_image", {"path": "dot.png"})),
        failure(400, IMAGE_REFUSED),
        text("I can't see it."),
    ]
    with ScriptedServer(steps) as server:
        played = play(server.endpoint, tools=("view_image",))
        assert (await played.run()).status == "completed"
    assert wire.IMAGE_REMOVED in str(played.saved) and not wire.has_images(played.saved)


def context(place: Place) -> ToolContext:
    return ToolContext(view=views.workspace_view(place.root, place.global_folder))


@pytest.mark.parametrize(
    ("data", "media_type"),
    [
        (PNG, "image/png"),
        (b"\xff\xd8\xff\xe0rest", "image/jpeg"),
        (b"GIF89a....", "image/gif"),
        (b"RIFF\x00\x00\x00\x00WEBPVP8 ", "image/webp"),
    ],
)
def test_the_first_bytes_decide(place: Place, data: bytes, media_type: str) -> None:
    (place.root / "file.txt").write_bytes(data)
    assert view_image(context(place), "file.txt").media_type == media_type


def test_what_is_no_image_or_too_large_or_elsewhere_is_refused(place: Place) -> None:
    (place.root / "fake.png").write_text("<svg onload=alert(1)>")
    (place.root / "empty.png").write_bytes(b"")
    with (place.root / "large.png").open("wb") as file:
        file.write(PNG)
        os.truncate(file.fileno(), MAX_BYTES + 1)
    for name, why in (
        ("fake.png", "is no PNG"),
        ("empty.png", "is no PNG"),
        ("large.png", "Make it smaller"),
    ):
        with pytest.raises(ToolError, match=why):
            view_image(context(place), name)
    (place.home / "dot.png").write_bytes(PNG)
    (place.root / "link.png").symlink_to(place.home / "dot.png")
    for name in ("link.png", str(place.home / "dot.png")):
        with pytest.raises(ToolError):
            view_image(context(place), name)


async def test_only_models_that_take_images_are_offered_it(place: Place) -> None:
    from agents.providers.offline.model import OfflineModel

    assert OfflineModel().profile["supports_image_input"] is False
    view = views.full_view(place.root)
    for images in (True, False):
        offered = offered_tools(names=("view_image",), access="full", view=view, images=images)
        assert ("view_image" in offered) is images
