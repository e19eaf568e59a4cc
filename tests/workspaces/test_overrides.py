"""Which layer's file counts."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.faults import Fault
from core.paths import UnsafePathError
from tests.workspaces.conftest import Write
from workspaces.overrides import Surface, is_folder_id
from workspaces.publish_lock import SurfaceFiles


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


class TestOneView:
    """Reading, asking and listing agree on what is there, whatever it is and whatever was asked before."""

    @pytest.mark.parametrize(
        ("rel", "content", "is_dir", "names"),
        [
            ("agents", None, True, ["a"]),
            ("agents/a/agent.yaml", b"name: A", False, []),
            ("agents/a/agent.yaml/below", None, False, []),
            ("agents/b", None, False, []),
            ("linked", None, True, ["agent.yaml"]),
            ("linked/agent.yaml", b"name: A", False, []),
        ],
    )
    def test_of_files_folders_and_links(
        self,
        root: Path,
        in_workspace: Write,
        rel: str,
        content: bytes | None,
        is_dir: bool,
        names: list[str],
    ) -> None:
        in_workspace(".halo/agents/a/agent.yaml", "name: A")
        (root / ".halo/linked").symlink_to("agents/a")
        files = SurfaceFiles(root / ".halo")
        for _ in range(2):
            assert files.read(rel) == content
            assert files.exists(rel) == (content is not None or is_dir)
            assert files.is_dir(rel) == is_dir
            assert files.listdir(rel) == names

    def test_a_link_out_of_a_folder_known_to_be_none_is_refused(
        self, root: Path, in_workspace: Write, tmp_path: Path
    ) -> None:
        (tmp_path / "secret").write_text("s")
        in_workspace(".halo/agents/a/agent.yaml", "name: A")
        files = SurfaceFiles(root / ".halo")
        assert files.read("agents/a/agent.yaml") == b"name: A"
        (root / ".halo/agents/a/AGENT.md").symlink_to(tmp_path / "secret")
        with pytest.raises(UnsafePathError):
            files.read("agents/a/AGENT.md")

    def test_what_may_not_be_looked_at_is_not_taken_for_absent(
        self, surface: Surface, root: Path, in_workspace: Write, in_global: Write, monkeypatch: Any
    ) -> None:
        denied = str(in_workspace(".halo/INSTRUCTIONS.md", "own"))
        in_global("INSTRUCTIONS.md", "machine-wide")

        def deny(call: Any) -> Any:
            def denying(path: Any, *arguments: Any, **options: Any) -> Any:
                if path == denied:
                    raise PermissionError(13, "Permission denied", path)
                return call(path, *arguments, **options)

            return denying

        for name in ("stat", "lstat", "open"):
            monkeypatch.setattr(os, name, deny(getattr(os, name)))
        faults: list[Fault] = []
        assert surface.file("INSTRUCTIONS.md", faults) is None
        assert "Permission denied" in faults[0].found
