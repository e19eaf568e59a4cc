"""A script makes the engine fail on purpose; it is asked for by ``model.id`` and by nothing else."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
import yaml
from pydantic_ai.direct import model_request, model_request_stream
from pydantic_ai.exceptions import ModelConnectionError, ModelHTTPError
from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, ToolCallPart, UserPromptPart

from agents.errors import ModelNotUsable
from agents.providers.offline.model import OfflineModel


def scripted(folder: Path, *steps: dict[str, object]) -> OfflineModel:
    path = folder / "script.yaml"
    path.write_text(yaml.safe_dump(list(steps)))
    return OfflineModel(f"script:{path}")


async def said(model: OfflineModel, message: str = "hello there") -> ModelResponse:
    return await model_request(model, [ModelRequest(parts=[UserPromptPart(message)])])


async def test_steps_are_used_in_order_and_then_the_rules_answer(tmp_path: Path) -> None:
    model = scripted(tmp_path, {"text": "one"}, {"text": "two", "times": 2})
    texts = [(await said(model)).parts for _ in range(3)]
    assert texts == [[TextPart("one")], [TextPart("two")], [TextPart("two")]]
    assert "not a language model" in (await said(model)).parts[0].content  # type: ignore[union-attr]


async def test_two_processes_share_one_script(tmp_path: Path) -> None:
    first = scripted(tmp_path, {"text": "one"}, {"text": "two"})
    second = OfflineModel(first.model_name)
    assert (await said(first)).parts == [TextPart("one")]
    assert (await said(second)).parts == [TextPart("two")]


async def test_a_step_waits_for_its_message(tmp_path: Path) -> None:
    model = scripted(tmp_path, {"when": "# Brief: draft", "text": "drafted"}, {"text": "chatted", "times": 0})
    assert (await said(model)).parts == [TextPart("chatted")]
    assert (await said(model, "# Brief: draft")).parts == [TextPart("drafted")]
    assert (await said(model, "# Brief: draft")).parts == [TextPart("chatted")]


async def test_errors_are_those_of_a_provider(tmp_path: Path) -> None:
    model = scripted(
        tmp_path,
        {"status": 429, "body": "slow down", "retry_after": 1.5},
        {"disconnect": True},
        {"text": "back"},
    )
    with pytest.raises(ModelHTTPError) as limited:
        await said(model)
    assert (limited.value.status_code, limited.value.body, limited.value.retry_after) == (
        429,
        "slow down",
        1.5,
    )
    with pytest.raises(ModelConnectionError):
        await said(model)
    assert (await said(model)).parts == [TextPart("back")]


async def test_a_torn_stream_says_something_first(tmp_path: Path) -> None:
    model = scripted(tmp_path, {"text": "half of what", "torn": True})
    seen = 0
    with pytest.raises(ModelConnectionError):
        async with model_request_stream(model, [ModelRequest(parts=[UserPromptPart("hello")])]) as stream:
            async for _ in stream:
                seen += 1
    assert seen > 0


async def test_calls_may_name_the_paths_of_a_brief(tmp_path: Path) -> None:
    call = {"tool": "file_write", "arguments": {"path": "{Patch}", "content": "no frontmatter"}}
    model = scripted(tmp_path, {"calls": [call]})
    (part,) = (await said(model, "# Brief: draft\n\n## Write\n\nPatch: /x/patch.md")).parts
    assert isinstance(part, ToolCallPart)
    assert part.args_as_dict() == {"path": "/x/patch.md", "content": "no frontmatter"}


async def test_a_file_that_is_no_script_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelNotUsable, match="no script of the offline engine"):
        OfflineModel(f"script:{tmp_path / 'missing.yaml'}")
    path = tmp_path / "bad.yaml"
    path.write_text("- txt: wrong key\n")
    with pytest.raises(ModelNotUsable, match=r"bad\.yaml"):
        OfflineModel(f"script:{path}")


def test_a_message_cannot_switch_a_script_on(tmp_path: Path) -> None:
    path = tmp_path / "script.yaml"
    path.write_text("- text: scripted\n")
    answer = asyncio.run(said(OfflineModel(), f"model.id: script:{path}"))
    assert [part.part_kind for part in answer.parts] == ["tool-call", "tool-call"]
    assert not Path(f"{path}.used").exists()
