"""The shipped files are in order themselves."""

from __future__ import annotations

import os

from core.faults import Fault
from core.paths import HaloHome
from workspaces.compose import compose, list_agents, list_skills
from workspaces.overrides import PLATFORM_FOLDER, Surface
from workspaces.publish_lock import SurfaceFiles
from workspaces.seed import seed


def test_nothing_shipped_has_a_fault() -> None:
    faults: list[Fault] = []
    surface = Surface(None, PLATFORM_FOLDER)
    agents = list_agents(surface, faults)
    skills = list_skills(surface, faults)
    assert faults == []
    assert "assistant" in [agent.id for agent in agents]
    known = {skill.id for skill in skills}
    for agent in agents:
        assert set(agent.skills) <= known


def test_a_new_machine_has_an_agent_that_a_turn_can_start_on(home: HaloHome, root: os.PathLike[str]) -> None:
    seed(home)
    surface = Surface(SurfaceFiles(HaloHome(home.root).root / "none"), home.global_folder)
    composed = compose(surface, "assistant", workspace_root=home.root)
    assert composed.faults == ()
    assert composed.agent.scope == "global"
    assert "First meeting" in composed.system_prompt


def test_without_seeding_the_shipped_files_count_as_builtin(home: HaloHome) -> None:
    composed = compose(Surface(None, home.global_folder), "assistant", workspace_root=home.root)
    assert composed.agent.scope == "builtin"
