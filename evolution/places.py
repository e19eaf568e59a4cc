"""Where what belongs to a run or an apply lies: its folder, or after 14 days its zip."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from evolution.claim import Kind
from evolution.models import EvolutionApply, EvolutionRun
from evolution.zip_reading import read_member, read_out
from evolution.zips import ZipDamaged

Row = EvolutionRun | EvolutionApply


def kind_of(model: type[Row]) -> Kind:
    return "run" if model is EvolutionRun else "apply"


def folder_of(row: Row) -> Path:
    paths = row.workspace.paths.evolution
    return paths.run(row.pk) if isinstance(row, EvolutionRun) else paths.apply(row.pk)


def zip_of(row: Row) -> Path:
    return row.workspace.paths.evolution.archived(kind_of(type(row)), row.pk)


@dataclass(frozen=True, slots=True)
class Found:
    """A row's folder to be read. ``unread``: what isn't in it though it was packed, and why, for people."""

    folder: Path
    unread: tuple[str, ...] = ()

    def attempt(self, number: int) -> Path:
        return self.folder / "attempts" / str(number)


@contextmanager
def found_of(row: Row, *, attempt: int) -> Iterator[Found]:
    """The folder where it lies; of an archived row a copy out of its zip that goes with the context.

    ``attempt`` is the one that is looked at: what there is room for is taken from it first.
    """
    if row.archived_at is None:
        yield Found(folder_of(row))
        return
    with TemporaryDirectory(prefix="halo-archived-") as temporary:
        yield _read_out(row, Path(temporary), first=f"attempts/{attempt}/")


def _read_out(row: Row, temporary: Path, *, first: str) -> Found:
    archive, folder = zip_of(row), temporary / "found"
    name = f"{archive.parent.name}/{archive.name}"
    try:
        left_out = read_out(archive, folder, first=first)
        return Found(folder, tuple(f"In {name} {words}." for words in left_out))
    except FileNotFoundError:
        reason = f"{name} is gone"
    except ZipDamaged as error:
        reason = f"{name} is damaged ({error})"
    except OSError as error:
        reason = f"{name} can't be read ({error.strerror or error})"
    nothing = f"{reason}: of this {kind_of(type(row))} only what its row says can be shown."
    return Found(temporary / "nothing", (nothing,))


def read_file(folder: Path, archive: Path, rel: str, *, limit: int) -> bytes:
    """The beginning of one file of a row's folder, or else of its zip; empty when there is none."""
    try:
        with (folder / rel).open("rb") as stream:
            return stream.read(limit)
    except OSError:
        return read_member(archive, rel, limit=limit) or b""
