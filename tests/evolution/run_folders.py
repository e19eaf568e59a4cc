"""The folder of a run as its phases leave it, for pages; every text can be somebody's."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from evolution.artifacts.files import AttemptFiles
from evolution.artifacts.frozen import FrozenFiles
from evolution.artifacts.score import summarise, write_summary
from evolution.changes import Category, Change
from evolution.gates import GateInput, decide
from evolution.models import EvolutionRun
from evolution.spawn import Order
from tests.evolution.scores import score

TARGET = "agents/default/AGENT.md"
BEFORE = """# Support

You help customers of a small shop.
Be friendly, and stay with the facts.
Never promise a date you don't know.

## Answering
Explain how a total is made up before giving it.
Amounts carry their currency.
Ask when an order number is missing.
"""
AFTER = BEFORE.replace(
    "Explain how a total is made up before giving it.\n",
    "Give the total in the first sentence.\nExplain it only when asked, in at most two sentences.\n",
)
SAID = "Please explain it only when asked, in at most two sentences, says the handbook."


def fill(run: EvolutionRun, *, text: str = "", target: str = TARGET, **changed: Any) -> AttemptFiles:
    """``text`` is appended to every text that a model or a person wrote."""
    paths = run.workspace.paths
    files = AttemptFiles(paths.evolution.run_attempt(run.pk, run.attempts))
    _write(files.base / target, BEFORE)
    _write(files.sandbox / target, AFTER + text)
    _write(paths.halo / target, BEFORE)
    message = json.dumps("What is the total of order 18?" + text)
    scenario = f"testScenario:\n  agentId: default\n  originalMessage: {message}\n  testMessage: {message}\n"
    body = f"Totals came last; they lead now.{text}"
    _write(
        files.patch, f"---\ntarget: {target}\n{scenario}---\n{body}\n\n## Larger observation\nPrices.{text}\n"
    )
    _write(files.baseline, "An order's total consists of several parts. So it comes to 41.80 EUR." + text)
    _write(files.control_output, "A total is made up of items, shipping and tax, so 18.20 EUR." + text)
    _write(files.dry_run_output, "The total is 18.20 EUR." + text)
    samples = [
        score(behavior=figure, scope=86, notes=f"The total leads now.{text}") for figure in (74, 78, 80)
    ]
    summary = summarise(samples)
    write_summary(files.score, summary)
    change = Change(target, Category.PROMPT, f"wording{text}")
    said = decide(GateInput(source_access="full", level="L0", threshold=80, changes=[change], score=summary))
    verdict = {**asdict(said), "words": said.words + text, **changed}
    verdict["gates"] = [{**gate, "words": gate["words"] + text} for gate in verdict["gates"]]
    _write(files.verdict, json.dumps(verdict))
    _write(files.child_log, "agent: reading AGENT.md\n" + text)
    frozen = FrozenFiles(paths.evolution.run(run.pk))
    _write(frozen.tool_flow, f"# Conversation\n\n## 1. User\n\n{SAID}{text}\n")
    asked = {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": SAID}]}
    _write(frozen.snapshot, json.dumps([asked]))
    _write(Order("run", run.pk, run.attempts).log, "wrapper: phase draft\n" + text)
    return files


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
