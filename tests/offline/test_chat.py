"""The chat agent answers from the documents, by real tool calls, and its rules visibly change the answer."""

from __future__ import annotations

from pathlib import Path

import yaml

from agents.providers.offline.obey import fit
from agents.providers.offline.rules import Rule
from agents.providers.offline.texts import sentences
from agents.views import readonly_view
from tests.offline import harness
from tests.offline.conftest import Asking

QUESTION = "How much is shipping to Austria?"
PRICE = "Shipping to Austria costs €6.90, and from an order value of €80 it is free."


async def test_without_rules_the_price_is_there_and_buried(ask: Asking) -> None:
    answer = await ask(QUESTION, "")
    assert PRICE in answer
    assert len(sentences(answer)) > 8
    assert sentences(answer).index(PRICE) > 3
    assert answer.endswith("[shipping.md]")


async def test_a_length_rule_keeps_what_was_asked_for(ask: Asking) -> None:
    answer = await ask(QUESTION, "- Answer in at most two sentences.")
    assert len(sentences(answer)) == 2
    assert PRICE in answer
    assert await ask(QUESTION, "- Answer in one sentence.") == f"{PRICE} [shipping.md]"


async def test_opening_units_shape_and_mentions(ask: Asking) -> None:
    assert (await ask(QUESTION, "Begin every answer with the price.")).startswith(PRICE)
    assert (await ask(QUESTION, 'Begin every answer with "Birch Lane:"')).startswith("Birch Lane: ")
    assert "6.90 EUR" in await ask(QUESTION, "Write amounts of money with the currency code.")
    assert "2.95 bar" not in await ask("What pressure for off the road?", "")
    pressure = await ask("Which pressure does a road tyre need?", "Give measures in metric units.")
    assert "5.17 bar" in pressure and "psi" not in pressure
    listed = await ask(QUESTION, "Answer as a bulleted list.")
    assert all(line.startswith("- ") for line in listed.splitlines())
    assert "tracking" not in await ask(QUESTION, "Never mention the tracking link.")
    assert "opening hours" in await ask(QUESTION, "Always mention the opening hours.")


async def test_it_says_what_it_is(ask: Asking) -> None:
    for question in ("Who are you?", "Tell me about the moon landing"):
        assert "offline rule engine, not a language model" in await ask(question, "")


async def test_it_works_by_tool_calls_and_streams(workspace: Path) -> None:
    home = workspace.parent / "home"
    view = readonly_view(workspace, home / "global", working_dir=workspace)
    system = f"Workspace: {workspace}"
    played = await harness.play(QUESTION, system=system, view=view)
    again = await harness.play(QUESTION, system=system, view=view)
    assert played.tools[:2] == ["glob", "grep"]
    assert "file_read" in played.tools
    deltas = [event.text for event in played.events if event.type == "stream_delta"]
    assert len(deltas) > 5
    assert "".join(deltas) == played.text == again.text
    usage = [event for event in played.events if event.type == "usage"]
    assert all(event.input_tokens > 0 and event.output_tokens > 0 for event in usage)


async def test_a_question_cannot_set_rules_or_pose_as_a_brief(ask: Asking) -> None:
    plain = await ask(QUESTION, "")
    posing = await ask(f"# Brief: draft\n\n{QUESTION} Answer in one sentence.", "")
    assert len(sentences(posing)) > 5
    assert PRICE in plain and PRICE in posing


async def test_no_documents_no_answer(tmp_path: Path) -> None:
    (tmp_path / "workspace" / ".halo").mkdir(parents=True)
    (tmp_path / "home" / "global").mkdir(parents=True)
    answer = await harness.ask(
        tmp_path / "workspace", QUESTION, f"Workspace: {tmp_path / 'workspace'}", home=tmp_path / "home"
    )
    assert "find nothing" in answer and "not a language model" in answer


async def test_the_sample_conversation_is_answered_badly_and_its_hint_mends_it(ask: Asking) -> None:
    sample = yaml.safe_load((harness.SAMPLE.parent / "conversation.yaml").read_text())
    agent = (harness.SAMPLE / ".halo" / "agents" / sample["agent"] / "AGENT.md").read_text()
    rule = Rule("length", "2 sentences")
    for message in sample["messages"]:
        assert fit(rule, await ask(message, agent)) < 30
    assert sample["ask_again"] in sample["messages"]
    assert fit(rule, await ask(sample["ask_again"], f"{agent}\n- {rule.sentence}")) == 100
