"""What drafter, scorer, merger and an answering agent would do, told apart by the agent's id.

Runs in a child of the zygote; tests hand this module's name to ``zygote.start``.
"""

from __future__ import annotations

from evolution import wire
from evolution.artifacts.files import AttemptFiles
from evolution.environment import Keys
from evolution.phases.context import ChildSpec
from tests.evolution.phase_world import patch_text, score_text, write

SCRIPTED_AGENTS = "tests.evolution.scripted_agents:run"
OLD = {"INSTRUCTIONS.md": "Answer well.\n", "agents/guide/AGENT.md": "You are the guide.\n"}
NEW = {
    "INSTRUCTIONS.md": "Answer well. Numbers first.\n",
    "agents/guide/AGENT.md": "You are the guide. You count.\n",
    "skills/units/SKILL.md": "---\nname: units\ndescription: Units.\n---\nName the unit.\n",
}


def run(spec: ChildSpec, *, keys: Keys) -> wire.Answer:
    files = AttemptFiles(spec.log.parent)
    if spec.agent_id in ("__evo_agent__", "__apply_agent__"):
        for rel, text in NEW.items():
            write(files.sandbox / rel, text)
        write(files.patch, patch_text()) if spec.agent_id == "__evo_agent__" else write(
            files.apply_log, "run: applied"
        )
        return wire.Answer(0, "Done.")
    if spec.agent_id == "__score__":
        write(next(mount.path for mount in spec.view.mounts if mount.writable), score_text())
        return wire.Answer(0, "Scored.")
    answer = f"Two hours, says {spec.surface.parent.name}."
    if spec.output is not None:
        write(spec.output, answer)
    return wire.Answer(0, answer)
