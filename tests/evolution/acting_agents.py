"""Agents that do what ``acts.json`` in the workspace says; tests hand this module's name to ``zygote.start``.

{"draft": {"INSTRUCTIONS.md": "..."},     files that the drafter writes into its sandbox
 "target": "INSTRUCTIONS.md",
 "observation": "...",                     of the draft, none by default
 "merge": {"INSTRUCTIONS.md": "..."},     files that the merger writes; what the draft wrote by default
 "abort": "...",                           the merger's ABORT.md instead
 "answers": {"base": "...", "sandbox": "..."},
 "scores": [{"behavior": 60}, ...],        one a sample, the last one for all further ones
 "regress": [{"behavior": 40}, ...]}       the same for the scorings of the regression run
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from evolution import wire
from evolution.artifacts.files import AttemptFiles
from evolution.environment import Keys
from evolution.phases.context import ChildSpec
from tests.evolution.phase_world import patch_text, score_text, write

ACTING_AGENTS = "tests.evolution.acting_agents:run"
_SAMPLE = re.compile(r"score\.(\d+)\.json")


def run(spec: ChildSpec, *, keys: Keys) -> wire.Answer:
    acts: dict[str, Any] = json.loads((spec.workspace / "acts.json").read_bytes())
    files = AttemptFiles(spec.log.parent)
    if spec.agent_id == "__evo_agent__":
        return _draft(acts, files)
    if spec.agent_id == "__apply_agent__":
        return _merge(acts, files)
    if spec.agent_id == "__score__":
        path = next(mount.path for mount in spec.view.mounts if mount.writable)
        return _score(acts.get("regress" if "regress" in path.parts else "scores", [{}]), path)
    answer = acts.get("answers", {}).get(spec.surface.parent.name, f"Said by {spec.surface.parent.name}.")
    if spec.output is not None:
        write(spec.output, answer)
    return wire.Answer(0, answer)


def _draft(acts: dict[str, Any], files: AttemptFiles) -> wire.Answer:
    _write_all(acts["draft"], files)
    observation = acts.get("observation", "")
    body = "## What\nState the number first.\n"
    body += f"\n## Larger observation\n{observation}\n" if observation else ""
    write(files.patch, patch_text(target=acts.get("target") or next(iter(acts["draft"])), body=body))
    return wire.Answer(0, "Drafted.")


def _merge(acts: dict[str, Any], files: AttemptFiles) -> wire.Answer:
    if "abort" in acts:
        write(files.abort, acts["abort"])
        return wire.Answer(0, "Not merged.")
    _write_all(acts.get("merge", acts["draft"]), files)
    write(files.apply_log, "run: applied\n")
    return wire.Answer(0, "Merged.")


def _score(scores: list[dict[str, Any]], path: Path) -> wire.Answer:
    found = _SAMPLE.fullmatch(path.name)
    assert found is not None
    write(path, score_text(**scores[min(int(found[1]), len(scores)) - 1]))
    return wire.Answer(0, "Scored.")


def _write_all(texts: dict[str, str | None], files: AttemptFiles) -> None:
    """None takes a file away."""
    for rel, text in texts.items():
        if text is None:
            (files.sandbox / rel).unlink()
        else:
            write(files.sandbox / rel, text)
