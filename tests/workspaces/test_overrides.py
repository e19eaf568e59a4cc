"""Which layer's file counts."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.faults import Fault
from tests.workspaces.conftest import Write
from workspaces.overrides import Surface, is_folder_id


def names(surface: Surface, kind: str) -> dict[str, str]:
    return {folder.id: folder.scope for folder in surface.folders(kind, [])}  # type: ignore[arg-type]


def test_the_first_layer_that_has_the_file_counts(
    surface: Surface, in_workspace: Write, in_global: Write, in_builtin: Write
) -> None:
    for write, prefix, text in ((in_builtin, "", "b"), (in_global, "", "g"), (in_workspace, ".halo/", "w")):
        write(f"{prefix}INSTRUCTIONS.md", text)
        found = surface.file("INSTRUCTIONS.md", [])
        assert found is not None
        assert found.content == text
    assert found.scope == "workspace"


def test_an_empty_file_suppresses_as_well(surface: Surface, in_workspace: Write, in_global: Write) -> None:
    in_global("INSTRUCTIONS.md", "g")
    in_workspace(".halo/INSTRUCTIONS.md", "")
    found = surface.file("INSTRUCTIONS.md", [])
    assert found is not None
    assert found.content == ""


@pytest.mark.parametrize(("kind", "name"), [("agents", "a"), ("skills", "a"), ("prompts", "all")])
def test_a_folder_hides_the_lower_one_file_by_file_included(
    surface: Surface, in_workspace: Write, in_global: Write, kind: str, name: str
) -> None:
    in_global(f"{kind}/{name}/AGENT.md", "global")
    in_global(f"{kind}/{name}/extra.md", "global")
    in_workspace(f".halo/{kind}/{name}/AGENT.md", "workspace")
    folder = surface.folder(kind, name)  # type: ignore[arg-type]
    assert folder is not None
    assert folder.scope == "workspace"
    assert [text.content for text in surface.texts(folder, [])] == ["workspace"]
    assert folder.read("extra.md") is None


def test_an_empty_folder_hides_too(surface: Surface, root: Path, in_global: Write) -> None:
    in_global("prompts/all/a.md", "global")
    (root / ".halo" / "prompts" / "all").mkdir(parents=True)
    folder = surface.folder("prompts", "all")
    assert folder is not None
    assert surface.texts(folder, []) == []


def test_layers_are_listed_together(
    surface: Surface, in_workspace: Write, in_global: Write, in_builtin: Write
) -> None:
    in_builtin("agents/c/agent.yaml", "name: c")
    in_builtin("agents/b/agent.yaml", "name: b")
    in_global("agents/b/agent.yaml", "name: b")
    in_global("agents/a/agent.yaml", "name: a")
    in_workspace(".halo/agents/a/agent.yaml", "name: a")
    assert names(surface, "agents") == {"a": "workspace", "b": "global", "c": "builtin"}


def test_skills_beside_the_surface_are_read_below_the_workspaces_own(
    surface: Surface, in_workspace: Write, in_global: Write
) -> None:
    for name in ("own", "shared"):
        in_workspace(f".agents/skills/{name}/SKILL.md", "from .agents")
    in_workspace(".halo/skills/own/SKILL.md", "from .halo")
    in_global("skills/shared/SKILL.md", "from global")
    own, shared = surface.folder("skills", "own"), surface.folder("skills", "shared")
    assert own is not None
    assert shared is not None
    assert own.read("SKILL.md") == b"from .halo"
    assert shared.read("SKILL.md") == b"from .agents"
    assert shared.scope == "workspace"
    assert shared.shown("SKILL.md") == ".agents/skills/shared/SKILL.md"


def test_a_folder_that_leads_out_is_unusable_and_hides_what_lies_below(
    surface: Surface, root: Path, in_global: Write, tmp_path: Path
) -> None:
    in_global("agents/a/agent.yaml", "name: a")
    (root / ".halo" / "agents").mkdir()
    (root / ".halo" / "agents" / "a").symlink_to(tmp_path)
    faults: list[Fault] = []
    assert surface.folders("agents", faults) == []
    assert surface.folder("agents", "a") is None
    assert "symlink" in faults[0].found


def test_a_chain_through_a_link_that_leads_out_is_not_read(
    surface: Surface, root: Path, in_workspace: Write, tmp_path: Path
) -> None:
    (tmp_path / "INSTRUCTIONS.md").write_text("outside")
    (root / "a").mkdir()
    (root / "a" / ".halo").symlink_to(tmp_path)
    faults: list[Fault] = []
    assert surface.instructions_chain("a", faults) == []
    assert len(faults) == 1


def test_without_a_workspace_the_machines_files_count(
    home: object, surface: Surface, in_global: Write
) -> None:
    in_global("INSTRUCTIONS.md", "g")
    machine = Surface(None, surface._layers[1][1].halo)
    found = machine.file("INSTRUCTIONS.md", [])
    assert found is not None
    assert found.content == "g"
    assert machine.own_file("INDEX.md", []) is None
    assert machine.agents_md([]) is None
    assert machine.instructions_chain("a", []) == []


@given(st.text(max_size=80))
def test_an_id_is_a_plain_file_name(text: str) -> None:
    if is_folder_id(text):
        assert text.isascii()
        assert "/" not in text
        assert not text.startswith((".", "-"))
