"""Generated surfaces in all their layers, and drafts on them, judged by what sessions would load afterwards.

``test_category_pairs`` does the same for the two files that have keys.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from evolution import sandbox
from evolution.artifacts.files import AttemptFiles
from evolution.gates import GateInput, decide
from tests.evolution.phase_world import World, make_world, write
from tests.evolution.scores import perfect
from workspaces.compose import list_agents, list_skills
from workspaces.overrides import Surface
from workspaces.publish_lock import SurfaceFiles

LAYERS = (".halo", ".agents", "global")
FOLDERS = ("agents/guide", "agents/scout", "skills/review", "skills/plan", "prompts/all")
TEXTS = {
    "agent.yaml": ["name: A\n", "name: A\ntools: [grep]\n", "name: A\ninternal: true\n", "name: [\n"],
    "AGENT.md": ["One.\n", "Two.\n"],
    "SKILL.md": [
        "---\nname: s\ndescription: d\n---\nOne.\n",
        "---\nname: s\ndescription: d\n---\nTwo.\n",
        "---\nname: s\ndescription: d\nrequiresAccess: full\n---\nOne.\n",
    ],
    "tone.md": ["Kind.\n", "Brief.\n"],
    "extra.txt": ["x\n", "y\n"],
}
NAMES = {"agents": ("agent.yaml", "AGENT.md"), "skills": ("SKILL.md",), "prompts": ("tone.md",)}
Files = dict[str, str]


@st.composite
def folder(draw: st.DrawFn, rel: str) -> Files:
    """Of one override folder: absent (empty mapping), bare (``{rel: ""}``), or some of its files."""
    if not draw(st.booleans()):
        return {}
    names = (*NAMES[rel.split("/")[0]], "extra.txt")
    chosen = draw(st.lists(st.sampled_from(names), unique=True))
    return {f"{rel}/{name}": draw(st.sampled_from(TEXTS[name])) for name in chosen} or {rel: ""}


@st.composite
def layer(draw: st.DrawFn, name: str) -> Files:
    rels = [rel for rel in FOLDERS if name != ".agents" or rel.startswith("skills/")]
    return {rel: text for one in rels for rel, text in draw(folder(one)).items()}


@st.composite
def draft(draw: st.DrawFn) -> Files:
    """Few files, as drafts are, any of them anywhere."""
    rels = draw(st.lists(st.sampled_from(FOLDERS), min_size=1, max_size=2, unique=True))
    found = {}
    for rel in rels:
        name = draw(st.sampled_from((*NAMES[rel.split("/")[0]], "extra.txt")))
        found[f"{rel}/{name}"] = draw(st.sampled_from(TEXTS[name]))
    return found


SURFACES = st.fixed_dictionaries({name: layer(name) for name in LAYERS})
REVIEW, PLAIN = "skills/review/SKILL.md", TEXTS["SKILL.md"]


def lay(root: Path, files: Files) -> None:
    for rel, text in files.items():
        if text:
            write(root / rel, text)
        else:
            (root / rel).mkdir(parents=True)


def loaded(world: World) -> tuple[Any, ...]:
    """What no change may touch by itself: which agents and skills there are, and what they may."""
    surface = Surface(SurfaceFiles(world.halo), world.global_folder)
    agents = [
        (agent.id, agent.name, agent.internal, agent.team, agent.priority)
        for agent in list_agents(surface, [])
        if not agent.broken
    ]
    skills = [
        (skill.id, skill.requires_access, skill.command)
        for skill in list_skills(surface, [])
        if not skill.broken
    ]
    return agents, skills


@settings(max_examples=40, deadline=None)
@given(layers=SURFACES, drafted=draft())
@example(
    layers={".halo": {"skills/review": ""}, ".agents": {}, "global": {REVIEW: PLAIN[0]}},
    drafted={REVIEW: PLAIN[1]},
)
@example(
    layers={".halo": {}, ".agents": {"skills/review": ""}, "global": {REVIEW: PLAIN[0]}},
    drafted={REVIEW: PLAIN[0]},
)
@example(
    layers={".halo": {}, ".agents": {REVIEW: PLAIN[2]}, "global": {REVIEW: PLAIN[0]}},
    drafted={REVIEW: PLAIN[1]},
)
def test_what_passes_changes_no_agent_and_no_skill_beyond_its_words(
    layers: dict[str, Files], drafted: Files
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        world = make_world(Path(folder))
        shutil.rmtree(world.halo / "agents")
        shutil.rmtree(world.global_folder)
        for name, root in zip(
            LAYERS, (world.halo, world.workspace / ".agents", world.global_folder), strict=True
        ):
            lay(root, layers[name])
        before = loaded(world)
        ctx = world.apply()
        files = AttemptFiles(ctx.folder)
        lay(files.sandbox, drafted)
        sandbox.complete(ctx)
        judged = sandbox.would_publish(ctx)
        evidence = GateInput(source_access="full", level="L3", threshold=0, changes=judged, score=perfect())
        if not decide(evidence).passed:
            return
        for rel, content in sandbox.proposed(files).items():
            assert isinstance(content, bytes)
            write(world.halo / rel, content)
        assert loaded(world) == before
