"""File tools inside each view: what they do, what they refuse, and that a refusal changes nothing."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import Any

import pytest

from agents import views
from agents.tools.context import ToolContext, ToolError, ToolLimits
from agents.tools.file_edit import file_edit
from agents.tools.file_read import file_read
from agents.tools.file_write import file_write
from agents.tools.glob import glob
from agents.tools.grep import grep
from agents.tools.listing import file_list
from agents.view import View

from .conftest import Place

LEVELS = ["full", "workspace"]


def context(view: View, **limits: int) -> ToolContext:
    return ToolContext(view, ToolLimits(**limits))


def view_of(place: Place, level: str) -> View:
    if level == "full":
        return views.full_view(place.root, global_folder=place.global_folder)
    make = views.workspace_view if level == "workspace" else views.readonly_view
    return make(place.root, place.global_folder)


@pytest.fixture
def tree(place: Place) -> dict[str, bytes]:
    """Everything on the disk before the test acts."""
    return content(place)


def content(place: Place) -> dict[str, bytes]:
    top = place.root.parent
    return {str(path.relative_to(top)): path.read_bytes() for path in top.rglob("*") if path.is_file()}


@pytest.mark.parametrize("level", LEVELS)
def test_write_edit_read(place: Place, level: str) -> None:
    here = context(view_of(place, level))
    assert "Created" in file_write(here, "new/deep/file.txt", "a b a")
    assert "2 occurrences" in file_edit(here, "new/deep/file.txt", "a", "c", replace_all=True)
    assert file_read(here, "new/../new/deep/file.txt") == "c b c"
    assert [path.name for path in (place.root / "new/deep").iterdir()] == ["file.txt"]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    "path",
    [
        ".halo/INSTRUCTIONS.md",
        ".halo/new.md",
        ".halo/agents/writer/AGENT.md",
        "docs/../.halo/INSTRUCTIONS.md",
        "./.halo//INSTRUCTIONS.md",
        ".halo/memory/../INSTRUCTIONS.md",
        ".halo/sessions/x.jsonl",
        ".halo/memory",
        ".halo",
        "other/.halo/INSTRUCTIONS.md",
        "link/INSTRUCTIONS.md",
        "chain/INSTRUCTIONS.md",
        "file-link",
        ".halo/memory/out/INSTRUCTIONS.md",
    ],
)
def test_the_surface_is_not_written(place: Place, level: str, path: str) -> None:
    (place.root / "link").symlink_to(".halo")
    (place.root / "chain").symlink_to("link/../link")
    (place.root / "file-link").symlink_to(place.root / ".halo/INSTRUCTIONS.md")
    (place.root / ".halo/memory/out").symlink_to("..")
    before = content(place)
    here = context(view_of(place, level))
    with pytest.raises(ToolError) as refused:
        file_write(here, path, "mine now")
    assert "/evo" in str(refused.value)
    assert content(place) == before
    with pytest.raises(ToolError):
        file_edit(here, path, "the rules", "no rules")
    assert content(place) == before


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("folder", ["assets", "memory", "tmp"])
def test_three_folders_of_halo_are_writable(place: Place, level: str, folder: str) -> None:
    file_write(context(view_of(place, level)), f".halo/{folder}/sub/note.md", "x")
    assert (place.root / ".halo" / folder / "sub/note.md").read_text() == "x"


def test_full_may_write_elsewhere_but_no_other_surface_nor_the_global_files(place: Place) -> None:
    here = context(view_of(place, "full"))
    elsewhere = place.root.parent / "elsewhere.txt"
    file_write(here, str(elsewhere), "x")
    assert elsewhere.read_text() == "x"
    other = place.root.parent / "other/.halo"
    (other / "memory").mkdir(parents=True)
    before = content(place)
    for path in (
        other / "INSTRUCTIONS.md",
        place.global_folder / "USER.md",
        place.home / "secrets/settings.yaml",
    ):
        with pytest.raises(ToolError):
            file_write(here, str(path), "x")
    assert content(place) == before
    file_write(here, str(other / "memory/x"), "x")


@pytest.mark.parametrize("level", ["workspace", "readonly"])
@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "../home/secrets/settings.yaml",
        "../home/halo.sqlite3",
        "../home/global/internal-sessions",
        "../other-ws/secret.txt",
        "escape/secrets/settings.yaml",
        "absolute",
        "/proc/self/environ",
        "/proc/self/root/etc/passwd",
        "~/.ssh/id_rsa",
        "loop",
        "docs/guide.md/x",
        "docs/guide.md\0",
        "",
    ],
)
def test_nothing_outside_is_read(place: Place, level: str, path: str) -> None:
    (place.root.parent / "other-ws").mkdir()
    (place.root.parent / "other-ws/secret.txt").write_text("secret")
    (place.root / "escape").symlink_to("../home")
    (place.root / "absolute").symlink_to("/etc/passwd")
    (place.root / "loop").symlink_to("loop")
    here = context(view_of(place, level))
    with pytest.raises(ToolError):
        file_read(here, path)
    for tool in (file_list, lambda c, p: glob(c, "**", p), lambda c, p: grep(c, "secret", p)):
        with pytest.raises(ToolError):
            tool(here, path or "\0")


@pytest.mark.parametrize("level", ["workspace", "readonly"])
def test_the_shared_prompt_files_are_readable_and_no_more(
    place: Place, level: str, tree: dict[str, bytes]
) -> None:
    here = context(view_of(place, level))
    shared = place.global_folder / "prompts/all/tone.md"
    assert file_read(here, str(shared)) == "be kind\n"
    with pytest.raises(ToolError):
        file_write(here, str(shared), "x")
    assert content(place) == tree


def test_readonly_writes_nowhere(place: Place, tree: dict[str, bytes]) -> None:
    here = context(view_of(place, "readonly"))
    for path in ("new.txt", "docs/guide.md", ".halo/memory/x", "new/folder/x"):
        with pytest.raises(ToolError):
            file_write(here, path, "x")
    assert content(place) == tree
    assert not (place.root / "new").exists()


def test_symlinks_inside_the_workspace_are_followed(place: Place) -> None:
    (place.root / "relative").symlink_to("docs")
    (place.root / "absolute").symlink_to(place.root / "docs/guide.md")
    here = context(view_of(place, "workspace"))
    assert file_read(here, "relative/guide.md") == file_read(here, "absolute") == "one\ntwo\nthree\n"
    file_write(here, "absolute", "new")
    assert (place.root / "absolute").is_symlink()
    assert (place.root / "docs/guide.md").read_text() == "new"


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("starts_as_link", [True, False])
def test_a_symlink_swapped_at_any_moment_never_leads_out(
    place: Place, level: str, starts_as_link: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder and a link to the surface trade names before the first open, the second, the third ..."""
    folder, link = place.root / "folder", place.root / "link"
    folder.mkdir()
    link.symlink_to(".halo")
    target = link if starts_as_link else folder
    here = context(view_of(place, level))
    real_open = os.open
    opens = 0
    swap_before = -1

    def counting_open(*arguments: Any, **options: Any) -> int:
        nonlocal opens
        if opens == swap_before:
            exchange(folder, link)
        opens += 1
        return real_open(*arguments, **options)

    monkeypatch.setattr(os, "open", counting_open)
    outcomes = set()
    for moment in range(40):
        swap_before, opens = moment, 0
        for tool in (file_write, lambda c, p, _: file_edit(c, p, "the rules", "no rules")):
            try:
                tool(here, f"{target.name}/INSTRUCTIONS.md", "mine now")
                outcomes.add("done")
            except ToolError:
                outcomes.add("refused")
        assert (place.root / ".halo/INSTRUCTIONS.md").read_text() == "the rules\n"
        if folder.is_symlink():
            exchange(folder, link)
    assert outcomes == {"done", "refused"}


def exchange(one: Path, other: Path) -> None:
    rename_exchange = 2
    failed = ctypes.CDLL(None).renameat2(-100, bytes(one), -100, bytes(other), rename_exchange)
    assert not failed


def test_an_overlay_shows_another_surface_in_place(place: Place, tmp_path: Path) -> None:
    sandbox = tmp_path / "attempt/sandbox/.halo"
    sandbox.mkdir(parents=True)
    (sandbox / "INSTRUCTIONS.md").write_text("new rules\n")
    (place.root / "link").symlink_to(".halo")
    here = context(views.overlay_view(place.root, sandbox, place.global_folder))
    assert file_read(here, ".halo/INSTRUCTIONS.md") == "new rules\n"
    assert file_read(here, "link/INSTRUCTIONS.md") == "new rules\n"
    assert file_read(here, "docs/guide.md").startswith("one")
    assert ".halo/sessions" not in file_list(here, ".", recursive=True)
    assert glob(here, "**/INSTRUCTIONS.md") == ".halo/INSTRUCTIONS.md"
    before = content(place)
    for path in (".halo/INSTRUCTIONS.md", ".halo/memory/x", "docs/guide.md"):
        with pytest.raises(ToolError):
            file_write(here, path, "x")
    assert content(place) == before


def test_a_folder_view_is_exactly_its_paths(place: Place) -> None:
    attempt = place.root / ".halo/evo/runs/r/attempts/1"
    (attempt / "sandbox/.halo").mkdir(parents=True)
    (attempt / "base").mkdir()
    (attempt / "base/x.md").write_text("base")
    view = views.folder_view(
        root=attempt,
        read=[attempt],
        write=[attempt / "sandbox", attempt / "patch.md", attempt / "score.json"],
    )
    here = context(view)
    file_write(here, "patch.md", "the patch")
    file_write(here, "sandbox/.halo/agents/a/AGENT.md", "new")
    assert file_read(here, "base/x.md") == "base"
    before = content(place)
    for path in ("base/x.md", "other.md", str(place.root / "docs/guide.md"), "sandbox"):
        with pytest.raises(ToolError):
            file_write(here, path, "x")
    with pytest.raises(ToolError):
        file_read(here, str(place.root / "docs/guide.md"))
    assert content(place) == before
    (attempt / "patch.md").unlink()
    (attempt / "patch.md").symlink_to(place.root / "docs/guide.md")
    with pytest.raises(ToolError):
        file_write(here, "patch.md", "x")
    assert (place.root / "docs/guide.md").read_text() == "one\ntwo\nthree\n"


def test_a_home_inside_the_workspace_stays_hidden(tmp_path: Path) -> None:
    home = tmp_path / ".halo"
    for folder in ("secrets", "global/prompts/all", "memory"):
        (home / folder).mkdir(parents=True)
    (home / "secrets/settings.yaml").write_text("key")
    (home / "halo.sqlite3").write_text("rows")
    (home / "global/prompts/all/tone.md").write_text("be kind")
    here = context(views.workspace_view(tmp_path, home / "global"))
    assert file_read(here, ".halo/global/prompts/all/tone.md") == "be kind"
    for path in (".halo/secrets/settings.yaml", ".halo/halo.sqlite3", ".halo/secrets"):
        with pytest.raises(ToolError):
            file_read(here, path)
    assert "settings.yaml" not in file_list(here, ".", recursive=True)
    assert grep(here, "key|rows").startswith("[nothing")


def test_read_in_parts(place: Place) -> None:
    (place.root / "long.txt").write_text("".join(f"line {n}\n" for n in range(1, 5001)))
    here = context(view_of(place, "workspace"), result_chars=100_000)
    first = file_read(here, "long.txt")
    assert first.endswith("line 2000\n[cut here; go on with offset=2001]")
    assert file_read(here, "long.txt", offset=4999) == "line 4999\nline 5000\n"
    assert file_read(here, "long.txt", offset=10, limit=1) == "line 10\n[cut here; go on with offset=11]"
    short = file_read(context(view_of(place, "workspace"), result_chars=1_000), "long.txt")
    assert len(short) < 1_000 and "go on with offset=" in short
    with pytest.raises(ToolError, match="5000 lines"):
        file_read(here, "long.txt", offset=6000)


def test_what_is_no_text_is_refused_or_harmless(place: Place) -> None:
    here = context(view_of(place, "workspace"))
    (place.root / "binary").write_bytes(b"\x7fELF\0\0")
    (place.root / "latin").write_bytes("Grüße".encode("latin-1"))
    (place.root / "big").write_bytes(b"x" * (2 * 1024 * 1024 + 1))
    os.mkfifo(place.root / "pipe")
    with pytest.raises(ToolError, match="binary"):
        file_read(here, "binary")
    with pytest.raises(ToolError, match="offset and limit"):
        file_read(here, "big")
    with pytest.raises(ToolError, match="regular file"):
        file_read(here, "pipe")
    with pytest.raises(ToolError, match="folder"):
        file_read(here, "docs")
    assert file_read(here, "latin") == "Gr\ufffd\ufffde"
    assert len(file_read(here, "big", limit=1)) < 9_000


def test_an_edit_that_does_not_fit_changes_nothing(place: Place, tree: dict[str, bytes]) -> None:
    here = context(view_of(place, "workspace"))
    for old, new in (("four", "x"), ("e", "x"), ("", "x"), ("one", "one")):
        with pytest.raises(ToolError):
            file_edit(here, "docs/guide.md", old, new)
    assert content(place) == tree


def test_mode_of_a_replaced_file_stays(place: Place) -> None:
    script = place.root / "run.sh"
    script.write_text("echo 1")
    script.chmod(0o755)
    file_edit(context(view_of(place, "workspace")), "run.sh", "1", "2")
    assert script.stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize("by_hand", [True, False])
def test_searches_skip_and_cap(place: Place, monkeypatch: pytest.MonkeyPatch, by_hand: bool) -> None:
    if by_hand:
        monkeypatch.setattr("agents.shell.ripgrep", lambda view: None)
    here = context(view_of(place, "full"), shell_output_bytes=10_000_000)
    for folder in (".git", "node_modules/x", "src"):
        (place.root / folder).mkdir(parents=True)
        (place.root / folder / "code.py").write_text("needle = 1\nNEEDLE\n")
    (place.root / "src/data.bin").write_bytes(b"needle\0")
    (place.root / "src/many.txt").write_text("needle\n" * 600)
    assert grep(here, "needle", include="*.py") == "src/code.py:1:needle = 1"
    assert grep(here, "needle", "src/code.py", ignore_case=True).count("\n") == 1
    assert grep(here, "nothing like it").startswith("[nothing")
    capped = grep(here, "needle")
    assert capped.count("\n") == 500 and "only the first 500" in capped
    assert "data.bin" not in grep(here, "needle", "src", include="*.bin")
    with pytest.raises(ToolError):
        grep(here, "(unclosed")
    (place.root / "empty").mkdir()
    with pytest.raises(ToolError):
        grep(here, "(unclosed", "empty")
    assert glob(here, "*.py") == "src/code.py"
    assert glob(here, "src/*.{py,bin}").count("\n") == 1
    assert "node_modules" not in file_list(here, ".", recursive=True)


@pytest.mark.parametrize("level", LEVELS)
def test_a_line_without_end_is_never_held_as_a_whole(place: Place, level: str) -> None:
    with (place.root / "huge").open("wb") as stream:
        stream.write(b"first\n" + b"a" * 3_000_000)
        stream.seek(1 << 40)
        stream.write(b"\nlast\n")
    here = context(view_of(place, level), result_chars=2_000)
    assert file_read(here, "huge", limit=1) == "first\n[cut here; go on with offset=2]"
    with (place.root / "sparse").open("wb") as stream:
        stream.truncate(1 << 40)
    with pytest.raises(ToolError, match="binary"):
        file_read(here, "sparse", limit=1)


def test_a_long_line_shows_its_beginning_and_the_next_one_follows(place: Place) -> None:
    (place.root / "lines").write_text("x" * 500_000 + "\nsecond\n")
    here = context(view_of(place, "workspace"), result_chars=2_000)
    assert file_read(here, "lines", limit=1).startswith("x" * 1_800 + "\n[line 1 is longer")
    assert file_read(here, "lines", offset=2) == "second\n"


def test_an_edit_can_not_grow_a_file_without_bounds(place: Place) -> None:
    (place.root / "a.txt").write_text("a" * 1_000_000)
    with pytest.raises(ToolError, match="larger than"):
        file_edit(context(view_of(place, "full")), "a.txt", "a", "b" * 100_000, replace_all=True)
    assert (place.root / "a.txt").stat().st_size == 1_000_000


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("path", ["d/" * 100_000 + "f", "d/" * 1_000 + "f", "./x/../" * 580, "x\ud800"])
def test_endless_paths_are_refused_and_make_nothing(
    place: Place, tree: dict[str, bytes], level: str, path: str
) -> None:
    open_before = len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises(ToolError):
        file_write(context(view_of(place, level)), path, "x")
    assert content(place) == tree
    assert not (place.root / "d").exists()
    assert len(list(Path("/proc/self/fd").iterdir())) == open_before


def test_folders_too_deep_to_go_through_end_the_listing_in_peace(place: Place) -> None:
    (place.root / ("d/" * 150)).mkdir(parents=True)
    listed = file_list(context(view_of(place, "workspace")), recursive=True)
    assert "d/" * 100 in listed
    assert "d/" * 110 not in listed


def test_a_name_can_not_pass_for_another_line(place: Place) -> None:
    (place.root / "a\nsecrets.txt:1:needle").write_text("needle\n")
    here = context(view_of(place, "workspace"))
    assert "a\\nsecrets.txt:1:needle  7" in file_list(here).split("\n")
    assert glob(here, "*needle") == "a\\nsecrets.txt:1:needle"


def test_a_name_that_fills_all_a_name_can_hold_is_written(place: Place) -> None:
    name = "漢" * 84 + ".md"
    assert "Created" in file_write(context(view_of(place, "workspace")), name, "x")
    assert (place.root / name).read_text() == "x"
